"""The timeline of a finding: only what the finding says, every edge and the missing one, and the drawing in characters within its width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import golden
import pytest
import report_samples as samples

from consan.__main__ import main
from consan.reports.formats import json_format, text
from consan.reports.model import Access, Finding
from consan.reports.timeline import Timeline, build, steps, svg, text as drawing
from consan.reports.verdict.conclusion import assemble
from consan.reports.words.wording import KINDS, describe

REPORTS = (samples.violations(), samples.deadlock(), samples.operations(), samples.shapes())
FINDINGS = [finding for report in REPORTS for finding in report.findings]
IDS = [f"{finding.kind}-{finding.situation}-{number}" for number, finding in enumerate(FINDINGS)]


def _built(finding: Finding) -> Timeline:
    timeline = build(finding)
    assert timeline is not None
    return timeline


def _found(kind: str, situation: str) -> Timeline:
    return _built(next(finding for finding in FINDINGS if (finding.kind, finding.situation) == (kind, situation)))


def _titles(timeline: Timeline) -> list[str]:
    return [lane.title for lane in timeline.lanes]


def _told(timeline: Timeline) -> list[tuple[str, str]]:
    """(lane, what) of each event, with the gap at its place."""
    told = [(timeline.lanes[event.lane].title, " ".join(filter(None, (event.mark, event.text)))) for event in timeline.events]
    return [*told[: timeline.gap], ("", "missing"), *told[timeline.gap :]] if timeline.missing else told


def _missing(timeline: Timeline) -> list[tuple[str, str]]:
    return [(timeline.events[edge.source].text, timeline.events[edge.target].text) for edge in timeline.edges if edge.missing]


def test_the_samples_have_every_kind_that_is_found_on_a_device_or_in_the_text() -> None:
    assert {finding.kind for finding in FINDINGS} == set(KINDS) - {"global-race", "missing-order"}


def test_a_data_race_is_two_threads_and_no_edge() -> None:
    timeline = _built(samples.RACE)
    assert _titles(timeline) == ["thread (160,0,0)", "thread (32,0,0)"]
    assert [lane.detail for lane in timeline.lanes] == ["warp 5 lane 0", "warp 1 lane 0"]
    assert _told(timeline) == [("thread (160,0,0)", "(1) write"), ("", "missing"), ("thread (32,0,0)", "(2) read")]
    assert [edge.missing for edge in timeline.edges] == [True]
    assert [event.place for event in timeline.events] == ["reduce.cu:5", "reduce.cu:8"]
    assert timeline.missing == samples.RACE.missing


def test_a_copy_that_nobody_waits_for_ends_after_the_access() -> None:
    timeline = _built(samples.WAIT)
    told = ["(1) asynchronous copy", "in flight, group 2", "missing", "(2) read", "may end only now"]
    assert [text for _, text in _told(timeline)] == told
    assert _missing(timeline) == [("in flight, group 2", "read")]
    assert [(span.first, span.last) for span in timeline.spans] == [(1, 3)]


def test_a_wait_without_a_barrier_is_shown_in_the_thread_that_waited() -> None:
    timeline = _found("missing-wait", "waited-no-barrier")
    assert [told for told in _told(timeline) if told[1] in ("ends", "waits for the end of (1)", "missing")] == [
        ("cp.async copies", "ends"),
        ("thread (1,0,0)", "waits for the end of (1)"),
        ("", "missing"),
    ]
    assert _missing(timeline) == [("waits for the end of (1)", "read")]


def test_without_a_situation_no_wait_is_invented() -> None:
    finding = next(finding for finding in FINDINGS if finding.situation == "waited-no-barrier")
    timeline = _built(replace(finding, situation=""))
    assert not any(event.kind == "wait" for event in timeline.events)


def test_a_bulk_load_completes_a_phase_of_its_mbarrier() -> None:
    timeline = next(_built(f) for f in FINDINGS if f.kind == "missing-wait" and f.accesses[0].role == "bulk load")
    assert _titles(timeline) == ["thread (1,0,0)", "bulk copy (TMA)", "thread (32,0,0)", "mbarrier"]
    assert _told(timeline)[-1] == ("mbarrier", "phase 3 completes")
    assert [edge.label for edge in timeline.edges if not edge.missing] == ["issues", "signals"]


def test_memory_and_mbarriers_have_the_names_of_the_source() -> None:
    wait = next(f for f in FINDINGS if f.kind == "missing-wait" and f.accesses[0].role == "bulk load")
    load, read = (replace(access, name="tile[1][0]") for access in wait.accesses)
    assert load.asynchronous is not None
    named = replace(load, asynchronous=replace(load.asynchronous, barrier_name="full[1]"))
    timeline = _built(replace(wait, accesses=(named, read)))
    assert [event.text for event in timeline.events if event.mark] == ["bulk load tile[1][0]", "read tile[1][0]"]
    assert timeline.lanes[-1].detail == "full[1]"


def test_proxies_have_lanes_and_the_order_that_is_there_is_shown() -> None:
    timeline = _found("missing-proxy-fence", "no-proxy-fence")
    assert _titles(timeline) == ["generic proxy", "async proxy"]
    assert [text for _, text in _told(timeline)] == ["(1) write", "ordered before (2)", "missing", "(2) bulk load"]
    assert timeline.culprits == (("(3) fence.proxy.async", "reduce.cu:7"),)
    assert _missing(timeline) == [("ordered before (2)", "bulk load")]


@pytest.mark.parametrize("number", [0, 1, 3])
def test_any_number_of_culprits_stands_with_what_is_missing_and_at_no_time(number: int) -> None:
    culprits = [Access("culprit", "bar.sync", file="reduce.cu", line=6 + n) for n in range(number)]
    finding = replace(samples.RACE, accesses=(*samples.RACE.accesses, *culprits))
    timeline = _built(finding)
    assert replace(timeline, culprits=()) == _built(samples.RACE)
    assert timeline.culprits == tuple((f"({n + 3}) bar.sync", f"reduce.cu:{6 + n}") for n in range(number))
    assert [step.where for step in steps(timeline) if step.who == "does not order them"] == [place for _, place in timeline.culprits]
    drawn = "\n".join(line for line, _ in drawing.draw(timeline, 96))
    picture = svg.draw(timeline, svg.WIDE)
    for what, where in timeline.culprits:
        assert f"{what} at {where} does not order them" in drawn
        assert f"{what} at {where} does not order them" in picture


def test_the_culprit_of_a_deadlock_does_not_end_the_wait() -> None:
    waiter = {"block": [0, 0, 0], "warp": 1, "lanes": 1, "why": "spin", "file": "k.cu", "line": 5}
    late = Access("culprit", "atom.shared.exch.b32", file="k.cu", line=8)
    timeline = _built(Finding("deadlock", "k", waiters=(waiter,), accesses=(late,), situation="polled"))
    assert "does not end the wait" in [step.who for step in steps(timeline)]
    for drawn in ("\n".join(line for line, _ in drawing.draw(timeline, 96)), svg.draw(timeline, svg.WIDE)):
        assert "(1) atom.shared.exch.b32 at k.cu:8 does not end the wait" in drawn


def test_a_polled_variable_is_no_barrier() -> None:
    waiter = {"block": [0, 0, 0], "warp": 1, "lanes": 1, "why": "spin", "file": "k.cu", "line": 5}
    assert "poll" in _built(Finding("deadlock", "k", waiters=(waiter,), situation="polled")).caption


@pytest.mark.parametrize("width", [svg.WIDE, svg.NARROW])
def test_lines_about_culprits_stay_in_their_band(width: int) -> None:
    culprit = Access("culprit", "mbarrier.arrive.shared::cluster.b64", file="cluster_arrive_cta_scope.cu", line=20)
    drawn = svg.draw(_built(replace(samples.RACE, accesses=(*samples.RACE.accesses, culprit))), width)
    lines = re.findall(r'<text class="left culprit" x="30.0" y="[0-9.]+">([^<]*)</text>', drawn)
    assert " ".join(lines).endswith("does not order them")
    assert max(map(len, lines)) * svg._BOLD <= width - 40


def test_ctas_of_a_cluster_are_told_apart() -> None:
    timeline = _found("scope", "arrive-scope")
    assert [lane.group for lane in timeline.lanes] == ["CTA (0,0,0)", "CTA (1,0,0)"]
    assert [text for _, text in _told(timeline)] == ["(1) write", "an edge released at .cta scope", "missing", "(2) read"]


def test_launches_are_told_apart() -> None:
    first = str(samples.WRITE.thread).replace(" ", "")
    copy = Access("read", "a copy to the host", file="run.py", line=7, bytes=(0, 4), space="global")
    for second, who in ((replace(samples.WRITE), f"thread {first}"), (copy, "an operation on arrays")):
        finding = describe(Finding("global-race", "gemm", hazard="WAW", accesses=(samples.WRITE, second)), "no-stream-edge")
        timeline = build(finding)
        assert timeline is not None
        assert [(lane.title, lane.detail) for lane in timeline.lanes] == [
            *[("launch of (1)", f"thread {first}"), ("launch of (2)", who)],
        ]


def test_a_scope_that_is_too_narrow_is_shown_at_its_end_of_the_edge() -> None:
    finding = next(finding for finding in FINDINGS if finding.kind == "scope")
    timeline = _built(replace(finding, situation="wait-scope"))
    assert (timeline.events[1].lane, timeline.events[1].text) == (1, "an edge acquired at .cta scope")


@pytest.mark.parametrize(
    ("situation", "told"),
    [
        ("exit", ["(1) bulk load", "in flight", "missing", "the CTA exits", "may end only now", "phase 0 completes"]),
        ("not-started", ["(1) write", "missing", "may start only now"]),
        ("after-exit", ["may have exited", "missing", "(1) read"]),
    ],
)
def test_lifetimes(situation: str, told: list[str]) -> None:
    assert [text for _, text in _told(_found("lifetime", situation))] == told


def test_a_lifetime_of_an_older_stored_run_leaves_open_which_end_it_was() -> None:
    finding = next(finding for finding in FINDINGS if finding.situation == "after-exit")
    assert _told(_built(replace(finding, situation="")))[-1] == ("the other CTA", "starts or exits at an unknown time")


def test_memory_is_a_strip() -> None:
    outside = _found("out-of-bounds", "shared")
    assert [(cell.kind, cell.mark, cell.text) for cell in outside.strip] == [
        ("inside", "", "shared memory of the CTA"),
        ("outside", "(1)", "bytes 1536..1539"),
    ]
    assert not outside.missing  # the end of the memory is no edge
    unwritten = _found("uninitialized-read", "general")
    cells = [("unwritten", "600..639"), ("hit", "640..643"), ("unwritten", "644..699")]
    assert [(cell.kind, cell.text) for cell in unwritten.strip] == cells
    assert unwritten.gap == 0


def test_barriers_have_their_state() -> None:
    stuck = _built(next(finding for finding in samples.operations().findings if finding.kind == "deadlock"))
    assert ("mbarrier", "phase 3: 0 of 1 arrival missing, 64 bytes missing") in _told(stuck)
    assert _told(stuck)[-1][1] == "never goes on"
    assert _told(_found("barrier-misuse", "not-initialised"))[0] == ("", "missing")
    assert _told(_found("barrier-misuse", "divergent"))[1] == ("barrier", "lanes of a warp are missing")


@pytest.mark.parametrize(
    ("sides", "why", "last"), [(1, "exited", ("lanes 1 to 31", "exited")), (2, "went past it", ("lanes 1 to 31", "(2) went past it"))]
)
def test_a_divergence_is_the_lanes_that_came_and_those_that_did_not(sides: int, why: str, last: tuple[str, str]) -> None:
    waiters = ({"warp": 1, "block": [0, 0, 0], "lanes": 1, "why": "came"}, {"warp": 1, "block": [0, 0, 0], "lanes": 0xFFFFFFFE, "why": why})
    barrier = Access("barrier", "bar.sync", ptx_line=65, block=(0, 0, 0), thread=(32, 0, 0), warp=1)
    accesses = (barrier, replace(barrier, ptx_line=80, role="where the other lanes are"))[:sides]
    timeline = _built(Finding("barrier-misuse", "k", accesses=accesses, waiters=waiters, situation="divergent", missing="convergence"))
    assert _told(timeline) == [("lane 0", "(1) barrier"), last, ("", "missing"), ("the instruction", "lanes of a warp are missing")]
    assert [edge.missing for edge in timeline.edges] == [False, True]


def test_a_deadlock_says_what_the_barrier_needs_and_how_much_is_not_drawn() -> None:
    waiter = {"block": [0, 0, 0], "lanes": 1, "why": "mbarrier"}
    state = {"mbarrier": 8, "phase": 1, "pending": 3, "expected": 4, "tx": 64}
    places = tuple({**waiter, **state, "warp": n, "ptx_line": 40 + n} for n in range(5))
    timeline = _built(describe(Finding("deadlock", "k", waiters=places), "both"))
    assert ("mbarrier", "phase 1: 3 of 4 arrivals missing, 64 bytes missing") in _told(timeline)
    assert "2 more groups of warps not drawn" in timeline.caption
    late = _built(describe(Finding("deadlock", "k", waiters=places[:1]), "timeout"))
    assert "never goes on" not in [text for _, text in _told(late)]
    assert "did not end in time" in late.caption


def test_a_kind_that_it_does_not_know_is_drawn_from_what_is_there() -> None:
    assert build(Finding("later", "k")) is None
    assert _told(_built(Finding("later", "k", accesses=(samples.READ,)))) == [("thread (32,0,0)", "(1) read")]
    waiting = Finding("later", "k", waiters=({"warp": 1, "block": [0, 0, 0], "why": "running", "ptx_line": 4},))
    assert _told(_built(waiting)) == [("warp 1", "running")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("accesses", [(), (samples.READ,), (samples.COPY, samples.READ), (samples.COPY, samples.COPY, samples.READ)])
def test_no_kind_fails_on_any_number_of_accesses(kind: str, accesses: tuple[Access, ...]) -> None:
    for situation in (*KINDS[kind].situations, ""):
        timeline = build(Finding(kind, "k", accesses=accesses, situation=situation.split(":")[0].split("/")[0], missing="an edge"))
        if timeline is not None:
            assert svg.draw(timeline, svg.NARROW).startswith("<svg ")
            assert list(steps(timeline))


# --- drawings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finding", FINDINGS, ids=IDS)
@pytest.mark.parametrize("width", [56, 96, 116])
def test_characters_stay_within_the_width_and_plain_ones_are_ascii(finding: Finding, width: int) -> None:
    for strokes in (drawing.ASCII, drawing.UNICODE):
        drawn = [line for line, _ in drawing.draw(_built(finding), width, strokes)]
        assert max(map(len, drawn)) <= width
        assert strokes is drawing.UNICODE or "".join(drawn).isascii()
        marks = {event.mark for event in _built(finding).events if event.mark}
        assert all(any(mark in line for line in drawn) for mark in marks)


@pytest.mark.parametrize("finding", FINDINGS, ids=IDS)
def test_the_table_has_every_event_and_edge(finding: Finding) -> None:
    timeline = _built(finding)
    rows = list(steps(timeline))
    assert [row.number for row in rows if row.number] == [str(n + 1) for n in range(len(timeline.events))]
    assert sum(row.missing for row in rows) == bool(timeline.missing)
    assert sum("not ordered after" in row.after for row in rows) == len({edge.target for edge in timeline.edges if edge.missing})


def test_the_drawings_are_as_blessed() -> None:
    golden.check("timeline.txt", "\n".join(_drawings()))


def _drawings() -> Iterator[str]:
    for finding, name in zip(FINDINGS, IDS, strict=True):
        yield f"== {name}"
        yield from (line for line, _ in drawing.draw(_built(finding), 96, drawing.ASCII))
        yield ""


def test_the_option_draws_each_finding_in_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json_format.dumps(samples.violations()), encoding="utf-8")
    assert main(["report", str(file)]) == 0
    plain = capsys.readouterr().out
    assert "in flight" not in plain
    assert main(["report", str(file), "--timeline"]) == 0
    drawn = capsys.readouterr().out
    assert "* in flight, group 2" in drawn
    assert drawn.isascii()
    assert max(len(line) for line in drawn.splitlines() if "report" not in line) <= text.PLAIN_WIDTH
    monkeypatch.setenv("CONSAN_TIMELINE", "1")
    assert main(["report", str(file)]) == 0
    assert capsys.readouterr().out == drawn
    written = tmp_path / "report.txt"
    assert main(["report", str(file), "-o", str(written)]) == 0
    assert "* in flight, group 2" in written.read_text(encoding="utf-8")


def test_a_name_that_is_not_ascii_keeps_a_plain_drawing_ascii() -> None:
    race = replace(samples.RACE, accesses=tuple(replace(access, file="k\u00e9rnel.cu") for access in samples.RACE.accesses))
    assert text.render(assemble(device="cpu", findings=[race], kernels=[samples.KERNEL]), timeline=True).isascii()


def test_a_mbarrier_s_wait_comes_after_its_phase() -> None:
    load = next(finding for finding in FINDINGS if finding.kind == "missing-wait" and finding.accesses[0].role == "bulk load")
    timeline = _built(replace(load, situation="waited-no-barrier"))
    edges = [(timeline.events[edge.source].text, timeline.events[edge.target].text) for edge in timeline.edges if not edge.missing]
    assert edges == [("bulk load", "in flight"), ("ends", "phase 3 completes"), ("phase 3 completes", "waits for the end of (1)")]
    assert _titles(timeline)[2] == "another thread"
