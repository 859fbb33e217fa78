"""Configuration: where values come from, in rising order, and what a wrong one is answered with."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from consan import config, options
from consan.__main__ import main
from consan._errors import UsageError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CONSAN_") and name != "CONSAN_CACHE_DIR"]:
        monkeypatch.delenv(name)


def write(text: str, folder: str = ".") -> None:
    Path(folder).mkdir(exist_ok=True, parents=True)
    (Path(folder) / "pyproject.toml").write_text(text)


def settled(environ: Mapping[str, str] | None = None, **given: Any) -> argparse.Namespace:
    arguments = argparse.Namespace(**{option.name: given.get(option.name) for option in options.ALL})
    options.fill(arguments, environ or {}, config.load().texts)
    return arguments


def test_each_source_wins_over_the_one_before() -> None:
    write("[tool.consan]\nseed = 1\n")
    several, own = {"CONSAN_OPTIONS": "--seed 2 --strict"}, {"CONSAN_SEED": "3"}
    assert settled().seed == 1
    assert settled(several).seed == 2
    assert settled({**several, **own}).seed == 3
    assert settled({**several, **own}, seed="4").seed == 4
    assert (settled().strict, settled(several).strict, settled({**several, "CONSAN_STRICT": "0"}).strict) == (False, True, False)


def test_every_option_is_a_key() -> None:
    write(
        '[tool.consan]\ndevice = "cpu"\nseed = 0x10\nstrict = true\npolicy = "isa"\nkernel-name = "kns=gemm"\nlaunch_skip = 1\n'
        'launch-count = 2\ntimeout = 1.5\nformat = "json"\noutput = "run.json"\nshadow-memory = "64M"\nassembly = "fast"\n'
    )
    found = settled()
    assert config.load().warnings == ()
    assert (found.device, found.seed, found.strict, found.policy, found.kernel_name.text) == ("cpu", 16, True, "isa", "kns=gemm")
    assert (found.shadow_memory, found.assembly) == (64 << 20, "fast")
    assert (found.launch_skip, found.launch_count, found.timeout, found.format, found.output) == (1, 2, 1.5, "json", "run.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.consan]\nseed = "x"\n', "pyproject.toml: tool.consan.seed: expected a whole number, got 'x'"),
        ("[tool.consan]\nseed = true\n", "pyproject.toml: tool.consan.seed: expected a whole number, got 'true'"),
        ('[tool.consan]\ndevice = "tpu"\n', "pyproject.toml: tool.consan.device: expected one of auto, gpu, cpu, got 'tpu'"),
        ("[tool.consan]\nkernel-name = []\n", "pyproject.toml: tool.consan.kernel-name: expected text or a number"),
        ("[tool]\nconsan = 1\n", "pyproject.toml: tool.consan is not a table"),
        ("[tool.consan\n", "pyproject.toml: "),
        ("[tool.consan]\nsuppressions = 1\n", "pyproject.toml: tool.consan.suppressions: expected tables, [[tool.consan.suppressions]]"),
        ("[[tool.consan.suppressions]]\nreason = 'r'\n", "pyproject.toml, suppression 1: kind is missing"),
        ("[[tool.consan.suppressions]]\nkind = 'data-race'\n", "pyproject.toml, suppression 1: suppressing data-race needs a reason"),
        ("[[tool.consan.suppressions]]\nkind = 'race'\nreason = 'r'\n", "suppression 1: there is no kind 'race'; did you mean"),
        ("[[tool.consan.suppressions]]\nkind = 'scope'\nreason = 7\n", "pyproject.toml, suppression 1: reason: expected text"),
    ],
)
def test_what_is_wrong_is_one_line_and_status_2(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(text)
    assert main(["check", "none.cu", "--grid", "1", "--block", "1"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("consan: error: ")
    assert message in err


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("--sed 1", "CONSAN_OPTIONS: unrecognized arguments: --sed 1"),
        ("--seed x", "CONSAN_OPTIONS: --seed: expected a whole number, got 'x'"),
        ("--seed 'x", "CONSAN_OPTIONS: No closing quotation"),
        ("--seed", "CONSAN_OPTIONS: argument --seed: expected one argument"),
    ],
)
def test_wrong_options_in_the_environment(value: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        settled({"CONSAN_OPTIONS": value})
    assert str(caught.value) == message


def test_unknown_keys_are_warnings_with_the_name_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    write("[tool.consan]\ndevise = 'cpu'\nx = 1\n[[tool.consan.suppressions]]\nkind = 'scope'\nreason = 'r'\nkernels = 'k'\n")
    assert main(["report", "none.json"]) == 2
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert warnings == [
        "consan: warning: pyproject.toml: tool.consan.devise: nothing reads this key; did you mean device?",
        "consan: warning: pyproject.toml: tool.consan.x: nothing reads this key",
        "consan: warning: pyproject.toml, suppression 1: kernels: nothing reads this key; did you mean kernel?",
    ]


def test_the_nearest_file_with_the_table_counts_up_to_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("[tool.consan]\nseed = 1\n")
    write("[tool.other]\n", "a")
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "b").mkdir()
    for folder, seed in (("a", 1), ("repository/b", 0), ("repository", 0)):
        monkeypatch.chdir(tmp_path / folder)
        assert settled().seed == seed
    write("[tool.consan]\nseed = 2\n", str(tmp_path / "repository"))
    monkeypatch.chdir(tmp_path / "repository" / "b")
    assert settled().seed == 2
    write("[tool.consan]\nseed = 'x'\n", str(tmp_path / "repository"))
    with pytest.raises(UsageError, match=r"^\.\./pyproject\.toml: tool\.consan\.seed: "):
        settled()


def test_rules_are_read() -> None:
    write(
        "[[tool.consan.suppressions]]\nkind = 'data-race'\nkernel = 'k*'\nsource = 'v/*.cu'\nreason = 'same value'\n"
        "[[tool.consan.suppressions]]\nkind = 'deadlock'\nreason = 'r'\n"
    )
    first, second = config.load().rules
    assert (first.kind, first.kernel, first.source, first.reason) == ("data-race", "k*", "v/*.cu", "same value")
    assert (second.kind, second.kernel, second.source, second.by) == ("deadlock", "*", "*", "pyproject.toml, suppression 2")


def test_rules_of_a_file_of_their_own() -> None:
    write("[tool.consan]\n[[tool.consan.suppressions]]\nkind = 'scope'\nreason = 'r'\n")
    Path("known.toml").write_text("[[tool.consan.suppressions]]\nkind = 'data-race'\nreason = 'q'\n")
    Path("empty.toml").write_text("")
    rules = config.rules_of(config.load(), argparse.Namespace(suppress="known.toml"))
    assert [f"{rule.by}: {rule.kind}" for rule in rules] == ["pyproject.toml, suppression 1: scope", "known.toml, suppression 1: data-race"]
    for name, message in (("empty.toml", "empty.toml has no "), ("none.toml", "cannot read none.toml")):
        with pytest.raises(UsageError, match=message):
            config.rules_of(config.load(), argparse.Namespace(suppress=name))


def test_commands_without_options_do_not_read_it() -> None:
    write("[tool.consan\n")
    assert main(["explain"]) == 0


def test_doctor_tells_what_is_configured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    assert "no [tool.consan]" in capsys.readouterr().out
    write("[tool.consan]\nlaunch-skip = 1\nx = 1\n[[tool.consan.suppressions]]\nkind = 'scope'\nreason = 'r'\n")
    main(["doctor"])
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "pyproject.toml ok launch-skip = 1, 1 suppression" in shown
    assert "warning missing pyproject.toml: tool.consan.x: nothing reads this key" in shown
    write("[tool.consan\n")
    main(["doctor"])
    assert "UsageError: cannot read" in capsys.readouterr().out
