"""The kernel that a proof is about, and the proof's answer with places in the source."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from consan._errors import UsageError
from consan.commands.parts.proofs import ProofPlace, ProofReport
from consan.dataclass import dataclass
from consan.files import read_file
from consan.instrument.ptx.extents import three_extents
from consan.launching.arguments import check_dimensions, parse_dim3
from consan.launching.declarations import declarations
from consan.launching.entries import choose_entry
from consan.launching.parameter_kind import POINTER
from consan.launching.signature import kinds_of
from consan.launching.source import is_cuda
from consan.prove.assumptions import Assumption, names_of
from consan.prove.environment import pointers_of
from consan.prove.launched.relations import prove_as_launched
from consan.prove.proof import COUNTEREXAMPLE, KernelProof, ProofReason, prove
from consan.reports.source.names import function_name

if TYPE_CHECKING:
    from consan.instrument.ptx import Function, Module

_ONE_CTA: Final = (1, 1, 1)


@dataclass(frozen=True)
class ProofSubject:
    """The kernel in question, and what is said of its launches."""

    file: str
    module: Module
    function: Function
    block: tuple[int, int, int]
    pointers: tuple[int, ...]
    assumptions: tuple[Assumption, ...]

    @classmethod
    def of(cls, args: argparse.Namespace, module: Module) -> ProofSubject:
        """The kernel that the command line names."""
        function = choose_entry(module, args.entry, args.file)
        source = read_file(args.file) if is_cuda(args.file) else None
        kinds = kinds_of(function, None if source is None else lambda: source)
        pointers = tuple(place for place, kind in enumerate(kinds) if kind.kind == POINTER)
        names = names_of(function.params, _declared(function, source), pointers)
        assumptions = tuple(Assumption(text, names) for text in getattr(args, "assumptions", ()))
        return cls(args.file, module, function, _block(args, function), pointers, assumptions)

    def prove(self, seconds: float) -> KernelProof:
        """The answer for the kernel, within about so many seconds."""
        assumed = [each.formula for each in self.assumptions]
        return prove(self.function, self.module, self.block, self.pointers, assumed, seconds, notes=True)

    def prove_as_launched(self, parameters: Sequence[bytes], seconds: float) -> KernelProof:
        """The same, under relations of parameters that a launch shows where it needs some."""
        pointers = sorted({*self.pointers, *pointers_of(self.function)})
        return prove_as_launched(self.function, self.module, self.block, pointers, parameters, seconds)

    def report(self, answer: str, proof: KernelProof, seconds: float, command: str = "", lines: tuple[int, ...] = ()) -> ProofReport:
        """The answer in words, with places in the source. `command`, `lines`: of the launch that was run, and of its accesses."""
        reasons = [] if answer == COUNTEREXAMPLE else proof.reasons
        if command and answer != COUNTEREXAMPLE:
            reasons = [*reasons, ProofReason(f"a launch in which they should showed no race: {command}", lines)]
        return ProofReport(
            kernel=function_name(self.function.name),
            block=self.block,
            answer=answer,
            flat=() if proof.environment is None else proof.environment.flat,
            overflows=tuple(map(self._place, proof.overflows)),
            assumptions=(*proof.premises(), *self._alike(proof), *(each.text for each in self.assumptions)),
            calls=proof.calls,
            reasons=tuple((each.why, tuple(map(self._place, each.lines))) for each in reasons),
            pairs=proof.pairs,
            seconds=seconds,
            command=command,
            places=tuple(map(self._place, lines)),
        )

    def _alike(self, proof: KernelProof) -> Iterator[str]:
        """The races that count as none, with where they are."""
        for why in dict.fromkeys(each.why for each in proof.alike):
            places = (self._place(line) for each in proof.alike for line in each.lines if each.why == why)
            yield f"{why}: {', '.join(dict.fromkeys(map(str, places)))}"

    def _place(self, line: int) -> ProofPlace:
        """A line of the PTX, and of the source."""
        at = next((each.loc for each in self.function.instructions() if each.line == line), None)
        return ProofPlace(self.module.path(at.file), at.line, line) if at is not None else ProofPlace(self.file, 0, line)


def _declared(function: Function, source: str | None) -> list[str]:
    """The names of the parameters in the source, if it has one kernel of the name."""
    name = function_name(function.name).rpartition("::")[2]
    found = [each for each in declarations(source or "") if each.name == name]
    words = [re.findall(r"[A-Za-z_]\w*", text) for text in (found[0].parameters if len(found) == 1 else ())]
    return [each[-1] for each in words if each]


def _block(args: argparse.Namespace, function: Function) -> tuple[int, int, int]:
    """The shape of the blocks."""
    given = function.directives.get("reqntid")
    if args.block is not None:
        block = parse_dim3("--block", args.block)
        check_dimensions(_ONE_CTA, block, _ONE_CTA)
        return block
    if not isinstance(given, tuple):
        raise UsageError(f"{args.file}: {function.name} does not say how many threads a block has; use --block")
    return three_extents(given)
