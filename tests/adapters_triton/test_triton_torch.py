"""torch tensors as arguments, and its device "cuda" as the CPU. Skipped where Triton or torch is not installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import consan.triton
from consan._errors import UsageError

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")
import triton_kernels as kernels  # noqa: E402 - needs Triton

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


def test_tensors_and_views_of_one_storage() -> None:
    x = torch.arange(512, dtype=torch.float32, requires_grad=True)
    halves = x.detach()[:256], x.detach()[256:]
    with consan.triton.cpu() as report:
        kernels.add[(1,)](*halves, halves[0], 256, BLOCK=256)
    assert torch.equal(halves[0], torch.arange(256) * 2.0 + 256)
    assert report.verdict == "clean"


def test_half_precision_tensors_in_descriptors() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    a, b = torch.randint(-3, 4, (64, 96)).bfloat16(), torch.randint(-3, 4, (96, 64)).bfloat16()
    c = torch.zeros(64, 64, dtype=torch.float16)
    with consan.triton.cpu() as report:
        maps = [TensorDescriptor.from_tensor(x, block) for x, block in ((a, [64, 32]), (b, [32, 64]), (c, [64, 64]))]
        kernels.matmul_host[(1, 1)](*maps, 96, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    assert torch.equal(c, (a.float() @ b.float()).half())
    assert report.verdict == "clean"


def test_the_compiled_kernel_can_be_launched() -> None:
    x, out = torch.rand(256), torch.zeros(256)
    with consan.triton.cpu() as report:
        kernel = kernels.add.warmup(x, x, out, 256, BLOCK=256, grid=(1,))
        kernel._init_handles()
        assert kernel.n_regs > 0
        kernel[(1, 1, 1)](x, x, out, 256, 256)
    assert torch.equal(out, 2 * x)
    assert report.kernels[0].launches == 1


def test_a_tensor_elsewhere_is_refused() -> None:
    x = torch.empty(256, device="meta")
    with consan.triton.cpu(), pytest.raises(UsageError, match=r"add: x_ptr: a tensor on 'meta'; .* tensors on the CPU"):
        kernels.add[(1,)](x, x, x, 256, BLOCK=256)


SCRIPT = """
import torch, triton, triton.language as tl
from triton_kernels import add
DEVICE = triton.runtime.driver.active.get_active_torch_device()
x = torch.rand(300, device="cuda")
out = torch.empty_like(x).cuda()
assert x.device == DEVICE and torch.zeros(1).to(torch.device("cuda", 0)).device == DEVICE
assert torch.cuda.get_device_capability() == (8, 0)
assert torch.cuda.get_device_properties("cuda").multi_processor_count > 0
add[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, x, out, 300, BLOCK=128)
torch.cuda.synchronize()
assert torch.equal(out, 2 * x)
"""


def test_a_script_on_device_cuda_runs_unchanged(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{SCRIPT}")
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", "--triton-arch", "sm_80", "-o", "run.json", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'device "cuda" is the CPU' in done.stdout.replace("\n", " ")
    assert "1 kernel, 1 launch on cpu" in done.stdout


def test_the_device_is_put_back() -> None:
    before = torch.cuda.get_device_capability, torch.cuda.Event
    with consan.triton.cpu():
        assert torch.zeros(1, device="cuda").device.type == "cpu"
    assert (torch.cuda.get_device_capability, torch.cuda.Event) == before
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError)):
            torch.zeros(1, device="cuda")


def wait_stream(first: Any, second: Any) -> None:
    second.wait_stream(first)


def event(first: Any, second: Any) -> None:
    recorded = torch.cuda.Event()
    recorded.record(first)
    second.wait_event(recorded)


def host(first: Any, second: Any) -> None:
    first.synchronize()


def nothing(first: Any, second: Any) -> None:
    pass


@pytest.mark.parametrize(("edge", "clean"), [(wait_stream, True), (event, True), (host, True), (nothing, False)])
def test_kernels_in_two_streams(edge: Callable[[Any, Any], None], clean: bool) -> None:
    with consan.triton.cpu() as report:
        first, second = torch.cuda.Stream(), torch.cuda.Stream()
        x, y, out = (torch.ones(256, device="cuda") for _ in range(3))
        torch.cuda.synchronize()
        with torch.cuda.stream(first):
            kernels.add[(1,)](x, x, y, 256, BLOCK=256)
        edge(first, second)
        with torch.cuda.stream(second):
            kernels.add[(1,)](x, y, out, 256, BLOCK=256)
        second.synchronize()
        assert out.sum().item() == 3 * 256
    assert [each.situation for each in report.findings] == ([] if clean else ["no-stream-edge"])
    assert report.verdict == ("clean" if clean else "violations")


@pytest.mark.parametrize("waits", [True, False])
def test_a_tensor_is_copied_to_the_host(waits: bool) -> None:
    with consan.triton.cpu() as report:
        stream = torch.cuda.Stream()
        x, y = torch.ones(256, device="cuda"), torch.zeros(256, device="cuda")
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            kernels.add[(1,)](x, x, y, 256, BLOCK=256)
        if waits:
            torch.cuda.current_stream().wait_stream(stream)
        copy = y.cpu()
        with torch.cuda.stream(stream):
            kernels.add[(1,)](x, y, y, 256, BLOCK=256)  # the host has waited
        assert copy.sum().item() == 2 * 256
    assert [each.accesses[1].op for each in report.findings] == ([] if waits else ["torch's cpu"])


def test_tensors_of_the_host_are_apart() -> None:
    with consan.triton.cpu() as report:
        stream, data = torch.cuda.Stream(), torch.ones(256)
        x, y = data.cuda(), torch.zeros(256, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            kernels.add[(1,)](x, x, y, 256, BLOCK=256)
        data.fill_(3)  # on a GPU `x` is a copy
    assert report.verdict == "clean"
    assert any("those of the host here" in note for note in report.notes)


def test_a_tensor_that_refuses_questions_is_left_alone() -> None:
    """As those do with which compilers trace a function (Helion's tiles)."""

    class Tile(torch.Tensor):  # type: ignore[misc,name-defined,unused-ignore]
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is not torch.Tensor.__getitem__:
                raise TypeError("a tile is an index only")
            return args[0].sum()

    with consan.triton.cpu():
        x = torch.ones(4, device="cuda")
        assert float(x[Tile()]) == 4
