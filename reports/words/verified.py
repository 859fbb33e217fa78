"""Verified fixes in words: `with cp.async.wait_group 0 before the bar.sync at k.cu:48 nothing is found`.

`fix:` and `verified:` of a finding name one repair. The words of the catalogue stay where they name what was verified: the same
instruction, on the same side of the same line. Else the verified repair takes their place.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from consan.reports.catalogue.situations import BELOW_FENCE, CHECKED, NOT_AWAITED, RELEASED_EARLY, SIGNALLED_COPY, UNWRITTEN, UPDATE
from consan.reports.counts import plural
from consan.reports.model import Finding, FixStep, VerifiedFix
from consan.reports.source.names import variable_name
from consan.reports.words.frameworks import CUDA, CUTE, WARP, advice_in, words_of

# The words of a framework (frameworks.py) for an instruction, and the operation that they are of.
_SPELLED: Final = (
    (re.compile(r"bar\.sync 0$"), "cta_barrier", ""),
    (re.compile(r"bar\.warp\.sync 0xffffffff$"), "warp_barrier", ""),
    (re.compile(r"fence\.(?:sc|acq_rel)\.gpu$"), "gpu_fence", ""),
    (re.compile(r"fence\.(?:sc|acq_rel)\.cta$"), "cta_fence", ""),
    (re.compile(r"cp\.async\.wait_group (\d+)$"), "wait_cpp", "cp.async"),
    (re.compile(r"cp\.async\.commit_group$"), "commit_cpp", "cp.async"),
)
# Those whose call in CUDA C++ has operands of its own, and is written by `source_patches`.
_SPELLED_IN_PYTHON: Final = (
    (re.compile(r"mbarrier\.try_wait\.parity\b"), "mbarrier_wait", ""),
    (re.compile(r"mbarrier\.arrive\b"), "arrive", ""),
    (re.compile(r"barrier\.cluster\.(?:arrive|wait)\b"), "cluster_barrier", ""),
    (re.compile(r"wgmma\.wait_group\.sync\.aligned (\d+)$"), "wait_cpp", "wgmma"),
    (re.compile(r"cp\.async\.bulk\.wait_group\.read (\d+)$"), "wait_cpp", "bulk store"),
    (re.compile(r"cp\.async\.bulk\.commit_group$"), "commit_cpp", "bulk store"),
    (re.compile(r"fence\.proxy\.async$"), "proxy_fence", ""),
)
_WAITS: Final = ("bar.", "barrier.", "mbarrier.try_wait")
_GROUPS: Final = ("cp.async.commit_group", "cp.async.wait_group")
_GROUP_WAIT: Final = re.compile(r"wait_group\S* (\d+)$")
_WORDS: Final = {
    "add": "with {what} {where} {place}",
    "move": "with {what} moved {where} {place}",
    "alter": "with {what} at {place}",
    "leave-out": "without the {what} at {place}",
}
_SYMBOL: Final = re.compile(r"\b_Z\w+")
_ORDERS: Final = {
    "add": "put {what} {where} {place}",
    "move": "move {what} {where} {place}",
    "alter": "use {what} at {place}",
    "leave-out": "leave out the {what} at {place}",
}
# How the catalogue names a change of what stands at a place.
_CHANGES: Final = {
    "alter": r"\b(?:write|widen|use|make|let|wait|initialise|announce|name|end)\b[^;]*?",
    "move": r"\bmove\b[^;]*?",
    "leave-out": r"\b(?:remove|leave out)\b[^;]*?",
}
_OUT: Final = re.compile(r"\bmove\b[^;]*\bout of (?:its|the) branch|make the branch uniform")
_BOTH_SIDES: Final = re.compile(r"let the threads of both sides pass the ")
_BARRIERS: Final = ("bar.sync", "barrier.sync.aligned", "barrier.sync")
_ELSEWHERE: Final = "the branch that contains "  # not the line itself
_COUNT: Final = re.compile(r"with a count of (\d+)$")
_COUNT_OF: Final = re.compile(r"\binitialise \S+ with ([\d,]+) at\b")
_CTA_BARRIER: Final = "bar.sync 0"
_WARP_BARRIER: Final = "bar.warp.sync 0xffffffff"
NOT_NAMED: Final = (1,)
_ALIASES: Final = (
    ("barrier.cluster", "cluster.sync()"),
    ("red.", "one atomic operation"),
    ("st.release", "a release"),
    ("ld.acquire", "an acquire"),
    ("fence.sc.gpu", "fence.acq_rel.gpu"),
)


def sentence_of(fix: VerifiedFix) -> str:
    """The repair that was confirmed, as a sentence."""
    found = "nothing is found" if not fix.left else f"this finding is gone and none is new ({plural(fix.left, 'pair')} left)"
    where = "on runs of the changed kernel" if fix.rerun else "on the recorded launch"
    left = f", but where the changed source is compiled without optimisation, a {fix.unoptimized} is left" if fix.unoptimized else ""
    return f"{where}: {_joined(fix, _WORDS)} {found}{_of_results(fix)}{left}"


def _of_results(fix: VerifiedFix) -> str:
    """The words on the results; most runs of a changed kernel are confirmed by equal ones."""
    if fix.rerun:
        return "" if fix.schedules else ", and its results depend on the schedule"
    return f", and {fix.schedules} schedules leave equal results" if fix.schedules else " (results not compared)"


def order_of(fix: VerifiedFix) -> str:
    """The same as what is to be done."""
    return _joined(fix, _ORDERS)


def _joined(fix: VerifiedFix, words: dict[str, str]) -> str:
    groups = itertools.groupby(fix.steps, key=lambda step: (step.action, step.where, step.file, step.line or -step.ptx_line, step.at))
    return ", and ".join(dict.fromkeys(_group(list(group), words) for _, group in groups))


def names(text: str, fix: VerifiedFix) -> bool:
    """Whether the words of a fix name each step of a repair, at its place or between the two lines that they give."""
    return all(_names_step(text, step) for step in fix.steps)


def _names_step(text: str, step: FixStep) -> bool:
    at = re.escape(_place(step)) + r"\b"
    aliases = [word for prefix, word in _ALIASES if step.instruction.startswith(prefix)]
    if step.action == "move" and step.instruction in _BARRIERS and (_BOTH_SIDES.search(text) or _OUT.search(text)):
        return True
    if step.instruction == "condition":
        return _OUT.search(text) is not None
    if step.action == "alter" and any(word in text for word in aliases):
        return True
    if (counts := _COUNT.search(step.instruction)) and (named := _COUNT_OF.search(text)) and named[1].replace(",", "") != counts[1]:
        return False
    if step.action != "add":
        side = rf"\b{step.where}\b[^;]*?" if step.action == "move" else ""
        return re.search(_CHANGES[step.action] + side + at, text) is not None
    words = (step.instruction.partition(" ")[0], step.spelling, *aliases)
    if not any(word and word in text for word in words):
        return False
    if step.at_condition and step.where == "before" and re.search(_ELSEWHERE + at, text):
        return True
    sided = rf"\b{step.where}\b(?:(?!\b(?:before|after)\b)[^;])*?{at}"
    is_sided = not re.search(_ELSEWHERE + at, text) and re.search(sided, text) is not None
    return is_sided or _is_between(text, step) or _is_behind_wait(text, step)


def _is_behind_wait(text: str, step: FixStep) -> bool:
    """Whether the words put it between a wait of another lane, at a place that they do not give, and the place of a step."""
    return step.where == "before" and re.search(rf"\bbetween the wait and {re.escape(_place(step))}\b", text) is not None


def _is_between(text: str, step: FixStep) -> bool:
    """Whether the place is between the line after which and the line before which the words put something."""
    line = rf"(?:(?!\b(?:before|after|and)\b)[^;])*?{re.escape(os.path.basename(step.file))}:(\d+)(?::\d+)?\b"
    found = re.search(rf"\bafter\b{line} and before\b{line}", text) or re.search(rf"\bbetween\b{line} and {line}", text)
    if found is None or not step.line:
        return False
    first, last, own = int(found[1]), int(found[2]), not re.search(_ELSEWHERE + re.escape(_place(step)) + r"\b", text)
    return first < step.line < last or (own and first < last and step.line == (last if step.where == "before" else first))


def turn_of(text: str, fix: VerifiedFix, framework: str) -> tuple[int, ...]:
    """When a fix is tried, as a key to sort by: first those that the words name, with the fewest further instructions, and of two that
    differ in the barrier the one with a barrier of the warp, where the words have one of the CTA. NOT_NAMED comes last.
    """
    wider = tuple(
        replace(step, instruction=_CTA_BARRIER, spelling=spelling(framework, _CTA_BARRIER)) if step.instruction == _WARP_BARRIER else step
        for step in fix.steps
    )
    is_named = names(text, fix)
    # A wait that is there, for fewer groups in flight, is a smaller repair than one more.
    if all(is_tighter_wait(text, step) for step in fix.steps):
        return (0, 0, int(is_named))
    if not is_named and (wider == fix.steps or not names(text, replace(fix, steps=wider))):
        return NOT_NAMED
    return (0, len({step.instruction for step in fix.steps if step.action != "alter"}), int(is_named))


def is_tighter_wait(text: str, step: FixStep) -> bool:
    """Whether a step is a wait for groups that is there, and leaves fewer in flight, where the words ask for a wait, also elsewhere."""
    is_wait = step.action == "alter" and _GROUP_WAIT.search(step.instruction) is not None
    return is_wait and re.search(rf"\b(?:wait with|write) {re.escape(step.instruction.split()[0])}\b", text) is not None


def own_words(finding: Finding) -> str:
    """The fix of a finding in the words of the catalogue."""
    return (finding.verified.instead_of if finding.verified else "") or finding.fix


def with_fix(finding: Finding, fix: VerifiedFix | None) -> Finding:
    """A finding with a verified fix, which its own fix then names too; or without one, in the words of the catalogue."""
    text = own_words(finding)
    if fix is None:
        return replace(finding, verified=None, fix=text)
    named = names(text, fix)
    return replace(finding, verified=replace(fix, instead_of="" if named else text), fix=text if named else order_of(fix) + advice_in(text))


def is_update(finding: Finding) -> bool:
    """Whether several threads update the same bytes, or look and then write: a barrier may hide that, and updates are lost.

    Lanes of a warp that update in turns, as in a sum by halves, lack only a barrier.
    """
    name, _, shape = finding.situation.partition("@")
    return shape == CHECKED or (shape == UPDATE and name != "no-warp-sync")


def misses_cause(fix: VerifiedFix, finding: Finding) -> bool:
    """Whether a fix hides the finding and leaves its cause: synchronisation between the load and the store of an update still loses
    updates; a wait for a group of copies is wrong where the program has an mbarrier for them; zeros are not what nobody writes; a read
    that comes after a barrier behind its own arrival may get the next value; and with a count that no phase ever gets nobody waits either.
    """
    unwritten = finding.cause == UNWRITTEN and any(step.instruction.startswith("zeros in ") for step in fix.steps)
    lost = is_update(finding) and any(step.action in ("add", "move") for step in fix.steps)
    grouped = finding.situation == SIGNALLED_COPY and any(step.instruction.startswith(_GROUPS) for step in fix.steps)
    unheard = finding.situation in NOT_AWAITED and any(" with a count " in step.instruction for step in fix.steps)
    return lost or unwritten or grouped or unheard or _reads_later(fix, finding)


def _reads_later(fix: VerifiedFix, finding: Finding) -> bool:
    """Whether threads meet between an arrival that lets others overwrite bytes and the read of these, and neither is moved."""
    early = finding.culprit if finding.cause == RELEASED_EARLY and all(step.action == "add" for step in fix.steps) else None
    return early is not None and any(
        step.file == early.file and step.instruction.startswith(_WAITS) and early.line < step.line + (step.where == "after") <= read.line
        for step in fix.steps
        for read in finding.pair
        if read.role == "read"
    )


def asks_for_nothing(finding: Finding) -> bool:
    """Whether nothing has to change: ptxas orders plain writes of accumulators that stand below a wgmma.fence by itself."""
    return finding.situation == BELOW_FENCE and finding.severity == "warning"


def with_whole_fixes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, with the verified fixes of kernels in which every error and warning has one: others keep a finding when repaired."""
    found = tuple(findings)
    counting = [each for each in found if each.severity != "note" and each.suppressed is None and not asks_for_nothing(each)]
    open_ = {each.kernel for each in counting if each.verified is None or misses_cause(each.verified, each)}
    return tuple(with_fix(each, None if each.kernel in open_ or each.severity == "note" else each.verified) for each in found)


def left_in_flight(fix: VerifiedFix | None) -> float:
    """The groups that the verified wait leaves in flight: the fix of the one finding may leave more, which another finding forbids."""
    waits = (_GROUP_WAIT.search(step.instruction) for step in fix.steps) if fix else ()
    return min((int(found[1]) for found in waits if found), default=math.inf)


def _group(steps: list[FixStep], words: dict[str, str]) -> str:
    first = steps[0]
    what = ", then ".join(dict.fromkeys(map(_instruction, steps)))  # an unrolled loop has copies of one
    place = f"{first.at} at {_place(first)}" if first.at and first.action in ("add", "move") else _place(first)
    return words[first.action].format(what=what, where=first.where, place=place)


def _instruction(step: FixStep) -> str:
    text = _SYMBOL.sub(lambda found: variable_name(found[0]), step.instruction)
    return f"{text} ({step.spelling})" if step.spelling else text


def spelling(framework: str, instruction: str) -> str:
    """How a framework spells an instruction; empty if that is not known, or as in PTX."""
    for pattern, word, operation in (*_SPELLED, *(() if framework in (CUDA, CUTE, WARP) else _SPELLED_IN_PYTHON)):
        if found := pattern.match(instruction):
            if word == "cluster_barrier":
                both = words_of(framework, operation)[word].partition(" (")[0].split(" and ")
                return both[not instruction.endswith("arrive")] if len(both) == 2 else ""
            leave = found[1] if found.groups() else ""
            name = words_of(framework, operation)[word].replace("{leave}", leave).partition(" (")[0].rpartition("; ")[2]
            return "" if name.startswith((instruction.partition(".")[0] + ".", "mbarrier.arrive")) and name != "mbarrier.wait" else name
    return ""


def _place(step: FixStep) -> str:
    return f"{os.path.basename(step.file)}:{step.line}" if step.line else f"PTX line {step.ptx_line}"
