"""Native programs under `consan run`, with a driver that is made up: what it is handed, and what becomes of it when processes end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from native_case import STATUS, Case, environment, options
from sampled import but

from consan.__main__ import main
from consan._errors import EnvironmentFailure, NotSupported
from consan.native.build import INTERPOSER
from consan.native.program import NativeProgram
from consan.native.run import run_native
from consan.native.server import Server
from consan.native.wire import MAGIC, MessageKind
from consan.options import AUTO, INLINE, read_kernel_filter
from consan.reports.model import CLEAN, INCOMPLETE, VIOLATIONS, Report
from consan.toolchain.host_library import C, HostLibrary

pytestmark = pytest.mark.skipif(C.compiler() is None, reason="no C compiler")
MAGIC_OF_FATBIN = b"\x50\xed\x55\xba"
NO_FINDING = {"FAKE_CUDA_RING": ""}


def launches(report: Report) -> dict[str, int]:
    counted = Counter[str]()  # a kernel with hooks and one that is recorded have the same name
    for kernel in report.kernels:
        counted[kernel.name] += kernel.launches
    return dict(+counted)


# Each way to the driver, each call that loads an image, each call that launches.
WAYS = [
    ("direct", "cuModuleLoadData", "ptx", "cuLaunchKernel"),
    ("dlsym", "cuModuleLoadData", "ptx", "cuLaunchKernel"),
    ("asked", "cuModuleLoadDataEx", "ptx", "cuLaunchKernelEx"),
    ("older", "cuModuleLoadData", "ptx", "cuLaunchKernel"),
    ("asked", "cuModuleLoad", "ptx", "cuLaunchCooperativeKernel"),
    ("linked", "cuLibraryLoadFromFile", "ptx", "cuLaunchKernel"),
    ("threads", "cuModuleLoadFatBinary", "plain", "cuLaunchKernel"),
    ("asked", "cuLibraryLoadData", "zstd", "cuLaunchKernel"),
    ("dlsym", "cuLibraryLoadFromFile", "lz4", "cuLaunchKernel"),
]


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_every_way_to_the_driver(way: tuple[str, ...], case: Case) -> None:
    how, loader, image, launcher = way
    status, report, handed = case.run(how, loader, case.image(image), launcher, **(NO_FINDING if image != "ptx" else {}))
    unflagged = INCOMPLETE if how == "threads" else CLEAN  # a launch into a thread's default stream is not recorded
    assert (status, report.verdict) == (0 if how == "direct" else STATUS, VIOLATIONS if image == "ptx" else unflagged)
    assert launches(report) == ({} if how == "threads" else {"sums": 1})
    assert not report.uninstrumented
    assert handed[0].endswith(" elf that records"), "the driver is handed the instrumented image"
    assert handed[-1].split() == [launcher + "_ptsz" * (how == "threads"), "sums"]


def test_a_finding_has_both_lines(case: Case) -> None:
    _, report, _ = case.run("asked", "cuLibraryLoadData", case.image("ptx"))
    (finding,) = report.findings
    assert [(Path(access.file).name, access.line) for access in finding.accesses[:2]] == [("sums.cu", 4), ("sums.cu", 9)]


def test_the_command(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    with environment(case.environment):
        status = main(["run", "-o", "run.json", str(case.folder / "program"), "asked", "cuLibraryLoadData", case.image("ptx")])
    stored = json.loads((tmp_path / "run.json").read_text())
    assert (status, stored["exit"], stored["verdict"], stored["device"]) == (66, STATUS, VIOLATIONS, "Fake GPU 0")
    assert "tile[t] = x[blockIdx.x * 256 + t];" in capfd.readouterr().out


def test_the_steps_after_a_load_are_followed(case: Case) -> None:
    """A module that is unloaded, a context that is destroyed, and more launches: one report, and the counts of all."""
    words = "asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernelEx", "again", "unload", "reset"
    status, report, handed = case.run(*words, **NO_FINDING)
    assert (status, report.verdict, launches(report)) == (STATUS, CLEAN, {"sums": 2})
    assert handed[-2:] == ["cuModuleUnload elf", "cuDevicePrimaryCtxReset "], "consan's thread has left the context"


def test_without_a_context_the_session_takes_the_runtimes(case: Case) -> None:
    _, report, handed = case.run("asked", "cuLibraryLoadData", case.image("clean"), FAKE_CUDA_NO_CONTEXT="1", **NO_FINDING)
    assert (report.verdict, launches(report)) == (CLEAN, {"sums": 1})
    assert "cuDevicePrimaryCtxRetain " in handed


@pytest.mark.parametrize("launcher", ["cuLaunchKernel", "cuLaunchKernelEx"])
def test_a_launch_into_a_graph_is_no_launch_yet(launcher: str, case: Case) -> None:
    """The graph is never run: the launch is neither counted nor called unchecked. Without CUPTI nobody compares what two streams do."""
    _, report, handed = case.run("asked", "cuModuleLoadData", case.image("clean"), launcher, "capture", "again", **NO_FINDING)
    assert [why for why in report.incomplete if not why.startswith("launches of different streams")] == []
    assert (launches(report), handed[-1]) == ({"sums": 1}, f"captured {launcher}")


def test_the_attributes_of_a_launch_reach_the_driver(case: Case) -> None:
    _, report, handed = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernelEx", "attribute", "again", **NO_FINDING)
    assert (report.verdict, launches(report), handed[-2]) == (CLEAN, {"sums": 2}, "attribute 4: 2 1 1")


@pytest.mark.parametrize("image", ["clean", "code"])
@pytest.mark.parametrize("more", [{}, {"FAKE_CUDA_GRAPH_HAS_KERNELS": "1"}], ids=["functions", "kernels"])
def test_the_kernels_of_a_graph_are_counted_when_it_runs(image: str, more: dict[str, str], case: Case) -> None:
    _, report, _ = case.run("asked", "cuLibraryLoadData", case.image(image), "cuLaunchKernel", "graph", **NO_FINDING, **more)
    listed = {kernel.name: kernel.launches for kernel in report.uninstrumented}
    assert (report.verdict, launches(report), listed) == (INCOMPLETE, *(({"sums": 1}, {}) if image == "clean" else ({}, {"sums": 5})))
    assert any("4 launches of sums ran unchecked" in why for why in report.incomplete) is (image == "clean")


def test_the_kernels_of_a_conditional_node_are_listed_without_their_names(case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", "conditional", **NO_FINDING)
    assert (report.verdict, launches(report)) == (INCOMPLETE, {"sums": 1})
    assert [(each.name, each.launches) for each in report.uninstrumented] == [("kernels in a conditional node of a graph", 2)]


@pytest.mark.parametrize(("image", "verdict"), [("clean", CLEAN), ("code", INCOMPLETE)])
@pytest.mark.parametrize("step", ["function", "module"])
def test_a_function_of_a_librarys_kernel_has_its_name(step: str, image: str, verdict: str, case: Case) -> None:
    _, report, _ = case.run("asked", "cuLibraryLoadData", case.image(image), "cuLaunchKernel", step, "again", **NO_FINDING)
    listed = {kernel.name: kernel.launches for kernel in report.uninstrumented}
    assert (report.verdict, launches(report) | listed) == (verdict, {"sums": 2})


@pytest.mark.parametrize("image", ["clean", "code"])
def test_a_launch_on_several_devices_is_as_many_launches(image: str, case: Case) -> None:
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image(image), "cuLaunchCooperativeKernelMultiDevice", **NO_FINDING)
    assert {kernel.name: kernel.launches for kernel in report.uninstrumented} == ({"sums": 2} if image == "code" else {})
    assert any("2 launches of sums ran unchecked" in why for why in report.incomplete) is (image == "clean")


@pytest.mark.parametrize("image", ["clean", "ptx"])
def test_a_module_of_a_second_context_has_shadow_memory_there(image: str, case: Case) -> None:
    words = "asked", "cuModuleLoadData", case.image(image), "cuLaunchKernel", "context", "reload", "again"
    given = options(engine="inline")
    status, report, handed = case.run(*words, given=given, **(NO_FINDING if image == "clean" else {}))
    assert (status, report.verdict, launches(report)) == (STATUS, CLEAN if image == "clean" else VIOLATIONS, {"sums": 2})
    assert handed.count("cuModuleLoadData elf with hooks") == 2


ENDED = {"crash": 128 + signal.SIGSEGV, "abort": 128 + signal.SIGABRT, "kill": 128 + signal.SIGKILL}


def test_threads_and_forks(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", "threads", "fork")
    assert (status, report.verdict, launches(report)) == (STATUS, VIOLATIONS, {"sums": 402})
    assert "2 processes included" in report.notes


@pytest.mark.parametrize("step", but(["abort"], ENDED))
def test_what_a_program_has_found_before_it_is_killed_is_kept(step: str, case: Case) -> None:
    status = ENDED[step]
    ended, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", step)
    assert (ended, report.verdict) == (status, VIOLATIONS)
    assert any("before consan had read its counts" in reason for reason in report.incomplete)
    ended, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", step, **NO_FINDING)
    assert (ended, report.verdict) == (status, INCOMPLETE), "nothing found is not clean"


def test_a_program_that_leaves_without_its_handlers_is_reported(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", "_exit", **NO_FINDING)
    assert (status, report.verdict, launches(report)) == (21, CLEAN, {"sums": 1})


def test_a_program_that_ends_in_a_thread_is_reported(case: Case) -> None:
    status, report, _ = case.run("asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", "vfork", "threads", "exit")
    assert (status, report.verdict, launches(report)) == (22, CLEAN, {"sums": 401})


def test_a_program_that_closes_all_files_gets_nothing_of_consan_in_its_own(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    steps = "close", "reload", "again", "mine"
    words = "asked", "cuModuleLoadData", case.image("clean"), "cuLaunchKernel", *steps
    status, report, handed = case.run(*words, given=options(engine=INLINE), **NO_FINDING)
    assert (status, report.verdict, handed[2]) == (STATUS, INCOMPLETE, "cuModuleLoadData text")
    assert any("ended, or closed consan's connection, before" in reason for reason in report.incomplete)
    assert "consan: error: the program has closed consan's connection; kernels loaded from now on are not checked" in capfd.readouterr().err


@pytest.mark.parametrize("how", ["dlsym", "linked"])
def test_a_program_that_asks_nvrtc_for_machine_code_gets_ptx(how: str, case: Case) -> None:
    status, report, handed = case.run(how, "-arch=sm_90a", case.image("ptx"))
    assert (status, report.verdict, launches(report)) == (STATUS, VIOLATIONS, {"sums": 1})
    assert handed[:3] == ["option -arch=sm_90a", "option -lineinfo", "cuModuleLoadData elf that records"]


def test_a_program_whose_nvrtc_fails_with_the_added_option_gets_its_own_call(case: Case) -> None:
    status, report, handed = case.run("dlsym", "-arch=sm_90a", case.image("ptx"), FAKE_NVRTC_REFUSES="-lineinfo")
    assert (status, report.verdict, launches(report)) == (STATUS, VIOLATIONS, {"sums": 1})
    assert handed[:4] == ["option -arch=sm_90a", "option -lineinfo", "option -arch=sm_90a", "cuModuleLoadData elf that records"]
    status, _, handed = case.run("dlsym", "-arch=sm_90a", case.image("ptx"), FAKE_NVRTC_REFUSES="-arch=sm_90a")
    assert status != STATUS, "a failure of the program's own call is its own"
    assert handed == ["option -arch=sm_90a", "option -lineinfo", "option -arch=sm_90a"]


def test_cudnn_gets_the_machine_code_that_it_asks_nvrtc_for(case: Case) -> None:
    """It looks into it, and has no plan for a convolution otherwise."""
    assert of_cudnn(case, "dlsym", "-arch=sm_90a", case.image("ptx"))[:2] == ["option -arch=sm_90a", "cuModuleLoadData elf"]


@pytest.mark.parametrize("loader", ["cuModuleLoadData", "cuLibraryLoadData"])
def test_cudnn_loads_its_ptx_as_it_is(loader: str, case: Case) -> None:
    """It asks how many CTAs of its kernel fit."""
    assert of_cudnn(case, "dlsym", loader, case.image("ptx"), "cuLaunchKernel")[0] == f"{loader} text"


def of_cudnn(case: Case, *words: str) -> list[str]:
    """The images that a program with the name of such a library hands to the driver. Its kernel is listed."""
    program, log = case.folder / "libcudnn_program", case.folder / "log"
    program.write_bytes((case.folder / "program").read_bytes())
    program.chmod(0o755)
    log.unlink(missing_ok=True)
    with environment(case.environment | {"FAKE_CUDA_LOG": str(log)} | NO_FINDING):
        status, report, _ = run_native(NativeProgram(str(program), (str(program), *words)), options())
    assert (status, report.verdict, launches(report)) == (STATUS, INCOMPLETE, {})
    assert {kernel.name: kernel.launches for kernel in report.uninstrumented} == {"sums": 1}
    return log.read_text().splitlines()


def test_stress_delays_the_warps_of_each_seed(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = [str(case.folder / "program"), "asked", "cuModuleLoadData", case.image("ptx")]
    log = case.folder / "log"
    with environment(case.environment):  # the record of the form with delays is there for the worker
        run_native(NativeProgram(program[0], tuple(program)), options(seed=7), delays=True)
    log.unlink(missing_ok=True)
    with environment(case.environment | {"FAKE_CUDA_LOG": str(log)}):
        status = main(["stress", "--seeds", "5..6", "--confirm", "0", "-o", "stress.json", "--", *program])
    stored = json.loads((tmp_path / "stress.json").read_text())
    assert (status, stored["verdict"], stored["subject"]["device"]) == (66, VIOLATIONS, "gpu")
    assert [finding["finding"]["kind"] for finding in stored["findings"]] == ["data-race"]
    assert [line for line in log.read_text().splitlines() if line.startswith("seed")] == ["seed 5", "seed 6"]


def test_python_as_a_program(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Another interpreter than consan's. A note says what is better."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", "/another/python3")
    code = f"import os; os.execv({str(case.folder / 'program')!r}, ['program', 'dlsym', 'cuModuleLoadData', {case.image('ptx')!r}])"
    (tmp_path / "script.py").write_text(code)
    with environment(case.environment):
        status = main(["run", "--device", "gpu", "python3", "script.py"])
    assert status == 66
    assert "without the word python" in capfd.readouterr().out


# Calls that give an image to a linker, and what they are given: nvcc's relocatable device code, in a fat binary for each file.
PARTS = ("part_sums", "part_values")
LINKERS = [
    ("dlsym", "cuLinkAddData_v2"),
    ("asked", "cuLinkAddFile"),
    ("dlsym", "__nvJitLinkAddData_13_0"),
    ("linked", "__nvJitLinkAddFile_13_0"),
]


@pytest.mark.parametrize("way", LINKERS, ids="-".join)
def test_what_a_program_links_is_known_by_its_machine_code(way: tuple[str, str], case: Case) -> None:
    status, report, handed = case.run(*way, case.image(*PARTS), given=options(global_memory="off"), **NO_FINDING)
    assert (status, report.verdict, launches(report)) == (STATUS, CLEAN, {"sums": 1}), report.incomplete
    assert "cuModuleLoadData elf that records" in handed


def test_fat_binaries_that_the_driver_links(case: Case) -> None:
    """A program built with -rdc=true: its wrapper names the fat binary that nvcc has linked, empty without machine code, and all parts."""
    (case.folder / "empty.fatbin").write_bytes(MAGIC_OF_FATBIN + struct.pack("<HHQ", 1, 16, 0))
    files = ",".join([str(case.folder / "empty.fatbin"), case.image(*PARTS)])
    status, report, handed = case.run("asked", "cuLibraryLoadData", files, given=options(global_memory="off"), **NO_FINDING)
    assert (status, report.incomplete, launches(report)) == (STATUS, (), {"sums": 1})
    assert handed[0] == "cuLibraryLoadData elf that records"


def test_a_part_that_is_missing_leaves_the_module_alone(case: Case) -> None:
    status, report, handed = case.run("dlsym", "cuLinkAddData_v2", case.image("part_sums", "code"), **NO_FINDING)
    assert (status, report.verdict, handed[-2]) == (STATUS, INCOMPLETE, "cuModuleLoadData elf")
    assert any("linked with machine code that has no PTX, for _Z8value_ofi, weight" in note for note in report.notes)


def test_a_compiler_within_a_library_of_the_program_is_seen(case: Case) -> None:
    """The library is opened with RTLD_LOCAL, as plug-ins and Python's extensions are."""
    status, report, handed = case.run("dlsym", str(case.folder / "plugin.so"), case.image("ptx"))
    assert (status, report.verdict, launches(report)) == (STATUS, VIOLATIONS, {"sums": 1})
    assert handed[0] == "cuModuleLoadData elf that records"


@pytest.mark.parametrize("output", but(["--output-file code"], ["-o code", "--output-file code", "--output-file=code"]))
def test_what_a_process_assembles_is_known_by_its_machine_code(output: str, case: Case) -> None:
    more = {"PTXAS_IN": str(case.folder), "PTXAS_OUTPUT": output}
    status, report, handed = case.run("dlsym", "ptxas", case.image("ptx"), **more)
    assert (status, report.verdict, launches(report)) == (STATUS, VIOLATIONS, {"sums": 1})
    assert handed[0] == "cuModuleLoadData elf that records"


def test_what_an_assembler_leaves_that_has_failed_is_not_known(case: Case) -> None:
    more = {"PTXAS_IN": str(case.folder), "PTXAS_OUTPUT": "-o code || true", "PTXAS_FAILS": "1"}
    _, report, handed = case.run("dlsym", "ptxas", case.image("ptx"), **more)
    assert any("no linker or ptxas of this run has made" in note for note in report.notes)
    assert (report.verdict, handed[0]) == (INCOMPLETE, "cuModuleLoad text"), "its own file"


def test_nvrtcs_machine_code_for_a_linker_is_known_by_its_ptx(case: Case) -> None:
    status, report, handed = case.run("dlsym", "-rdc=true", case.image("ptx"))
    assert (status, report.verdict, handed[2]) == (STATUS, VIOLATIONS, "cuModuleLoadData elf that records")


# -- what is not instrumented ---------------------------------------------------------------------------------------------------------


def test_machine_code_is_listed_with_its_launches_and_how_to_build_it(case: Case) -> None:
    status, report, handed = case.run("asked", "cuLibraryLoadData", case.image("code"), "cuLaunchKernel", "again")
    assert (status, report.verdict) == (STATUS, INCOMPLETE)
    assert [(kernel.name, kernel.launches) for kernel in report.uninstrumented] == [("sums", 2)]
    assert any("-gencode arch=compute_90a,code=compute_90a -lineinfo" in note for note in report.notes)
    assert handed[0] == "cuLibraryLoadData wrapper", "the program's own image"


@pytest.mark.parametrize("engine", [AUTO, INLINE])
def test_a_module_that_the_driver_refuses_instrumented_is_loaded_as_it_is(engine: str, case: Case) -> None:
    words = "asked", "cuModuleLoadData", case.image("ptx")
    status, report, handed = case.run(*words, given=options(engine=engine), FAKE_CUDA_REFUSES="1")
    assert (status, report.verdict, handed[0]) == (STATUS, INCOMPLETE, "cuModuleLoadData text")
    assert any("the driver did not load its instrumented form (CUDA error 209)" in reason for reason in report.incomplete)


@pytest.mark.parametrize("text", ["no PTX at all", ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry sums( {"])
def test_an_image_that_is_no_ptx_or_broken_is_left_alone(text: str, case: Case, tmp_path: Path) -> None:
    (tmp_path / "image").write_text(text)
    status, report, handed = case.run("asked", "cuModuleLoadData", str(tmp_path / "image"))
    assert (status, report.verdict, handed[0]) == (STATUS, INCOMPLETE, "cuModuleLoadData text")


def test_a_filter_leaves_modules_out(case: Case) -> None:
    left_out = options(kernel_name=read_kernel_filter("kns=other"))
    _, report, handed = case.run("asked", "cuModuleLoadData", case.image("ptx"), given=left_out)
    assert (report.verdict, handed[0]) == (INCOMPLETE, "cuModuleLoadData text")
    _, report, _ = case.run("asked", "cuModuleLoadData", case.image("ptx"), given=options(kernel_name=read_kernel_filter("kns=sum")))
    assert report.verdict == VIOLATIONS


def test_options_that_do_not_fit_are_refused(case: Case) -> None:
    for given in (options(launch_skip=1), options(launch_count=1)):
        with pytest.raises(NotSupported):
            case.run("asked", "cuModuleLoadData", case.image("ptx"), given=given)


def test_stress_on_the_virtual_machine_is_refused(case: Case, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stored = tmp_path / "stress.json"
    words = ["stress", "--device", "cpu", "--seeds", "2", "-o", str(stored), "--", str(case.folder / "program")]
    assert main(words) == 2
    assert "stress --device cpu does not work for programs that are not Python" in capfd.readouterr().err
    assert not stored.exists()


def test_without_a_compiler_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/no/such/compiler")
    with pytest.raises(EnvironmentFailure, match="not Python: cannot run /no/such/compiler"):
        INTERPOSER.compiled({})
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentFailure, match="needs a C compiler: install gcc or clang"):
        INTERPOSER.compiled({})


# -- the connection -------------------------------------------------------------------------------------------------------------------


def start(server: Server, case: Case, *steps: str) -> subprocess.Popen[str]:
    words = ["asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", *steps]
    given = server.environment() | case.environment
    return subprocess.Popen([case.folder / "program", *words], env=given, stdin=-1, stdout=-1, stderr=-1, text=True)


@pytest.mark.parametrize(("engine", "goes_on"), [(INLINE, True), (AUTO, False)])
def test_a_server_that_dies(engine: str, goes_on: bool, case: Case) -> None:
    """The program goes on. A launch that would be recorded fails: there is nobody to make a log."""
    case.run("asked", "cuModuleLoadData", case.image("ptx"))  # the record is there for the other process
    words = [str(case.folder / "program"), "asked", "cuModuleLoadData", case.image("ptx"), "cuLaunchKernel", "wait", "again", "wait"]
    given = {**os.environ, **case.environment, "TMPDIR": str(case.folder)}  # it leaves its folder behind
    command = [sys.executable, "-m", "consan", "run", "--engine", engine, *words]
    with subprocess.Popen(command, env=given, cwd=case.folder, stdin=-1, stdout=-1, stderr=-1, text=True) as consan:
        assert consan.stdout is not None
        assert consan.stdout.readline() == "ready\n"
        consan.kill()
        rest, errors = consan.communicate("\n\n")
    assert rest == ("ready\n" if goes_on else "cuLaunchKernel: error 999\n")
    assert "the consan process has gone" in errors


def test_only_the_user_reaches_the_socket(case: Case) -> None:
    with Server(options()) as server:
        path = Path(server.environment()["_CONSAN_SOCKET"])
        modes = path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777
    assert modes == (0o600, 0o700)
    assert not path.parent.exists()


def test_a_folder_whose_name_is_too_long_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(HostLibrary, "data", lambda _: b"")
    with pytest.raises(EnvironmentFailure, match=r"no folder for the socket of the program \(TMPDIR\)"), Server(options()):
        pass
    assert not list(folder.iterdir())


def garbage(seed: int) -> bytes:
    """Bytes; some begin like a message: kinds, sizes and payloads of all sorts."""
    chance = random.Random(seed)
    noise = chance.randbytes(chance.randrange(200))
    kind, length = chance.randrange(16), chance.choice([0, len(noise), 1 << 20, 1 << 40, (1 << 64) - 1])
    head = struct.pack("<IIQQQ", MAGIC, kind, chance.getrandbits(64), chance.getrandbits(20), length)
    return noise if chance.random() < 0.2 else head + noise


def test_garbage_on_the_socket_harms_nobody(case: Case) -> None:
    with environment(case.environment), Server(options()) as server:
        path = server.environment()["_CONSAN_SOCKET"]
        for seed in range(150):
            for head in (
                b"",
                struct.pack("<IIQQQ", MAGIC, MessageKind.ORDERS, 1, 0, 0),
                struct.pack("<IIQQQ", MAGIC, MessageKind.HELLO, 1, 16, 0),
            ):
                with socket.socket(socket.AF_UNIX) as stranger:
                    stranger.connect(path)
                    stranger.sendall(head + garbage(seed))
        program = start(server, case)
        program.communicate()
        outcomes, _ = server.outcomes()
    assert program.returncode == STATUS
    assert [outcome.report.verdict for outcome in outcomes if outcome.pid == program.pid] == [VIOLATIONS]


@pytest.mark.parametrize("seed", range(4))
def test_a_program_survives_a_server_that_sends_garbage(seed: int, case: Case, tmp_path: Path) -> None:
    """Once with nothing but garbage, else with it in place of the image that the program waits for."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        given = {**os.environ, **case.environment, "_CONSAN_SOCKET": str(tmp_path / "socket"), "LD_PRELOAD": str(tmp_path / "library.so")}
        (tmp_path / "library.so").write_bytes(INTERPOSER.data())
        program = [str(case.folder / "program"), "asked", "cuModuleLoadData", case.image("ptx")]
        running = subprocess.Popen(program, env=given, stderr=-1)
        mislead(listener, seed)
        running.communicate(timeout=30)
    assert running.returncode == STATUS


def mislead(listener: socket.socket, seed: int) -> None:
    requests, orders = listener.accept()[0], listener.accept()[0]
    with requests, orders, contextlib.suppress(OSError):  # the program may leave at any time
        if seed:
            requests.sendall(struct.pack("<IIQQQ", MAGIC, MessageKind.ANSWER, 0, 0, 0))
        orders.sendall(garbage(seed + 1000))
        requests.sendall(garbage(seed))
        requests.shutdown(socket.SHUT_WR)
        orders.shutdown(socket.SHUT_WR)
        while requests.recv(1 << 16):
            pass
