"""The Python API on the virtual machine: what goes in and out, and what each mistake is answered with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pipeline_kernels as kernels
import pytest

import consan
from consan._errors import UsageError
from consan.session.modules import device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session


def launch(entry: str, args: list[Any], **options: Any) -> consan.Report:
    kernel = consan.Kernel(kernels.MODULE, entry=entry)
    return consan.launch(kernel, **{"grid": 1, "block": 64, "args": args, "device": "cpu", **options})


def test_arrays_change_in_place() -> None:
    out = np.zeros(64, np.uint32)
    report = launch("clean", [out, 5])
    assert report.verdict == "clean"
    assert (out == (np.arange(64) ^ 32) + 5).all()


def test_a_strided_array_changes_in_place_and_a_read_only_one_stays() -> None:
    base = np.zeros((64, 2), np.uint32)
    assert launch("clean", [base[:, 1], 0]).verdict == "clean"
    assert (base[:, 1] == np.arange(64) ^ 32).all()
    assert not base[:, 0].any()
    frozen = np.zeros(64, np.uint32)
    frozen.flags.writeable = False
    assert launch("clean", [frozen, 0]).verdict == "clean"
    assert not frozen.any()


def test_a_race_names_both_accesses() -> None:
    report = launch("racy", [np.zeros(64, np.uint32), np.int32(0)])
    (finding,) = [each for each in report.findings if each.kind == "data-race"]
    assert report.verdict == "violations"
    assert {access.op for access in finding.accesses} == {"st.shared.u32", "ld.shared.u32"}
    assert all(access.warp in (0, 1) for access in finding.accesses)


def test_scalars_take_the_type_of_the_parameter() -> None:
    out = np.zeros(5, np.uint32)
    launch("scalars", [out, 2, np.uint16(7), 1.5, np.arange(3, dtype=np.uint32).tobytes()], block=1)
    assert out[:1].view(np.float32)[0] == 2.0
    assert out[1] == 7
    assert out[2:4].view(np.float64)[0] == 1.5
    assert out[4] == 2


OUT = np.zeros(64, np.uint32)
TWELVE = bytes(12)


@pytest.mark.parametrize(
    ("entry", "args", "message"),
    [
        ("clean", [OUT], "clean takes 2 arguments, 1 given"),
        ("clean", [OUT, 1, 2], "clean takes 2 arguments, 3 given"),
        ("clean", [OUT, OUT], "an array of uint32 cannot be passed for a parameter of 4 bytes"),
        ("clean", [np.array([object()]), 1], "an array of object cannot be passed"),
        ("clean", [OUT, np.int64(1)], "has 8 bytes, its parameter 4"),
        ("clean", [OUT, 1 << 40], "argument 1099511627776 does not fit a parameter of 4 bytes"),
        ("clean", [OUT, 1.5], r"argument 1.5: expected an array, a number, or bytes for a parameter .u32 of 4 bytes"),
        ("clean", [OUT, "x"], "argument 'x': expected an array"),
        ("clean", [OUT, None], "argument None: expected an array"),
        ("scalars", [OUT, 1.0, 65536, 1.0, TWELVE], "argument 65536 does not fit a parameter of 2 bytes"),
        ("scalars", [OUT, 1.0, 1, 1.0, TWELVE[1:]], "has 11 bytes, its parameter 12"),
    ],
)
def test_wrong_arguments(entry: str, args: list[Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        launch(entry, args)
    assert message in str(caught.value)


def test_nothing_is_copied_before_all_arguments_fit() -> None:
    from consan.session.modules.device import shared_device

    backend, asked = shared_device("cpu").backend, list[int]()
    alloc = backend.alloc
    backend.alloc = lambda nbytes: (asked.append(nbytes), alloc(nbytes))[1]
    try:
        with pytest.raises(UsageError):
            launch("clean", [OUT, "x"])
        assert asked == []
        launch("clean", [OUT, 16])
    finally:
        del backend.alloc
    assert asked == [OUT.nbytes]


@pytest.mark.parametrize("shape", [{"grid": ()}, {"block": (1, 2, 3, 4)}])
def test_wrong_shapes(shape: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="expected one to three numbers"):
        launch("clean", [OUT, 1], **shape)


def test_an_entry_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="has no kernel called 'other'"):
        consan.Kernel(kernels.MODULE, entry="other")
    with pytest.raises(UsageError, match="has 10 kernels, choose one"):
        consan.Kernel(kernels.MODULE)


def test_broken_ptx_is_named_with_its_place() -> None:
    with pytest.raises(UsageError) as caught:
        consan.Kernel(kernels.HEAD + ".visible .entry k()\n{\n  add.s32 %r1,, %r2;\n}\n")
    assert "kernel.cu:6:14" in str(caught.value) or ":6:" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none.cu: No such file"):
        consan.Kernel(tmp_path / "none.cu")


def test_a_text_of_one_line_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = 'extern "C" __global__ void k(int* p) { p[0] = 1; }'
    assert consan.Kernel(line).entry == "k"
    assert consan.Kernel(kernels.MODULE.replace("\n", " "), entry="clean").entry == "clean"
    monkeypatch.chdir(tmp_path)
    Path("a{1}.cu").write_text(line)
    assert consan.Kernel("a{1}.cu").name == "a{1}.cu"
    with pytest.raises(UsageError, match="'' is no kernel: expected a path, or the text of CUDA"):
        consan.Kernel("")


@pytest.mark.parametrize(("body", "hint"), [("cooperative_groups::this_grid().sync();", True), ("__trap();", False)])
def test_the_barrier_of_a_grid_in_another_launch_says_what_it_needs(body: str, hint: bool) -> None:
    kernel = consan.Kernel(f'#include <cooperative_groups.h>\nextern "C" __global__ void k(int*) {{ {body} }}', entry="k")
    report = consan.launch(kernel, 2, 32, [np.zeros(1, np.int32)], device="cpu")
    (why,) = report.incomplete
    assert ("k executed trap at" in why, "needs a cooperative launch (consan.launch(..., cooperative=True)" in why) == (True, hint)
    if hint:
        assert consan.launch(kernel, 2, 32, [np.zeros(1, np.int32)], device="cpu", cooperative=True).verdict == "clean"


def test_cuda_that_does_not_compile() -> None:
    with pytest.raises(UsageError, match=r'identifier "nonsense" is undefined'):
        consan.Kernel("__global__ void k() {\n  nonsense;\n}\n")


def test_raise_if_racy() -> None:
    launch("clean", [np.zeros(64, np.uint32), 1]).raise_if_racy()
    with pytest.raises(consan.RacyKernelError):
        launch("racy", [np.zeros(64, np.uint32), 1]).raise_if_racy()


def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (launch("racy", [np.zeros(64, np.uint32), 1], seed=3) for _ in range(2))
    assert first.findings == second.findings


@pytest.mark.parametrize("seed", [0, 3, 7, 11])
def test_the_same_seed_gives_the_same_report_whatever_ran_before(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr("consan.session.modules.device.DEVICES", {})  # as in a new process
    first = launch("racy", [np.zeros(64, np.uint32), 1], seed=seed)
    for block in (32, 64, 64):
        launch("clean", [np.zeros(64, np.uint32), 1], block=block, grid=3)
    assert launch("racy", [np.zeros(64, np.uint32), 1], seed=seed).findings == first.findings


def test_each_taken_report_starts_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.session.modules.device.DEVICES", {})
    session, taken = Session(SessionOptions(device="cpu", seed=7)), []
    prepared = session.prepare(kernels.MODULE)
    for _ in range(3):
        out = session.backend.alloc(256)
        session.launch(prepared, "racy", (1, 1, 1), (64, 1, 1), [out.to_bytes(8, "little"), bytes(4)])
        taken.append(session.take())
    assert [report and report.findings for report in taken] == [taken[0] and taken[0].findings] * 3


def test_check_reports_when_its_block_ends() -> None:
    with consan.check(device="cpu") as report:
        with pytest.raises(AttributeError, match=r"once the block of consan\.check"):
            _ = report.verdict
        assert "still checking" in str(report)
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert report.incomplete == ("no instrumented kernel was launched",)


def test_check_counts_what_launch_launches() -> None:
    with consan.check(device="cpu") as outer:
        assert launch("clean", [np.zeros(64, np.uint32), 1]).verdict == "clean"
        with consan.check(device="cpu") as inner:
            launch("racy", [np.zeros(64, np.uint32), 1])
            launch("racy", [np.zeros(64, np.uint32), 1])
    assert (outer.verdict, outer.findings) == ("clean", ())
    assert inner.verdict == "violations"
    assert [finding.kind for finding in inner.findings] == ["data-race"]
    assert inner.findings[0].count == 128
    assert sum(kernel.launches for kernel in inner.kernels) == 2


def test_a_launch_that_names_no_device_takes_that_of_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    devices, real = list[str](), device.shared_device
    monkeypatch.setattr("consan.session.session.shared_device", lambda name, *rest: devices.append(name) or real(name, *rest))
    with consan.check(device="cpu"):
        launch("clean", [np.zeros(64, np.uint32), 1], device="auto")
    assert devices == ["cpu", "cpu"]


def test_the_public_names() -> None:
    """What the guide names is there, and `dir` lists it; a name that is not there is an AttributeError."""
    assert set(consan.__all__) <= set(dir(consan))
    assert all(getattr(consan, name) is not None for name in consan.__all__)
    assert issubclass(consan.UsageError, consan.ConsanError)
    assert callable(consan.triton.cpu)
    with pytest.raises(AttributeError, match="no attribute 'lunch'"):
        consan.lunch  # noqa: B018


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(consan.UsageError, match="no option 'engin'; did you mean engine"), consan.check(engin="record"):
        pass


TWO = """extern "C" __global__ void two(int* out) {
    __shared__ int a[64], b[64];
    a[threadIdx.x] = 1;
    out[threadIdx.x] = a[63 - threadIdx.x] + b[threadIdx.x];
}"""


def _two(**how: Any) -> consan.Report:
    return consan.launch(consan.Kernel(TWO), 1, 64, [np.zeros(64, np.int32)], device="cpu", **how)


@pytest.mark.parametrize(
    ("how", "kinds"),
    [
        ({}, {"data-race", "uninitialized-read"}),
        ({"skip": "data-race"}, {"uninitialized-read"}),
        ({"skip": ["data-race", "uninitialized-read"]}, set()),
        ({"checks": ("data-race",)}, {"data-race"}),
    ],
)
def test_kinds_that_a_caller_leaves_out(how: dict[str, Any], kinds: set[str]) -> None:
    assert {finding.kind for finding in _two(**how).findings} == kinds
    with consan.check(device="cpu", **how) as report:
        _two()
    assert {finding.kind for finding in report.findings} == kinds
    assert (report.verdict == "violations") is bool(kinds)


def test_a_file_of_suppressions(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text('[[tool.consan.suppressions]]\nkind = "data-race"\nreason = "known"\n')
    found = {finding.kind: finding.suppressed for finding in _two(suppress=tmp_path / "known.toml").findings}
    assert found["uninitialized-read"] is None
    assert found["data-race"] is not None
    assert found["data-race"].reason == "known"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"skip": "data-rac"}, "did you mean data-race"),
        ({"skip": "deadlock"}, "cannot be excluded"),
        ({"suppress": "no.toml"}, "cannot read no.toml"),
    ],
)
def test_what_cannot_be_left_out(how: dict[str, Any], words: str) -> None:
    with pytest.raises(consan.UsageError, match=words):
        _two(**how)
    with pytest.raises(consan.UsageError, match=words), consan.check(device="cpu", **how):
        pass
