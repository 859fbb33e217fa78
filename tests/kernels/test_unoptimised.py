"""Kernels of unoptimised/: races of accesses that the compiler removes. `consan check` compiles the source once more, and warns of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file

import consan
from consan.__main__ import main
from consan.commands import check
from consan.session.asking import reruns
from consan.session.planning import options as planned

FOLDER = Path(__file__).parent / "unoptimised"
IN_BOTH = "barrier_before_dead_load"  # the kernel as it runs has a race, too
REMOVED = sorted(path for path in FOLDER.glob("*.cu") if path.stem != IN_BOTH)
KEPT_IN_PART = 'extern "C" __global__ void k(int* y) {\n    y[0] = threadIdx.x, y[0] = 1;\n}\n'
OF_A_SCHEDULE = ("dead_read_of_first", "dead_read_of_first_cta")  # the first schedule does not show it
QUICK = ("weight_of_zero", *OF_A_SCHEDULE)  # the others are slow
PARAMETERS = [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem) for path in REMOVED]


def _checked(path: Path, folder: Path, *words: str, racy: bool = True) -> Any:
    """The report of `consan check`, as JSON."""
    text = path.read_text()
    launch = re.search(r"// launch: +grid=(\d+) block=(\d+)", text)
    assert launch is not None
    arguments = [word for each in re.findall(r"// arg: +\w+ (\S+)", text) for word in ("--arg", each)]
    given = ["--grid", launch[1], "--block", launch[2], *arguments, *(["-DRACY"] if racy else []), *words]
    how = () if "--explore" in words else ("--explore", "60s")  # the exploration ends with the first error
    main(["check", str(path), *given, *how, "--device", "cpu", "-q", "--format", "json", "-o", str(folder / "report.json")])
    return json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize("path", PARAMETERS)
def test_a_race_that_the_compiler_removes_is_a_warning(path: Path, tmp_path: Path) -> None:
    report = _checked(path, tmp_path, "--unoptimized", "on", "--patch", str(tmp_path / "a.diff"))
    (expected,) = twin_file.read(path).expected
    lines = twin_file.read(path).markers
    found = [{access["line"] for access in each["accesses"]} for each in report["findings"] if each["kind"] in expected.kinds]
    assert {line for marker in expected.markers for line in lines[marker]} in found
    assert {(each["severity"], each["unoptimized"]) for each in report["findings"]} == {("warning", True)}
    assert report["verdict"] == "clean"
    assert not any(each.get("verified", {}).get("edits") for each in report["findings"]), "the user has no such PTX"


@pytest.mark.parametrize("path", PARAMETERS)
def test_its_repair_is_clean_in_both_texts(path: Path, tmp_path: Path) -> None:
    report = _checked(path, tmp_path, "--unoptimized", "on", racy=False)
    assert (report["verdict"], report["findings"]) == ("clean", [])
    assert [note.partition(":")[0] for note in report["notes"]] == ["kernel without optimisation"] * (path.stem in OF_A_SCHEDULE)
    spec = twin_file.read(path)
    args = spec.fresh_args()
    consan.launch(twin_file.kernel(path, racy=False), spec.grid, spec.block, spec.parameters(args), device="cpu")
    for name in spec.results:
        np.testing.assert_array_equal(args[name], spec.reference(name))


@pytest.mark.parametrize("name", OF_A_SCHEDULE)
def test_another_schedule_of_the_other_text_shows_it(name: str, tmp_path: Path) -> None:
    """Its seed repeats it. No repair is verified then: in a changed kernel it stands for another schedule."""
    path = FOLDER / f"{name}.cu"
    report = _checked(path, tmp_path, "--unoptimized", "on")
    (finding,) = report["findings"]
    assert re.search("kernel without optimisation: 3 schedules, .* of 1 observation seen, the last one shows an error", report["notes"][0])
    assert _checked(path, tmp_path, "--unoptimized", "on", "--explore", "0")["findings"] == []
    (again,) = _checked(path, tmp_path, "--unoptimized", "on", "--explore", "0", "--seed", str(finding["seed"]))["findings"]
    assert (again["unoptimized"], again["hazard"]) == (True, finding["hazard"])
    assert [each.get("verified") for each in (finding, again)] == [None, None]


def test_a_repair_that_was_tried_in_other_schedules_only_is_not_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reruns.Reruns, "shows", lambda search, findings: True)
    path = FOLDER / "dead_read_of_first.cu"
    (found,) = _checked(path, tmp_path, "--unoptimized", "on")["findings"]
    (again,) = _checked(path, tmp_path, "--unoptimized", "on", "--explore", "0", "--seed", str(found["seed"]))["findings"]
    assert again["verified"], "a barrier of a warp, which does not order the two"


def test_without_exploration_of_the_other_text_it_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = check.RequestedLaunch.again
    monkeypatch.setattr(check.RequestedLaunch, "again", lambda launch, args, ptx, seed, explore=0.0: again(launch, args, ptx, seed))
    assert _checked(FOLDER / "dead_read_of_first.cu", tmp_path, "--unoptimized", "on")["findings"] == []


def test_a_note_at_its_line_does_not_hide_it(tmp_path: Path) -> None:
    """The compiler keeps the last of two stores on one line, which stores one value."""
    source = tmp_path / "k.cu"
    source.write_text("// launch: grid=1 block=64\n// arg: y i32[1]=zeros\n" + KEPT_IN_PART)
    report = _checked(source, tmp_path, "--unoptimized", "on")
    assert {each["severity"] for each in report["findings"] if each.get("unoptimized")} == {"warning"}
    assert {each["severity"] for each in report["findings"] if not each.get("unoptimized")} == {"note"}


def test_a_comment_that_covers_it_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "k.cu"
    copy.write_text((FOLDER / "weight_of_zero.cu").read_text().replace("/*@store*/", "// consan: allow(data-race) the weight is zero"))
    (found,) = _checked(copy, tmp_path, "--unoptimized", "on")["findings"]
    assert found["suppressed"]["reason"] == "the weight is zero"
    assert capsys.readouterr().err == ""


def test_the_kernel_as_it_runs_does_not_show_it(tmp_path: Path) -> None:
    report = _checked(FOLDER / "weight_of_zero.cu", tmp_path, "--unoptimized", "off")
    assert (report["verdict"], report["findings"]) == ("clean", [])


def test_a_repair_at_which_the_kernel_hangs_is_none(tmp_path: Path) -> None:
    """A barrier in one of the two branches removes the race, and the threads of the other one never come."""
    path = FOLDER / "fields_of_one_word.cu"
    found = _checked(path, tmp_path, "--unoptimized", "on")["findings"]
    assert found
    for finding in found:
        steps = finding.get("verified", {}).get("steps", ())
        assert not [
            step for step in steps if step["instruction"] == "bar.sync 0" and step["line"] == twin_file.read(path).markers["high"][0]
        ]


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["on", "off"])
def test_a_repair_is_right_for_both_texts(chosen: str, tmp_path: Path) -> None:
    """The compiler's text alone takes a barrier behind the load that it has removed."""
    path = FOLDER / f"{IN_BOTH}.cu"
    report = _checked(path, tmp_path, "--unoptimized", chosen)
    (finding,) = report["findings"]
    assert (finding["severity"], finding.get("unoptimized")) == ("error", None)
    (step,) = finding["verified"]["steps"]
    place = step["line"] + (step["where"] == "after")
    lines = twin_file.read(path).markers
    assert (place <= min(lines["dead"])) == (chosen == "on")


def test_a_kernel_that_takes_long_is_left_out_and_a_note_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned, "MOST_EXECUTED", 1)
    report = _checked(FOLDER / "weight_of_zero.cu", tmp_path, "--unoptimized", "auto")
    assert report["findings"] == []
    assert report["notes"] == ["not compared with the kernel without optimisation: that would take long (--unoptimized on does it)"]


@pytest.mark.slow
def test_a_launch_that_cannot_be_compared_says_why(tmp_path: Path) -> None:
    path = FOLDER.parent / "clean" / "wgmma_one_wait_for_two.cu"
    report = _checked(path, tmp_path, "--unoptimized", "on", "--entry", "kernel", racy=False)
    assert report["verdict"] == "clean"
    assert [note for note in report["notes"] if note.startswith("not compared with the kernel without optimisation: ")]
