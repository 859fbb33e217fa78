"""Relations of the integer parameters that a launch shows, and that a proof may assume: `parameter 2 >= parameter 5`, `parameter 2 >= 64`.

Strides are parameters, and without a bound on them rows of an array may overlap. Candidates are relations that hold in the launch. For each
pair of accesses that may meet, the fewest that keep them apart are looked for: one alone first, in the order from the most general ones to
those that give a parameter its value. The kernel is then proven once more under all that were found. Each later launch is held to them
(conditions.py), and one launch satisfies them, so a proof is never one about no launch.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from consan.dataclass import dataclass
from consan.instrument.ptx import Function, Module
from consan.prove.environment import SamePointers, Shape
from consan.prove.parameters import LaunchWord, ParameterRelation
from consan.prove.proof import OPEN, PROVEN, KernelProof, PossibleRace, prove
from consan.prove.solver import until

_ALIGNED: Final = 16  # what compilers ask of a parameter before they rely on it
_MOST_PARAMETERS: Final = 12  # in one question
_SECONDS: Final = 1.0  # of one question
_MOST_ROUNDS: Final = 3


def prove_as_launched(
    function: Function, module: Module, block: Shape, pointers: Collection[int], parameters: Sequence[bytes], seconds: float
) -> KernelProof:
    """The answer for a kernel, under relations of its parameters that hold in a launch where it needs some.

    Pointers that are equal in the launch stand for one array.
    """
    ends = time.monotonic() + seconds
    relations: tuple[ParameterRelation, ...] = ()
    same = same_pointers(pointers, parameters)
    proof = first = prove(function, module, block, pointers, (), seconds, same, notes=True)
    for _ in range(_MOST_ROUNDS):
        if proof.answer == PROVEN or not proof.open or any(each.why not in OPEN for each in proof.reasons):
            break
        with until(ends):
            found = _found(proof.open, parameters, relations, ends)
        if found is None or set(found) <= set(relations):
            break
        relations = found
        held = [each.formula for each in relations]
        proof = prove(function, module, block, pointers, held, ends - time.monotonic(), same, notes=True)
    return replace(proof, relations=relations) if proof.answer == PROVEN else first


def same_pointers(pointers: Collection[int], parameters: Sequence[bytes]) -> SamePointers:
    """The pointers that are equal to another one, each with the first of these. No access through a null pointer is valid."""
    first: dict[bytes, int] = {}
    for place in sorted(pointers):
        first.setdefault(parameters[place], place)
    return {place: begin for place in pointers if (begin := first[parameters[place]]) != place and any(parameters[place])}


def _found(
    races: Sequence[PossibleRace], parameters: Sequence[bytes], known: tuple[ParameterRelation, ...], ends: float
) -> tuple[ParameterRelation, ...] | None:
    """Relations under which no pair meets; None: those of the launch are not enough, or the time is over."""
    chosen = list(known)
    for race in races:
        question = _Question(race, ends)
        if question.has_none(chosen):
            continue
        candidates = list(_candidates(race, parameters))
        if not question.has_none([*chosen, *candidates]):
            return None
        one = next((each for each in candidates if question.has_none([*chosen, each])), None)
        chosen += [one] if one is not None else _fewest(question, chosen, candidates)
        if time.monotonic() > ends:
            return None
    return tuple(dict.fromkeys(chosen))


@dataclass(frozen=True)
class _Question:
    """Whether two threads meet under some relations."""

    race: PossibleRace
    ends: float

    def has_none(self, relations: Sequence[ParameterRelation]) -> bool:
        """Whether they do not."""
        left = min(_SECONDS, self.ends - time.monotonic())
        more = [each.formula(self.race.environment) for each in relations]
        return left > 0 and self.race.questions.model(self.race.pair, left, more) is False


def _fewest(question: _Question, chosen: Sequence[ParameterRelation], candidates: list[ParameterRelation]) -> list[ParameterRelation]:
    """The fewest candidates, each one needed; the least general ones are tried first."""
    left = list(candidates)
    size = len(left) // 2
    while size:
        for end in range(len(left), 0, -size):
            fewer = [*left[: max(0, end - size)], *left[end:]]
            if question.has_none([*chosen, *fewer]):
                left = fewer
        size //= 2
    return left


def _candidates(race: PossibleRace, parameters: Sequence[bytes]) -> Iterator[ParameterRelation]:
    """The relations that hold in a launch, of parameters that two accesses follow from: the most general ones first."""
    words = list(_words(race))[:_MOST_PARAMETERS]
    values: Mapping[LaunchWord, int] = {each: each.value(parameters) for each in words}
    yield from (ParameterRelation(each, ">=", None, least) for least in (0, 1) for each, value in values.items() if value >= least)
    pairs = ((one, other) for one in words for other in words if one is not other)
    yield from (ParameterRelation(one, ">=", other) for one, other in pairs if values[one] >= values[other])
    yield from (ParameterRelation(each, "%", None, _ALIGNED) for each, value in values.items() if value and value % _ALIGNED == 0)
    for how in (">=", "<="):
        yield from (ParameterRelation(each, how, None, value) for each, value in values.items() if how == "<=" or value > 1)


def _words(race: PossibleRace) -> Iterator[LaunchWord]:
    """The parameters that two accesses follow from."""
    names = set(race.questions.variables([race.pair.first, race.pair.second]))
    for (place, offset, bits), each in race.environment.parameters.items():
        if str(each.term) in names:
            yield LaunchWord(place, offset, bits, f"parameter {place + 1}{f' at byte {offset}' if offset else ''}")
