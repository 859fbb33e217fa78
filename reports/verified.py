"""Verified fixes in words: `with cp.async.wait_group 0 before the bar.sync at k.cu:48 nothing is found`."""

from __future__ import annotations

import itertools
import os
import re
from typing import Final

from consan.reports.model import FixStep, VerifiedFix, plural

_CUDA: Final = (  # how CUDA C++ spells an instruction
    (re.compile(r"bar\.sync 0$"), "__syncthreads()"),
    (re.compile(r"bar\.warp\.sync 0xffffffff$"), "__syncwarp()"),
    (re.compile(r"cp\.async\.wait_group (\d+)$"), r"__pipeline_wait_prior(\1)"),
    (re.compile(r"cp\.async\.commit_group$"), "__pipeline_commit()"),
)
_WORDS: Final = {
    "add": "with {what} {where} {place}",
    "move": "with {what} moved {where} {place}",
    "alter": "with {what} at {place}",
    "leave-out": "without the {what} at {place}",
}


def sentence_of(fix: VerifiedFix) -> str:
    """What the replay has confirmed."""
    groups = itertools.groupby(fix.steps, key=lambda step: (step.action, step.where, step.file, step.line, step.at))
    repair = ", and ".join(_group(list(group)) for _, group in groups)
    found = "nothing is found" if not fix.left else f"this finding is gone and none is new ({plural(fix.left, 'pair')} left)"
    return f"on the recorded launch: {repair} {found}"


def _group(steps: list[FixStep]) -> str:
    first = steps[0]
    what = ", then ".join(_instruction(step.instruction) for step in steps)
    place = f"{first.at} at {_place(first)}" if first.at and first.action in ("add", "move") else _place(first)
    return _WORDS[first.action].format(what=what, where=first.where, place=place)


def _instruction(ptx: str) -> str:
    """The PTX, and in parentheses what CUDA C++ calls it."""
    found = (pattern.sub(word, ptx) for pattern, word in _CUDA if pattern.match(ptx))
    return next((f"{ptx} ({word})" for word in found), ptx)


def _place(step: FixStep) -> str:
    return f"{os.path.basename(step.file)}:{step.line}" if step.line else f"PTX line {step.ptx_line}"
