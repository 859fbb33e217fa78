"""Verified fixes in words: `with cp.async.wait_group 0 before the bar.sync at k.cu:48 nothing is found`."""

from __future__ import annotations

import itertools
import math
import os
import re
from typing import Final

from consan.reports.frameworks import words_of
from consan.reports.model import FixStep, VerifiedFix, plural

# The words of a framework (frameworks.py) for an instruction, and the operation that they are of.
_SPELLED: Final = (
    (re.compile(r"bar\.sync 0$"), "cta_barrier", ""),
    (re.compile(r"bar\.warp\.sync 0xffffffff$"), "warp_barrier", ""),
    (re.compile(r"fence\.(?:sc|acq_rel)\.gpu$"), "gpu_fence", ""),
    (re.compile(r"cp\.async\.wait_group (\d+)$"), "wait_cpp", "cp.async"),
    (re.compile(r"cp\.async\.commit_group$"), "commit_cpp", "cp.async"),
)
_GROUP_WAIT: Final = re.compile(r"wait_group\S* (\d+)$")
_WORDS: Final = {
    "add": "with {what} {where} {place}",
    "move": "with {what} moved {where} {place}",
    "alter": "with {what} at {place}",
    "leave-out": "without the {what} at {place}",
}


def sentence_of(fix: VerifiedFix) -> str:
    """The repair that the replay has confirmed, as a sentence."""
    groups = itertools.groupby(fix.steps, key=lambda step: (step.action, step.where, step.file, step.line or -step.ptx_line, step.at))
    repair = ", and ".join(_group(list(group)) for _, group in groups)
    found = "nothing is found" if not fix.left else f"this finding is gone and none is new ({plural(fix.left, 'pair')} left)"
    where = "on runs of the changed kernel" if fix.rerun else "on the recorded launch"
    return f"{where}: {repair} {found}"


def left_in_flight(fix: VerifiedFix | None) -> float:
    """The groups that the verified wait leaves in flight: the fix of the one finding may leave more, which another finding forbids."""
    waits = (_GROUP_WAIT.search(step.instruction) for step in fix.steps) if fix else ()
    return min((int(found[1]) for found in waits if found), default=math.inf)


def _group(steps: list[FixStep]) -> str:
    first = steps[0]
    what = ", then ".join(dict.fromkeys(map(_instruction, steps)))  # an unrolled loop has copies of one
    place = f"{first.at} at {_place(first)}" if first.at and first.action in ("add", "move") else _place(first)
    return _WORDS[first.action].format(what=what, where=first.where, place=place)


def _instruction(step: FixStep) -> str:
    return f"{step.instruction} ({step.spelling})" if step.spelling else step.instruction


def spelling(framework: str, instruction: str) -> str:
    """How a framework spells an instruction; empty if that is not known, or as in PTX."""
    for pattern, word, operation in _SPELLED:
        if found := pattern.match(instruction):
            leave = found[1] if found.groups() else ""
            name = words_of(framework, operation)[word].replace("{leave}", leave).partition(" (")[0]
            return "" if name.startswith(instruction.partition(".")[0]) else name
    return ""


def _place(step: FixStep) -> str:
    return f"{os.path.basename(step.file)}:{step.line}" if step.line else f"PTX line {step.ptx_line}"
