"""Triton kernels on the virtual machine: results, arguments, what the report says. Skipped where Triton is not installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import consan.triton
from consan import adapters
from consan._errors import NotSupported, UsageError
from consan.adapters.triton.host import block_of
from consan.session.session import Session

triton = pytest.importorskip("triton", reason="Triton is not installed")
import triton_kernels as kernels  # noqa: E402 - needs Triton

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")  # Triton 3.9 warns unless it is set
Array = np.ndarray[Any, Any]


@pytest.fixture
def operands() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 96), (96, 64)))
    return a, b, np.full((64, 64), np.nan, np.float16)


def check_product(operands: tuple[Array, Array, Array]) -> None:
    a, b, c = operands
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_vector_add_and_what_is_reported() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    out = np.zeros(1000, np.float32)
    with consan.triton.cpu() as report:
        kernel = kernels.add[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, out, 1000, BLOCK=256)
    np.testing.assert_array_equal(out, x + 1)
    assert report.verdict == "clean"
    assert [(k.name, k.launches) for k in report.kernels] == [("add", 1)]
    assert kernel.n_regs > 0
    assert kernel.asm["cubin"][:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_matmul_is_pipelined_as_on_the_chip(operands: tuple[Array, Array, Array], arch: str) -> None:
    a, b, c = operands
    with consan.triton.cpu(arch=arch) as report:
        kernel = kernels.matmul[(1, 1)](a, b, c, 96, *(96, 1), *(64, 1), 64, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=3)
    check_product(operands)
    assert report.verdict == "clean"
    assert report.kernels[0].sync_sites > 0
    assert "cp.async" in kernel.asm["ptx"]
    assert ("wgmma" in kernel.asm["ptx"]) == (arch == "sm_90")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_descriptors_of_the_host(operands: tuple[Array, Array, Array], arch: str) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    with consan.triton.cpu(arch=arch) as report:
        a, b, c = (TensorDescriptor.from_tensor(x, [64, 32] if x.shape == (64, 96) else [32, 64]) for x in operands)
        c.block_shape = [64, 64]
        kernel = kernels.matmul_host[(1, 1)](a, b, c, 96, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    check_product(operands)
    assert report.verdict == "clean"
    assert ("cp.async.bulk.tensor" in kernel.asm["ptx"]) == (arch == "sm_90")


def test_descriptors_of_the_device_need_an_allocator(operands: tuple[Array, Array, Array], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = operands
    with consan.triton.cpu() as report:
        triton.set_allocator(triton.runtime._allocation.NullAllocator())
        with pytest.raises(RuntimeError, match="no allocator was set"):
            kernels.matmul_device[(1, 1)](a, b, c, 64, 64, 96, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
        triton.set_allocator(lambda size, alignment, stream: np.empty(size, np.uint8))
        kernel = kernels.matmul_device[(1, 1)](a, b, c, 64, 64, 96, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    check_product(operands)
    assert report.verdict == "clean"
    assert "tensormap.replace" in kernel.asm["ptx"]


@pytest.mark.parametrize(("pending", "verdict"), [(1, "clean"), (2, "violations")])
def test_a_gluon_kernel_that_waits_for_too_few_copies(pending: int, verdict: str) -> None:
    x, out = np.arange(5 * 128, dtype=np.float32).reshape(5, 128), np.zeros(128, np.float32)
    with consan.triton.cpu(arch="sm_80") as report:
        kernels.running_sum[(1,)](x, out, 5, BLOCK=128, STAGES=3, PENDING=pending)
    assert report.verdict == verdict
    assert [finding.kind for finding in report.findings] == ["missing-wait"] * len(report.findings)
    if verdict == "clean":
        np.testing.assert_array_equal(out, x.sum(0))
        return
    lines = list(enumerate(Path(kernels.__file__).read_text().splitlines(), 1))
    copies = [line for line, text in lines if "start_copy(ring" in text]
    read = next(line for line, text in lines if "total += ring" in text)
    assert {finding.accesses[0].line for finding in report.findings} == set(copies)
    assert {finding.accesses[1].line for finding in report.findings} == {read}


def test_scalars_and_tuples() -> None:
    x = np.arange(32, dtype=np.float32)
    for flag, sign in ((True, 1), (False, -1)):
        out = np.zeros(32, np.float32)
        with consan.triton.cpu() as report:
            kernels.scaled[(1,)](out, (x, 2 * x), 0.5, 3.0, flag, -7, BLOCK=32)
        np.testing.assert_array_equal(out, sign * (6.5 * x - 7))
        assert report.verdict == "clean"


def test_views_of_one_array_are_one_buffer() -> None:
    x = np.arange(512, dtype=np.float32)
    with consan.triton.cpu() as report:
        kernels.add[(1,)](x[:256], x[256:], x[:256], 256, BLOCK=256)
    np.testing.assert_array_equal(x[:256], 2 * np.arange(256) + 256)
    assert report.verdict == "clean"


def test_an_access_beyond_the_array_is_found_with_its_line() -> None:
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with consan.triton.cpu() as report:
        kernels.shift[(1,)](x, out, 64, 32, BLOCK=64)
    finding = report.findings[0]
    assert (report.verdict, finding.kind, finding.kernel) == ("violations", "out-of-bounds", "shift")
    assert finding.accesses[0].file.endswith("triton_kernels.py")
    assert finding.accesses[0].line == kernels.shift.fn.__code__.co_firstlineno + 4
    assert finding.accesses[0].name == "directly past the end of argument 1 (x_ptr, 256 bytes)"


def test_an_autotuned_kernel_runs_one_configuration_and_says_so() -> None:
    x, out = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    with consan.triton.cpu() as report:
        kernels.tuned[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)
    np.testing.assert_array_equal(out, x)
    assert report.kernels[0].launches == 1
    assert [note for note in report.notes if "ran with one of 2 configurations (BLOCK: 256" in note]


def test_benchmarks_do_not_run() -> None:
    called = []
    with consan.triton.cpu() as report:
        assert np.isnan(triton.testing.do_bench(lambda: called.append(1)))
        assert len(triton.testing.do_bench(lambda: called.append(1), quantiles=[0.5, 0.2, 0.8])) == 3
        benchmark = triton.testing.Benchmark(["n"], [1], line_arg="p", line_vals=[1], line_names=["p"], plot_name="speed", args={})
        triton.testing.perf_report(benchmark)(lambda n, p: called.append(1)).run(print_data=True)
    assert len(called) == 2
    assert any("do_bench" in note for note in report.notes)
    assert any("benchmark skipped: speed" in note for note in report.notes)


def test_launch_hooks() -> None:
    seen: list[str] = []
    x = np.zeros(256, np.float32)

    def hook(metadata: Any) -> None:
        seen.append(metadata.get()["name"])

    with consan.triton.cpu():
        triton.knobs.runtime.launch_enter_hook.add(hook)
        try:
            kernels.add[(1,)](x, x, x, 256, BLOCK=256)
            kernels.add[(0,)](x, x, x, 256, BLOCK=256)
        finally:
            triton.knobs.runtime.launch_enter_hook.remove(hook)
    assert seen == ["add", "add"]


def test_unsupported_arguments_end_in_one_line() -> None:
    x = np.zeros(256, np.float32)
    with consan.triton.cpu():
        with pytest.raises(UsageError, match="add: y_ptr: expected a NumPy array or a torch tensor on the CPU, got Fake"):
            kernels.add[(1,)](x, triton.reinterpret(Fake(123), triton.language.float32), x, 256, BLOCK=256)
        with pytest.raises(UsageError, match=r"add: a pointer given as a number \(0x7b\)"):
            block_of(123, "add")


class Fake:
    """A tensor whose memory nobody knows."""

    dtype, device, shape, data = triton.language.float32, "cpu", (1,), None

    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


def test_an_architecture_that_does_not_run_here() -> None:
    with pytest.raises(NotSupported, match="expected sm_80, sm_90, sm_100"), consan.triton.cpu(arch="sm_120"):
        pass


def test_the_backend_is_active_for_programs_that_ask_it() -> None:
    with consan.triton.cpu():
        assert triton.backends.backends["nvidia"].driver.is_active()
        assert triton.runtime.driver.active.get_current_target().backend == "cuda"


def test_everything_is_put_back() -> None:
    def replaced() -> tuple[Any, ...]:
        asked = vars(triton.backends.backends["nvidia"].driver).get("is_active")
        kernel = triton.compiler.CompiledKernel
        return triton.runtime.driver._active, triton.JITFunction.run, triton.testing.do_bench, kernel._init_handles, asked

    before = replaced()
    x = np.zeros(256, np.float32)
    with consan.triton.cpu() as outer:
        kernels.add[(1,)](x, x, x, 256, BLOCK=256)
        with consan.triton.cpu() as inner:
            kernels.add[(1,)](x, x, x, 256, BLOCK=256)
            kernels.add[(1,)](x, x, x, 256, BLOCK=256)
        kernels.add[(1,)](x, x, x, 256, BLOCK=256)
    assert (inner.kernels[0].launches, outer.kernels[0].launches) == (2, 2)
    assert before == replaced()
    assert not adapters._sessions


@pytest.mark.parametrize(
    ("arch", "deleted", "kind", "waits"),
    [
        ("sm_80", "cp.async.wait_group", "missing-wait", "cp.async.wait_group"),
        ("sm_80", "bar.sync", "data-race", "tl.debug_barrier() (bar.sync 0)"),
        ("sm_90", "wgmma.wait_group", "missing-wait", "wgmma.wait_group"),
    ],
)
def test_wrong_code_of_the_compiler_is_told_in_words_of_triton(
    operands: tuple[Array, Array, Array], monkeypatch: pytest.MonkeyPatch, arch: str, deleted: str, kind: str, waits: str
) -> None:
    """One instruction of the main loop is deleted: the report names the user's line, the buffer by what loads it, and what to do."""
    a, b, c = operands
    original = Session.prepare

    def prepare(self: Session, ptx: str, **options: Any) -> Any:
        # The barrier at the end of the body comes third: before the pipeline, after the wait, before the next copies.
        places = [found.start() for found in re.finditer(rf"^\t{deleted}", ptx, re.MULTILINE)]
        place = places[2 if deleted == "bar.sync" else 0]
        return original(self, f"{ptx[:place]}//{ptx[place:]}", **options)

    monkeypatch.setattr(Session, "prepare", prepare)
    with consan.triton.cpu(arch=arch) as report:
        kernels.matmul[(1, 1)](a, b, c, 96, *(96, 1), *(64, 1), 64, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_stages=3)
    lines = Path(kernels.__file__).read_text().splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if "tl.dot(tl.load(a), tl.load(b), total)" in text]
    loads = {f"the buffer written at triton_kernels.py:{line} (tl.load({name}))" for name in "ab"}
    assert {finding.kind for finding in report.findings} == {kind}
    assert {finding.buffer.name for finding in report.findings if finding.buffer} == loads
    for finding in report.findings:
        assert {(Path(access.file).name, access.line) for access in finding.accesses} == {("triton_kernels.py", line)}
        assert waits in finding.fix
        assert finding.fix.endswith("the compiler places it: try another num_stages, and report it to Triton with this reproduction")
        assert "atomic" not in finding.fix
