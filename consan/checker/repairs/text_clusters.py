"""Repairs of mbarriers that serve a cluster, as edits of the text (see text_repairs.py).

A multicast is issued by one CTA and writes to several: the readers of all of them arrive at the mbarrier for which its issuer waits.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

from consan.checker.repairs.edits import Edit
from consan.checker.repairs.forms import RepairStep
from consan.checker.repairs.text_paths import TextRepair
from consan.checker.repairs.text_waits import WaitForms
from consan.instrument import effects
from consan.instrument.control_flow import definitions, keys_read
from consan.instrument.isa import row_of
from consan.instrument.ptx import Address, Function, Instruction, Symbol

AT_EACH_CTA: Final = "mbarrier.arrive at the mbarrier of each CTA of the cluster"
_TOO_EARLY: Final = ("data-race", "missing-wait", "barrier-misuse")
_MULTICAST: Final = re.compile(r"\bmulticast::cluster\b")
_IN_CLUSTER: Final = re.compile(r"\bshared::cluster\b")
_MAPA: Final = re.compile(r"mapa\.shared\b")
_ALONE: Final = re.compile(r"mbarrier\.arrive\b(?!.*(?:expect_tx|noComplete))")
_WAIT: Final = re.compile(r"(mbarrier\.(?:try|test)_wait(?:\.parity)?)(?:\.(?:acquire\.cta|relaxed\.\w+))?(?!\.acquire)(?=\.)")
_NARROW: Final = re.compile(rf"(?!.*\.cluster){_WAIT.pattern}")
_AT_EACH: Final = (
    "{{ .reg .b32 here, there, rank, all; .reg .pred more; {skip}{here} mov.u32 all, %cluster_nctarank; mov.u32 rank, 0;"
    " again: mapa.shared::cluster.u32 there, here, rank; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];"
    " add.u32 rank, rank, 1; setp.lt.u32 more, rank, all; @more bra again; over: }}"
)
_OF_EACH: Final = "{{ .reg .b32 all; mov.u32 all, %cluster_nctarank; mul.lo.u32 all, all, {count}; {opcode} {at}, all; }}"
_At = tuple[Function, Instruction]


class ClusterForms(WaitForms):
    """The candidate repairs of mbarriers in clusters."""

    def _heard_by_all(self) -> Iterator[TextRepair]:
        """Arrivals at the mbarrier of each CTA of the cluster, and a count that includes them; and a wait that acquires from them."""
        if self.kind not in _TOO_EARLY or not any(_MULTICAST.search(each.opcode) for _, each in self._own):
            return
        arrivals = [each for each in self._of_kinds((effects.MbarrierArrive,)) if _ALONE.match(each[1].opcode) and _here(*each)]
        inits = [each for each in self._of_kinds((effects.MbarrierInit,)) if row_of(each[1]).does(effects.MbarrierInit)]
        waits = [each for each in self._of_kinds((effects.MbarrierWait,)) if _NARROW.match(each[1].opcode)]
        choices = (self._by_statement(arrivals), self._by_statement(inits), [[], *self._by_statement(waits)])
        for heard, counted, waited in itertools.product(*choices):
            edits: list[Edit] = [(each.start, each.end, _at_each(function, each)) for function, each in heard]
            edits += [(each.start, each.end, _of_each(each)) for _, each in counted]
            edits += [(each.start, each.end, _WAIT.sub(r"\1.acquire.cluster", each.text, count=1)) for _, each in waited]
            steps = [RepairStep("alter", AT_EACH_CTA, "at", self._site(*heard[0]))]
            steps += [
                RepairStep("alter", f"{each.opcode} with the count times the CTAs of the cluster", "at", self._site(function, each))
                for function, each in counted[:1]
            ]
            steps += [
                RepairStep("alter", f"{each.opcode} of a wider scope (.cluster)", "at", self._site(function, each))
                for function, each in waited[:1]
            ]
            yield TextRepair(tuple(steps), tuple(edits))

    def _by_statement(self, found: list[_At]) -> list[list[_At]]:
        groups: dict[object, list[_At]] = {}
        for each in found:
            groups.setdefault(self._statement(*each), []).append(each)
        return list(groups.values())


def _here(function: Function, arrival: Instruction) -> str:
    """Code that gives the address of the mbarrier in the own CTA to `here`; empty if the text does not show it."""
    place = next(each for each in arrival.operands if isinstance(each, Address))
    base = place.base.name if isinstance(place.base, Symbol) else place.base.text
    if _IN_CLUSTER.search(arrival.opcode):
        writers = [each for key in keys_read(arrival) if key[-1] == base for each in definitions(function).get(key, ())]
        if len(writers) != 1 or not _MAPA.match(writers[0].opcode):
            return ""
        base = writers[0].operands[1].text
    return f"mov.u32 here, {base}; add.u32 here, here, {place.offset or 0};"


def _at_each(function: Function, arrival: Instruction) -> str:
    guard = arrival.predicate
    skip = f"@{'' if guard.negated else '!'}{guard.register} bra over; " if guard is not None else ""
    return _AT_EACH.format(skip=skip, here=_here(function, arrival))


def _of_each(init: Instruction) -> str:
    at, count = (operand.text for operand in init.operands)
    return _OF_EACH.format(count=count, opcode=init.opcode, at=at)
