"""Flags of other ranks that work of unknown accesses may have waited for, or stored (R-RK8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planted import plant
from test_peer_flags import LATER, UNCERTAIN, Clock, Member, judged, members

from consan.session.comparing import peer_flags, process_log

__all__ = ["members"]

UNSEEN: dict[str, Callable[[Member], Any]] = {
    "a kernel that is not recorded": lambda member: member.framework.calls.call("cuLaunchKernel", 1, *[1] * 7, 0, 0, 0),
    "a copy of the flag": lambda member: member.framework.calls.call("cuMemcpyDtoH", 1 << 40, member.framework.out + 384 * 4, 4),
}
NOTHING: Callable[[Member], Any] = lambda _member: None  # noqa: E731


def unseen(members: list[Member], folder: Path, between: Callable[[Member], Any], *, idle: bool = True) -> tuple[list[str], list[str]]:
    """A rank does something behind the begin of the other one's launch, and launches. `idle`: nothing ran there before that."""
    if idle:
        members[1].clock.now = -1
        members[1].framework.calls.call("cuCtxSynchronize")
    members[0].made("raises")
    between(members[1])
    members[1].made("takes", at=LATER)
    return judged(members, folder)


@pytest.mark.parametrize(("what", "hazards"), [*zip(UNSEEN, ([], ["RAW"]), strict=True)])
def test_what_may_have_waited_for_a_flag(members: list[Member], tmp_path: Path, what: str, hazards: list[str]) -> None:
    """The copy of the flag races with its store."""
    found, reasons = unseen(members, tmp_path, UNSEEN[what])
    assert (found, {*reasons}) == (hazards, {UNCERTAIN})


def test_what_has_waited_for_a_flag_before_it_was_known_that_nothing_ran(members: list[Member], tmp_path: Path) -> None:
    assert unseen(members, tmp_path, NOTHING, idle=False) == ([], [UNCERTAIN])


def test_a_flag_that_nobody_waits_for(members: list[Member], tmp_path: Path) -> None:
    """All is known that the rank did since the other one's launch began."""
    assert unseen(members, tmp_path, NOTHING) == (["RAW"], [])


def of_others(members: list[Member], folder: Path) -> tuple[list[str], list[str]]:
    """Before all launches the flags have a value that no recorded launch has stored."""
    members[1].made("looks", holds=7, value=8)
    members[0].made("raises", value=8)
    members[1].made("awaits", holds=8, value=8)
    return judged(members, folder)


def test_a_flag_with_another_first_value(members: list[Member], tmp_path: Path) -> None:
    assert of_others(members, tmp_path) == ([], [])


def handed_on_unseen(members: list[Member], folder: Path) -> tuple[list[str], list[str]]:
    """Somebody who is not seen may have waited for one flag, and stored another one."""
    members[0].made("raises")
    members[1].made("awaits_second", holds=1)
    return judged(members, folder)


def test_a_flag_that_others_have_stored(members: list[Member], tmp_path: Path) -> None:
    assert handed_on_unseen(members, tmp_path) == ([], [UNCERTAIN])


OTHER_MUTANTS: dict[str, tuple[str, str, Callable[[list[Member], Path], tuple[list[str], list[str]]]]] = {
    "what is known": ("not self._shows(first, second)", "False", lambda *given: unseen(*given, NOTHING, idle=False)),
    "all is known": ("not self._shows(first, second)", "True", lambda *given: unseen(*given, NOTHING)),
    "copies": ("or _touch(copies, place)", "", lambda *given: unseen(*given, UNSEEN["a copy of the flag"])),
    "the first value": ("{each.old for each in accesses if each.old is not None}", "()", of_others),
    "what others stored": ("if read.place in of_others else", "if False else", handed_on_unseen),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", OTHER_MUTANTS)
def test_a_fault_in_what_others_did(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mutant: str) -> None:
    old, new, program = OTHER_MUTANTS[mutant]
    monkeypatch.setattr(process_log, "now", clock := Clock())
    for folder in (right := tmp_path / "right", wrong := tmp_path / "wrong"):
        folder.mkdir()
    found = program([Member(rank, clock) for rank in range(2)], right)
    plant(monkeypatch, peer_flags, old, new)
    assert program([Member(rank, clock) for rank in range(2)], wrong) != found
