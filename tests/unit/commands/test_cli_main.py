"""Errors, options and environment of the `consan` command as a whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cli_fakes
import pytest
import report_samples as samples

from consan import options
from consan.__main__ import main
from consan._errors import InternalError, UsageError
from consan.commands import COMMANDS
from consan.commands.explain import ExplainCommand

LAUNCH = ["check", "k.cu", "--grid", "1", "--block", "1"]
HELP = [[], *([command.name] for command in COMMANDS)]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CONSAN_") and name != "CONSAN_CACHE_DIR":
            monkeypatch.delenv(name)


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error; standard output is empty."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.strip()


@pytest.mark.parametrize("words", HELP, ids=lambda words: " ".join(words) or "consan")
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*words, "--help"])
    assert caught.value.code == 0
    assert "usage: consan" in capsys.readouterr().out


def test_the_commands_of_this_version() -> None:
    names = "run check prove audit advise report stress reduce replay explain doctor cache ptx"
    assert [command.name for command in COMMANDS] == names.split()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a command is needed"),
        (["zzzz"], "there is no command 'zzzz' (see consan --help)"),
        (["chek", "k.cu"], "there is no command 'chek'; did you mean check?"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["check", "none.cu"], "cannot read none.cu: No such file or directory"),
        (["check", "k.cu", "--grid", "1"], "required: --block (see consan check --help)"),
        (["check", "k.cu", "--arg", "i32=1"], "required: --grid, --block"),
        ([*LAUNCH, "--shadow-memry", "1M"], "did you mean --shadow-memory? (see consan check --help)"),
        ([*LAUNCH, "--color", "alway"], "--color: expected one of auto, always, never, got 'alway'; did"),
        ([*LAUNCH, "-o", "r.jsn"], "r.jsn: no format has the suffix '.jsn'; use one of .json, .sarif"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "-o", "r.pdf"], "or say --format"),
        (["report", "none.json", "-o", "r.jsno"], "did you mean .json?"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--see", "1"], "unrecognized arguments"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--seed", "x"], "--seed: expected a whole number, got 'x'"),
        ([*LAUNCH, "--device", "tpu"], "--device: expected one of auto, gpu, cpu, got 'tpu'; did you mean"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--kernel-name", "x"], "--kernel-name: expected kns=TEXT or regex=PATTERN"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--kernel-name", "regex=("], "is not a regular expression"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--launch-count", "0"], "--launch-count: expected a number above zero"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--launch-skip", "-1"], "--launch-skip: expected a number that is not negative"),
        (["check", "k.cu", "--grid", "1", "--block", "1", "--timeout", "0"], "--timeout: expected a time in seconds above zero"),
        ([*LAUNCH, "--shadow-memory", "lots"], "--shadow-memory: expected a size above zero"),
        ([*LAUNCH, "--assembly", "fats"], "expected one of best, fast, got 'fats'; did you mean fast?"),
        (["report", "none.json"], "cannot read none.json: No such file or directory"),
        (["report", "none.json", "--format", "yaml"], "--format: expected one of text, short, json, sarif, html, got 'yaml'"),
        (["explain", "data-rac"], "did you mean data-race?"),
        (["explain", "zzz"], "the kinds are data-race, "),
        (["ptx", "k.txt"], "expected a .cu or a .ptx file"),
        (["ptx", "k.ptx", "--show", "all"], "--show: expected one of sites, effects, instrumented, unmodelled, hazards, stats, got 'all'"),
        (["ptx", "k.ptx", "--show", "site"], "did you mean sites?"),
        (["run", "--device", "gpuu", "-c", "1"], "--device: expected one of auto, gpu, cpu, got 'gpuu'; did you mean gpu?"),
        (["run"], "expected a program to run"),
        (["run", "-m"], "expected -m: the name of a module"),
    ],
)
def test_mistakes_are_one_line_and_status_2(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    line = error_line(capsys)
    assert line.startswith("consan: error: ")
    assert message in line


def test_a_mistake_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CONSAN_SEED", "many")
    assert main(["check", "k.cu", "--grid", "1", "--block", "1"]) == 2
    assert error_line(capsys) == "consan: error: CONSAN_SEED: expected a whole number, got 'many'"


def test_an_unknown_variable_is_a_warning(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CONSAN_SEEED", "1")
    assert main(["explain"]) == 0
    assert "nothing reads the environment variable CONSAN_SEEED" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (RuntimeError("boom"), 70, "consan: internal error: RuntimeError: boom; CONSAN_DEBUG=1 shows the traceback"),
        (InternalError("the ring is broken"), 70, "consan: error: the ring is broken"),
        (UsageError("wrong"), 2, "consan: error: wrong"),
        (KeyboardInterrupt(), 130, "consan: interrupted"),
    ],
)
def test_exceptions_become_a_line_and_a_status(
    error: BaseException, status: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(self: object, args: object) -> int:
        raise error

    monkeypatch.setattr(ExplainCommand, "run", fail)
    assert main(["explain"]) == status
    assert error_line(capsys) == message


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CONSAN_DEBUG", "1")
    assert main(["explain", "zzz"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("option", options.ALL, ids=lambda option: option.name)
def test_every_option_reads_its_variable_and_the_command_line_wins(option: options.Option) -> None:
    samples_of = {"device": "cpu", "seed": "5", "policy": "isa", "kernel_name": "kns=x", "format": "json", "output": "f"}
    samples_of |= {"strict": "1", "allow_incomplete": "1", "quiet": "1", "verbose": "1", "color": "never", "notes": "1", "timeline": "1"}
    samples_of |= {"details": "1", "triton_arch": "sm_80", "skip_benchmarks": "1", "assembly": "fast"}
    samples_of |= {"engine": "record", "exhaustive": "1", "keep_histories": "1", "global_memory": "on", "unoptimized": "on"}
    text = samples_of.get(option.name, "3")
    from_environment = option.value(None, {option.variable: text})
    assert from_environment != option.default
    given = True if option.switch else text
    assert option.value(given, {option.variable: "0"}) == from_environment
    assert option.value(None, {}) == option.default
    assert option.value(None, {option.variable: ""}) == option.default


def test_the_kernel_filter() -> None:
    by_text, by_pattern = options.read_kernel_filter("kns=a.b"), options.read_kernel_filter("regex=^k[0-9]$")
    assert by_text.matches("xa.by")
    assert not by_text.matches("axb")
    assert by_pattern.matches("k7")
    assert not by_pattern.matches("kernel")


def test_options_reach_the_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "p.py"
    script.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONSAN_LAUNCH_COUNT", "4")
    flags = [
        "--device",
        "cpu",
        "--seed",
        "9",
        "--strict",
        "--policy",
        "isa",
        "--kernel-name",
        "kns=mm",
        "--launch-skip",
        "2",
        "--overhead",
        "5%",
        "--triton-arch",
        "sm_80",
        "--gpus",
        "2",
        "--skip-benchmarks",
        "--timeout",
        "1.5",
        "--shadow-memory",
        "64m",
        "--assembly",
        "fast",
        "--engine",
        "record",
        "--trace-memory",
        "1g",
        "--sample",
        "7",
        "--keep-histories",
    ]
    with cli_fakes.fake_session(monkeypatch, samples.clean) as session:
        assert main(["run", *flags, str(script)]) == 0
    given = session.latest.options.stored()
    assert given.pop("kernel_name") == "kns=mm"
    expected = {"device": "cpu", "seed": 9, "policy": "isa", "launch_skip": 2, "launch_count": 4, "timeout": 1.5}
    expected |= {
        "engine": "record",
        "trace_memory": 1 << 30,
        "exhaustive": False,
        "sample": 7,
        "keep_histories": True,
        "overhead": 0.05,
        "prove": 0.0,
        "unoptimized": "auto",
    }
    expected |= {"global_memory": "auto", "explore": None}
    assert given == {**expected, "triton_arch": "sm_80", "gpus": 2, "skip_benchmarks": True, "shadow_memory": 64 << 20, "assembly": "fast"}


def test_as_a_module_and_with_a_closed_pipe() -> None:
    done = subprocess.run([sys.executable, "-m", "consan", "explain", "data-race"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "__syncthreads" in done.stdout
    piped = subprocess.run(f"{sys.executable} -m consan explain | true", shell=True, capture_output=True, text=True, check=False)
    assert piped.stderr == ""


PROBE = """
import sys
from consan.__main__ import main
try:
    main(sys.argv[1:])
finally:
    heavy = [name for name in ("numpy", "rich", "consan.instrument", "consan.session.session", "importlib.metadata") if name in sys.modules]
    print("IMPORTED", *heavy)
"""


@pytest.mark.parametrize(
    ("words", "imported"),
    [
        (["--help"], []),
        (["chek"], []),
        (["explain", "data-race"], []),
        (["run", "--help"], []),
        (["check", "k.cu"], ["numpy"]),
    ],
)
def test_commands_import_what_they_need(words: list[str], imported: list[str], tmp_path: Path) -> None:
    """So that `consan --help` is there at once."""
    done = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert set(done.stdout.rpartition("IMPORTED")[2].split()) <= set(imported)
