"""Which instructions of a loop may be waiting for another thread: to say where a thread stands that goes round and round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

_STRONG = frozenset({"volatile", "relaxed", "acquire", "mmio"})
_LOOKS = (("mbarrier", "test_wait"), ("mbarrier", "try_wait"))


class _Instruction(Protocol):
    @property
    def parts(self) -> Sequence[str]: ...


def polls(instruction: _Instruction) -> bool:
    """Whether a loop around the instruction may wait for another thread; without instructions that wait by themselves."""
    parts = instruction.parts
    if parts[0] in ("atom", "nanosleep") or tuple(parts[:2]) == _LOOKS[0]:
        return True
    return parts[0] == "ld" and not _STRONG.isdisjoint(parts)


def may_wait(instruction: _Instruction) -> bool:
    """The same with `mbarrier.try_wait`, which waits for a while."""
    return polls(instruction) or tuple(instruction.parts[:2]) == _LOOKS[1]
