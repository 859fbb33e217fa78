"""`consan advise` on real kernels with synchronisation added on purpose: it is listed, and nothing that the kernel needs is.

What is added stands right behind what is there already, so that either of the two may go, and has a line of its own in the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import hopper_cases
import pytest
from hopper_cases import FAULTS, HOPPER_CASES
from real_cases import CASES, Case
from real_run import ptx_of, run_checked

from consan.checker.repairs.text_places import TextPlaces
from consan.instrument import effects
from consan.instrument.ptx import parse
from consan.reports.formats.advised import AdviceLine
from consan.reports.source.patches import edited
from consan.session.asking.advice import Advice
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

_BEGIN, _END = "// begin inline asm", "// end inline asm"
_LINE = 90001


@dataclass(frozen=True)
class Added:
    """Code that is added behind the first event of a kind, and the opcode that is to be listed."""

    behind: Callable[[effects.Effect], bool]
    code: str
    opcode: str


def _is_whole(event: effects.Effect) -> bool:
    return isinstance(event, effects.CtaBarrier) and event.threads == effects.ALL_THREADS


def _waits_for_all(event: effects.Effect) -> bool:
    return isinstance(event, effects.CopyWait) and event.pending == effects.WordValue(0)


ADDED = {
    "barrier": Added(_is_whole, "bar.sync 0;", "bar.sync"),
    "warp barrier": Added(lambda event: isinstance(event, effects.WarpSync), "bar.warp.sync 0xffffffff;", "bar.warp.sync"),
    "commit and wait": Added(_waits_for_all, "cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_group"),
    "fence by all": Added(_is_whole, "fence.proxy.async;", "fence.proxy.async"),
}


def _ends(ptx: str, added: Added) -> list[int]:
    """The ends of the instructions behind which code may be added."""
    module = parse(ptx)
    text = TextPlaces(module)
    lines = {text.places.sites[text.places[spot].site].ptx_line for spot in text.places.spots(added.behind)}
    return [each.end for function in module.functions if function.body for each in function.instructions() if each.line in lines]


def _with(ptx: str, added: Added, place: int) -> str:
    """The addition is a statement of its own, also where it comes in inline assembly, whose lines are all that of its statement."""
    loc = f"\n\t.loc 1 {_LINE} 1" if "\t.loc" in ptx else ""
    inside = ptx.rfind(_BEGIN, 0, place) > ptx.rfind(_END, 0, place)
    before, behind = (f"\n\t{_END}", f"\n\t{_BEGIN}") if inside else ("", "")
    return edited(ptx, [(place, place, f"{before}{loc}\n\t{added.code}{loc.replace(str(_LINE), str(_LINE + 1))}{behind}\n")])


def advice_of(case: Case, ptx: str) -> list[AdviceLine]:
    """The list for the small launch of a case."""
    session, advice = Session(SessionOptions(device="cpu", global_memory="on"), private=True), Advice()
    advice.listen(session)
    report = run_checked(ptx, case.launch("small", 0), session)[1]
    if any(finding.severity != "note" for finding in report.active):
        pytest.skip("it has findings of its own, so nothing is assessed")
    return advice.lines


def with_added(case: Case, ptx: str, added: Added) -> Iterator[tuple[str, list[AdviceLine]]]:
    """The kernel with an addition at each place where it runs, and the list for it."""
    for place in _ends(ptx, added):
        text = _with(ptx, added, place)
        lines = advice_of(case, text)
        if any(_is_added(line, added) and line.ran for line in lines):
            yield text, lines


def _name(line: AdviceLine) -> tuple[object, ...]:
    return (line.file, line.line, line.ptx) if line.line else (line.ptx_line, line.ptx)


def _is_added(line: AdviceLine, added: Added) -> bool:
    return line.line == _LINE or (not line.line and line.ptx == f"{added.opcode} {added.code.rpartition(' ')[2]}")


def _check(case: Case, arch: str, kind: str) -> None:
    if case.reads_past or case.name in FAULTS:
        pytest.skip("it has findings of its own, so nothing is assessed")
    added, ptx = ADDED[kind], ptx_of(case.name, arch)
    if not _ends(ptx, added):
        pytest.skip(f"{case.name} has no place for it")
    before = advice_of(case, ptx)
    if not before:
        pytest.skip(f"{case.name} is not recorded")
    free = {_name(line) for line in before if line.need == "not needed"}
    assessed = {_name(line) for line in before if line.need != "not assessed"}
    after = next((lines for _, lines in with_added(case, ptx, added)), [])
    own = [line for line in after if _is_added(line, added)]
    assert own, [vars(line) for line in before]
    gone = {_name(line) for line in after if line.together} - {_name(line) for line in own}
    if any(line.need == "not assessed" for line in own):
        pytest.skip(f"not assessed: {own[0].why}")
    assert any(line.need == "not needed" for line in own), vars(own[0])
    twins = [name for name in gone - free if name in assessed]
    assert len(twins) <= 1, "of a pair one may go"


QUICK = [("nvrtc/cp_async_pipeline", "commit and wait"), ("nvrtc/sgemm_tiled", "barrier")]


@pytest.mark.parametrize(("name", "kind"), QUICK)
def test_what_was_added_is_listed(name: str, kind: str) -> None:
    _check(next(case for case in CASES if case.name == name), "sm_80", kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ADDED)
@pytest.mark.parametrize("case", [*CASES, *HOPPER_CASES], ids=lambda case: case.name)
def test_what_was_added_is_listed_everywhere(case: Case, kind: str) -> None:
    hopper = case in HOPPER_CASES
    if kind == "fence by all" and not hopper:
        pytest.skip("a fence of sm_90")
    _check(case, hopper_cases.ARCH if hopper else "sm_80", kind)
