"""A file of recorded histories gives the same report elsewhere; one that is damaged, or that lacks something, never gives `clean`."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from record_support import KERNELS, file_of, kernel, twin_file

import consan
from consan.__main__ import main
from consan._errors import UsageError
from consan.checker.logs import retained
from consan.session.executing.histories import replay
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

COPY = "cp_async_no_wait"
INDEX = "histories.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _launch(name: str, racy: bool, **options: Any) -> Any:
    spec = twin_file.read(file_of(name))
    given = {"smem": spec.smem, "policy": spec.policy, "device": "cpu", "engine": "record", **options}
    return consan.launch(kernel(name, racy), spec.grid, spec.block, spec.parameters(spec.fresh_args()), **given)


def _file(folder: Path) -> Path:
    (found,) = folder.glob(".consan/*.histories")
    return found


def _replayed(path: Path) -> Any:
    session = Session(SessionOptions(device="cpu", engine="record"), private=True)
    return replay(session, path.name, path.read_bytes())[0]


def _told(report: Any) -> dict[str, Any]:
    """The report but for what differs by design. The runs that compare the results of a fix need the kernel."""
    differs = ("notes", "command", "sources", "exit", "status")
    told = {name: value for name, value in json.loads(report.to_json()).items() if name not in differs}
    for fix in filter(None, (finding.get("verified") for finding in told["findings"])):
        fix["text"], fix["schedules"] = fix["text"].partition(" nothing is found")[0], 0
    return told


NAMES = [name for name in (KERNELS.parent / "record" / "recorded.txt").read_text().split() if (KERNELS / "twins" / f"{name}.cu").is_file()]


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if at % 6 else ()) for at, name in enumerate(NAMES[::6])])
@pytest.mark.parametrize("racy", [True, False])
def test_a_replay_gives_the_same_report(name: str, racy: bool, folder: Path) -> None:
    report = _launch(name, racy, keep_histories=True, seed=3)
    if report.kernels[0].engine != "record":
        assert not list(folder.glob(".consan/*.histories"))
        return
    again = _replayed(_file(folder))
    if report.incomplete or any("did not end" in reason for reason in again.incomplete):  # how a launch ended is not in its log
        assert again.verdict != "clean"
        assert {finding.kind for finding in again.findings} <= {finding.kind for finding in report.findings}
    else:
        assert _told(again) == _told(report)


def test_a_replay_keeps_the_policy(folder: Path) -> None:
    report = _launch("tma_epilogue_issuer_fences", True, keep_histories=True)
    again = _replayed(_file(folder))
    assert [(finding.kind, finding.policy) for finding in report.findings] == [("missing-proxy-fence", "isa")]
    assert _told(again) == _told(report)


DIFFERENT = """extern "C" __global__ void k(int* out) {
    __shared__ int t[64];
    t[threadIdx.x ^ blockIdx.x] = 1;
    out[threadIdx.x] = t[threadIdx.x ^ blockIdx.x];
}"""


def test_a_replay_of_a_sample_is_incomplete_too(folder: Path) -> None:
    made = consan.Kernel(DIFFERENT, entry="k", arch="sm_80")
    report = consan.launch(made, 4, 64, [np.zeros(64, np.int32)], device="cpu", engine="record", keep_histories=True, sample=1)
    again = _replayed(_file(folder))
    assert (report.verdict, again.verdict) == ("incomplete", "incomplete")
    assert any("3 CTAs" in why for why in report.incomplete)
    assert set(again.incomplete) == set(report.incomplete)


STORES = {
    "between CTAs": ("out[threadIdx.x] = blockIdx.x;", "violations", "checked"),
    "within a CTA": ("out[blockIdx.x * 64 + threadIdx.x / 2] = threadIdx.x;", "violations", "checked"),
    "proven": ("out[blockIdx.x * 64 + threadIdx.x] = 1;", "clean", "proven"),
    "compared": ("int i = blockIdx.x * 64 + threadIdx.x; out[i + out[i]] = 1;", "clean", "checked"),
}


@pytest.mark.parametrize("choice", ["auto", "on", "off"])
@pytest.mark.parametrize("name", STORES)
def test_global_memory_is_kept_and_compared_again(name: str, choice: str, folder: Path) -> None:
    body, verdict, coverage = STORES[name] if choice != "off" else (STORES[name][0], "clean", "excluded by the user")
    made = consan.Kernel(f'extern "C" __global__ void k(int* out) {{ {body} }}', entry="k")
    arguments = [np.zeros(256, np.int32)]
    report = consan.launch(made, 4, 64, arguments, device="cpu", engine="record", keep_histories=True, global_memory=choice)
    again = _replayed(_file(folder))
    assert report.verdict == verdict
    assert _told(report)["kernels"][0]["coverage"]["global-memory"] == coverage
    assert _told(again) == _told(report)


def test_a_sample_is_compared_again_from_its_own_logs(folder: Path) -> None:
    """The file has the logs of these CTAs only."""
    made = consan.Kernel('extern "C" __global__ void k(int* out) { out[threadIdx.x] = blockIdx.x; }', entry="k")
    report = consan.launch(made, 64, 64, [np.zeros(64, np.int32)], device="cpu", engine="record", keep_histories=True, sample=3)
    again = _replayed(_file(folder))
    assert {finding.kind for finding in report.findings} == {"global-race"}
    assert _told(again) == _told(report)


def test_the_command_needs_no_source(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder / "mine.cu"
    source.write_text(
        'extern "C" __global__ void kernel(int* out) {\n  __shared__ int tile[64];\n'
        "  tile[threadIdx.x] = 1;\n  out[threadIdx.x] = tile[63 - threadIdx.x];\n}\n"
    )
    launch = ["--device", "cpu", "--grid", "3", "--block", "64", "--arg", "i32[64]=zeros", "--engine", "record", "--keep-histories"]
    assert main(["check", str(source), *launch]) == 66
    first = capsys.readouterr().out
    source.unlink()
    assert main(["replay", str(_file(folder)), "-o", "again.json"]) == 66
    second = capsys.readouterr().out
    assert "tile[63 - threadIdx.x]" in second
    first, second = (" ".join(text.partition("  fix:")[0].split()) for text in (first, second))
    assert second == first  # a fix may be verified by runs, which need the source
    assert json.loads((folder / "again.json").read_text())["verdict"] == "violations"


SOURCE = """
extern "C" __global__ void kernel(int n) {
    __shared__ int t[64];
    t[threadIdx.x] = 1;
    int other = t[threadIdx.x ^ n];
    asm volatile("" :: "r"(other));
}
"""


class _Program:
    """A session that keeps histories, and launches SOURCE."""

    def __init__(self, **options: Any) -> None:
        self.session = Session(SessionOptions.of({"device": "cpu", "engine": "record", "keep_histories": True, **options}))
        self._prepared = self.session.prepare(consan.Kernel(SOURCE, entry="kernel", arch="sm_80").ptx)

    def launch(self, n: int) -> None:
        self.session.launch(self._prepared, "kernel", (4, 1, 1), (64, 1, 1), [np.int32(n).tobytes()])


def test_launches_of_one_session_are_in_one_file(folder: Path) -> None:
    program = _Program()
    for n in (0, 32, 0):
        program.launch(n)
    report = program.session.report()
    again = _replayed(_file(folder))
    assert report.findings
    assert (again.kernels[0].launches, again.kernels[0].histories) == (3, 2)
    assert _told(again) == _told(report)


def test_each_report_of_a_session_has_a_file(folder: Path) -> None:
    program = _Program()
    for n in (0, 32):
        program.launch(n)
        report = program.session.take()
        assert report is not None
        name = report.notes[-1].rpartition(" ")[2]
        assert _replayed(folder / name).verdict == report.verdict


def test_a_forked_process_keeps_only_what_it_launches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = _Program()
    program.launch(32)
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    program.session.take()
    assert not list(folder.iterdir())
    program.launch(0)
    program.session.take()
    assert _file(folder).name.startswith(f"{child}-")
    assert _replayed(_file(folder)).verdict == "clean"


def test_a_kernel_that_polls_is_kept_whatever_is_looked_for(folder: Path) -> None:
    polls = SOURCE.replace("int other", "while (((volatile int*)t)[threadIdx.x] == 0) {}\n    int other")
    program = _Program(global_memory="off")
    prepared = program.session.prepare(consan.Kernel(polls, entry="kernel", arch="sm_80").ptx)
    program.session.launch(prepared, "kernel", (1, 1, 1), (64, 1, 1), [bytes(4)])
    report = program.session.report()
    assert (report.verdict, {kernel.engine for kernel in report.kernels}) == ("clean", {"record"})
    assert _replayed(_file(folder)).verdict == "clean"


def test_launches_without_room_make_the_replay_incomplete(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained, "MOST_BYTES", -1)
    program = _Program()
    program.launch(0)
    program.session.report()
    again = _replayed(_file(folder))
    assert again.verdict == "incomplete"
    assert "1 launch had no room in the file" in again.incomplete


def test_a_folder_that_cannot_be_written_is_a_note(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    program = _Program()
    program.launch(32)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    report = program.session.report()
    assert report.verdict == "violations"
    assert "cannot write" in report.notes[-1]


def test_only_recording_has_histories() -> None:
    with pytest.raises(UsageError, match="--engine record"):
        Session(SessionOptions(device="cpu", engine="inline", keep_histories=True))


# -- damaged files ---------------------------------------------------------------------------------------------------------


def _changed(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The file with another index."""
    source, target = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name in source.namelist():
            content = source.read(name)
            if name == INDEX:
                index = json.loads(content)
                change(index)
                content = json.dumps(index).encode()
            file.writestr(name, content)
    return retained.sealed(target.getvalue())


OTHER = SOURCE.replace("t[threadIdx.x] = 1;", "t[threadIdx.x] = 1; __syncthreads();")
CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another version": lambda index: index.update(schema="consan.histories/9"),
    "no modules": lambda index: index.pop("modules"),
    "no such module": lambda index: index["launches"][0].update(module=7),
    "no such kernel": lambda index: index["launches"][0].update(entry="other"),
    "another block": lambda index: index["launches"][0].update(block=[256, 1, 1]),
    "another grid": lambda index: index["launches"][0].update(grid=[1, 1, 1]),
    "a negative grid": lambda index: index["launches"][0].update(grid=[-4, -1, 1]),
    "no logs": lambda index: index["launches"][0].update(logs=[]),
    "logs that are not there": lambda index: index["launches"][0].update(logs=[0, 99]),
    "other templates": lambda index: index["modules"][0].update(templates="0"),
    "another module": lambda index: index["modules"][0].update(ptx=consan.Kernel(OTHER, entry="kernel", arch="sm_80").ptx),
    "a module that is no PTX": lambda index: index["modules"][0].update(ptx="nonsense"),
    "no window": lambda index: index["launches"][0].pop("window"),
    "text for a number": lambda index: index["launches"][0].update(window=["x", "y"]),
    "a list for the index": lambda index: index.update(launches=3),
    "buffers of another form": lambda index: index["launches"][0].update(buffers=[{"x": 1}]),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with one launch that has findings."""
    before, folder = Path.cwd(), tmp_path_factory.mktemp("data")
    os.chdir(folder)
    try:
        program = _Program()
        program.launch(32)
        program.session.report()
        return _file(folder).read_bytes()
    finally:
        os.chdir(before)


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_file_that_does_not_fit_is_one_error(
    change: Callable[[dict[str, Any]], object], data: bytes, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.histories").write_bytes(_changed(data, change))
    assert main(["replay", "x.histories"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("consan: error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_cut_file_is_one_error(part: float, data: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.histories").write_bytes(data[: int(len(data) * part)])
    assert main(["replay", "x.histories"]) == 2
    assert "damaged" in capsys.readouterr().err


def test_a_flipped_bit_is_an_error(data: bytes, folder: Path) -> None:
    random = np.random.default_rng(5)
    for position in random.integers(0, len(data), 60):
        broken = bytearray(data)
        broken[position] ^= 1 << int(random.integers(8))
        (folder / "x.histories").write_bytes(broken)
        assert main(["replay", "x.histories"]) == 2


@pytest.mark.parametrize("option", [["--seed", "3"], ["--confirm", "2"]])
def test_options_of_schedules_are_refused(option: list[str], data: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.histories").write_bytes(data)
    assert main(["replay", "x.histories", *option]) == 2
    assert option[0] in capsys.readouterr().err
