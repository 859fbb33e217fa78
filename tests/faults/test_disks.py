"""Files that cannot be read or written: full disks, folders that are not there, streams that are closed, caches that are damaged.

A limit on the size of files (RLIMIT_FSIZE) stands for the full disk: it needs no mount and no privilege, and hits every file.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from faults_support import ARGS, LAUNCH, check, consan, finish, start

from consan.adapters import sources
from consan.reports.formats.json_format import loads
from consan.toolchain import cache, find
from consan.toolchain.assemble import assemble

needs_nvrtc = pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")
CHECK = ("check", "k.ptx", *LAUNCH, *ARGS, "--entry")
PTX = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def _slow(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


def no_files() -> None:
    """Run in a child before it starts: not a byte goes to any file any more. The checker is loaded as it was built."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.fixture
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The runtime that the kernels need is compiled and in the cache."""
    assert check("clean").status == 0


# -- output --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [[*CHECK, "racy"], ["explain"], *map(_slow, ([*CHECK, "racy", "--format", "json"], ["doctor"], ["ptx", "k.ptx"]))]
)
def test_standard_output_on_a_full_disk(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = finish(start(*words, stdout=full))
    assert (done.status, done.err) == (2, "consan: error: cannot write the output: No space left on device\n")


def test_closed_streams() -> None:
    for closing, expected in ((">&-", ""), ("2>&-", "verdict: violations"), (">&- 2>&-", "")):
        words = " ".join((*CHECK, "racy"))
        done = subprocess.run(f"{os.sys.executable} -m consan {words} {closing}", shell=True, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (66, "")
        assert expected in done.stdout


@pytest.mark.parametrize(("entry", "status"), [_slow("racy", 66), ("clean", 2)])
def test_a_report_that_cannot_be_stored_is_printed(warm: None, entry: str, status: int) -> None:
    done = finish(start(*CHECK, entry, "-o", "r.json", "--allow-incomplete", preexec_fn=no_files))
    assert "consan: error: cannot write r.json: File too large\n" in done.err
    assert done.status == status
    assert loads(done.out).verdict == ("violations" if entry == "racy" else "clean")


RUN = """
import numpy as np, consan
kernel = consan.Kernel("k.ptx", entry="racy")
import cupy as cp
cp.RawModule(path="k.ptx").get_function("{entry}")((1,), (64,), (cp.zeros(64, dtype=cp.uint32), np.uint32(5)))
"""


@pytest.mark.parametrize(("entry", "status"), [("racy", 66), _slow("clean", 2)])
def test_a_run_that_cannot_be_stored_is_printed(warm: None, entry: str, status: int) -> None:
    Path("script.py").write_text(RUN.format(entry=entry))
    done = finish(start("run", "--device", "cpu", "-o", "r.json", "--allow-incomplete", "script.py", preexec_fn=no_files))
    assert "consan: error: cannot write r.json: File too large\n" in done.err
    assert done.status == status
    assert ("data-race" in done.out) == (entry == "racy")
    assert "consan report r.json" not in done.out


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("none/r.json", "cannot write none/r.json: there is no folder none"),
        (".", "cannot write .: it is a folder"),
        ("k.ptx/r.json", "cannot write k.ptx/r.json: there is no folder k.ptx"),
        ("/proc/r.json", "cannot write /proc/r.json: No such file or directory"),
        ("r" * 300, "File name too long"),
        ("a\0b", "null byte"),
    ],
)
def test_an_output_with_no_place_is_refused_before_anything_runs(output: str, message: str) -> None:
    for words in (["run", "-o", output, "-c", "open('ran', 'w')"], [*CHECK, "racy", "-o", output]):
        assert message in consan(*words).refused()
    assert not Path("ran").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(here: Path) -> None:
    here.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert "Permission denied" in consan("run", "-c", "pass").refused()
        assert "Permission denied" in check("racy", "-o", "r.json").refused()
    finally:
        here.chmod(stat.S_IRWXU)


def test_trying_an_output_leaves_nothing_and_spoils_nothing(here: Path) -> None:
    Path("old.json").write_text("old")
    os.mkfifo("pipe")  # opening it would wait for its other end
    for name in ("new.json", "old.json", "pipe"):
        assert consan("check", "none.ptx", *LAUNCH, "-o", name).refused().startswith("cannot read none.ptx")
    assert Path("old.json").read_text() == "old"
    assert sorted(path.name for path in here.iterdir()) == ["k.ptx", "old.json", "pipe"]


def test_a_forked_child_does_not_replace_the_stored_run_of_its_parent(here: Path) -> None:
    Path("script.py").write_text(RUN.format(entry="racy") + "import os\nif os.fork():\n    os.wait()\n")
    done = finish(start("run", "--device", "cpu", "-o", "r.json", "script.py"))
    assert (done.status, done.err) == (66, "")
    parent = loads(Path("r.json").read_text())
    assert [(kernel.name, kernel.launches) for kernel in parent.kernels if kernel.launches] == [("racy", 1)]  # a copy of the parent's
    assert not list(here.glob("r-*.json"))


# -- input ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "ptx", "report"])
def test_files_that_are_no_files(command: str) -> None:
    Path("folder.ptx").mkdir()
    Path("empty.ptx").touch()
    Path("binary.ptx").write_bytes(bytes(range(256)))
    os.symlink("loop.ptx", "loop.ptx")
    os.symlink("/dev/zero", "endless.ptx")
    words = LAUNCH if command == "check" else ()
    expected = {
        "none.ptx": "No such file or directory",
        "folder.ptx": "Is a directory",
        "binary.ptx": "is not a text file",
        "loop.ptx": "symbolic links",
        "k\0.ptx": "null byte",
        "empty.ptx": "is not JSON" if command == "report" else "empty.ptx:1:1: expected .version",
    }
    for name, message in expected.items():
        assert message in consan(command, name, *words).refused()


def test_a_file_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consan.files._LARGEST_TEXT", 1 << 20)
    assert consan("report", "/dev/zero").refused() == "cannot read /dev/zero: it is larger than 1 MiB"


def test_a_byte_order_mark_is_no_text() -> None:
    Path("bom.ptx").write_bytes(b"\xef\xbb\xbf" + Path("k.ptx").read_bytes().replace(b"\n", b"\r\n"))
    assert check("racy", file="bom.ptx").status == 66


# -- temporary files, tools, and the cache ---------------------------------------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize("limit", [no_files, _slow(None)], ids=["full", "no temporary folder"])
def test_a_program_whose_kernels_cannot_be_copied_for_the_report(here: Path, limit: object) -> None:
    """Sources that are not in the user's files are copied to a temporary folder; without one the run goes on."""
    code = 'extern "C" __global__ void k(int* x) { x[0] = 1; }'
    script = f"import cupy as cp\nx = cp.zeros(1, dtype=cp.int32)\ncode = {code!r}.replace('x[0] = 1', 'x[0] = ' + str(1 + 1))\n"
    Path("script.py").write_text(script + "cp.RawKernel(code, 'k')((1,), (1,), (x,))\nprint(int(x[0]))\n")
    assert finish(start("run", "--device", "cpu", "script.py")).status == 0  # and the cache is warm
    environment = {} if limit else dict.fromkeys(("TMPDIR", "TEMP", "TMP"), "/proc/none")
    done = finish(start("run", "--device", "cpu", "script.py", environment=environment, preexec_fn=limit))
    assert done.out.startswith("2\n")
    assert "verdict: clean" in done.out
    assert not done.crashed


def test_a_copy_without_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "__global__ void " + "lonely" + "(int* x) {}"
    assert sources.place(code + " ", Path(os.devnull, "folder")) == sources.SourceStart("lonely.cu", 1)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -KILL $$", r"was killed by signal 9 \(Killed\)"),
        ("kill -SEGV $$", "was killed by signal 11"),
        ("exit 3", "ended with status 3 and said nothing"),
        ("printf '\\377' >&2; exit 1", "does not assemble"),
    ],
)
def test_an_assembler_that_dies(script: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from consan._errors import UsageError

    Path("ptxas").write_text(f"#!/bin/sh\n{script}\n")
    Path("ptxas").chmod(0o755)
    monkeypatch.setattr(find, "ptxas", lambda: str(Path("ptxas").absolute()))
    monkeypatch.setattr(find, "locate", lambda library: None)
    with pytest.raises(UsageError, match=message):
        assemble(PTX, "sm_80")


def test_an_assembler_without_room_for_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    from consan._errors import EnvironmentFailure

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(find, "ptxas", lambda: "/bin/false")
    monkeypatch.setattr(find, "locate", lambda library: None)
    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(EnvironmentFailure, match="cannot assemble with /bin/false: No space left on device"):
        assemble(PTX, "sm_80")


@needs_nvrtc
@pytest.mark.parametrize("how", ["damaged", "read-only", *map(_slow, ("file", "full", "nobody's home", "another's home"))])
def test_a_cache_that_cannot_be_used(how: str, here: Path) -> None:
    """The verdict is the same. One line says that nothing is kept; a damaged entry is written again."""
    folder = here / "cache"
    environment, limit = {"CONSAN_CACHE_DIR": str(folder)}, None
    if how == "file":
        folder.touch()
    elif how == "damaged":
        assert finish(start(*CHECK, "racy", environment=environment)).status == 66
        entries = [path for path in folder.rglob("*") if path.is_file()]
        assert entries
        for path in entries:
            path.write_bytes(path.read_bytes()[:-5])
    elif how == "read-only":
        environment = {"CONSAN_CACHE_DIR": "/proc/none"}
    elif how == "full":
        limit = no_files
    elif how == "nobody's home":
        environment = {"CONSAN_CACHE_DIR": "~nobody-of-this-name/cache"}
    else:
        environment = {"CONSAN_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/proc"}
    done = finish(start(*CHECK, "racy", environment=environment, preexec_fn=limit))
    assert done.status == 66
    assert done.err.count("consan: warning: nothing is kept in the cache: ") == (how != "damaged")
    assert done.err.count("\n") == (how != "damaged")


def test_a_process_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user that is in no list of users: pathlib does not know where `~` is."""
    monkeypatch.delenv("CONSAN_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    one = cache.Cache()
    assert one.fetch("ab" * 32, lambda: b"made") == b"made"
    assert "CONSAN_CACHE_DIR" in (one.problem or "")


def test_an_interrupted_write_leaves_no_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("consan.toolchain.cache.os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.Cache(here / "cache").put("ab" * 32, b"data")
    assert not [path for path in (here / "cache").rglob("*") if path.is_file()]


@needs_nvrtc
def test_two_processes_fill_one_cache(here: Path) -> None:
    environment = {"CONSAN_CACHE_DIR": str(here / "cache")}
    running = [start(*CHECK, entry, "-o", f"{entry}.json", environment=environment) for entry in ("racy", "clean")]
    assert [finish(process).status for process in running] == [66, 0]
    entries = [path for path in (here / "cache").rglob("*") if path.is_file()]
    assert entries
    assert not [path for path in entries if path.name.startswith(".tmp")]
    assert json.loads(Path("racy.json").read_text())["verdict"] == "violations"
    shutil.rmtree(here / "cache")
