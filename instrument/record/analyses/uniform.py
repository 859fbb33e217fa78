"""Values that are equal in all lanes of a warp: a shuffle that hands one of them from a lane to the others needs no log, since the host
computes it.

Compilers spread the number of a warp in this way, because their assembler keeps such a value in a register of the warp: in Triton's kernels
for products once for each round of the loop.

A value is uniform in the warp if it follows from numbers, from values that are equal in the CTA, and from the bits of %tid.x above those of
the lane, in a kernel whose text says that blocks have one dimension. All of its registers are written once, so loops do not change it.
"""

from __future__ import annotations

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key, key_of
from consan.instrument.isa import is_exact, is_move, lowest_bit, takes_from_lane
from consan.instrument.ptx import Function, Immediate, Instruction, Operand, Register

LANE_BITS = 5
_ALL_LANES = 0xFFFFFFFF
_OF_CTA = frozenset({"%ctaid", "%nctaid", "%ntid", "%clusterid", "%nclusterid"})


@dataclass(frozen=True)
class WarpValues:
    """Those of a function. `made`: the instructions that write each register."""

    function: Function
    made: dict[Key, list[Instruction]]

    def spreads(self, instruction: Instruction) -> bool:
        """Whether all lanes get from one lane what each of them has itself."""
        if not takes_from_lane(instruction) or instruction.predicate is not None or not self._has_line:
            return False
        target, source, lane, _, mask = instruction.operands
        whole = isinstance(mask, Immediate) and int(mask.value) & _ALL_LANES == _ALL_LANES
        return whole and isinstance(lane, Immediate) and isinstance(target, Register) and self._is_same(instruction, source, frozenset())

    @property
    def _has_line(self) -> bool:
        extents = self.function.directives.get("reqntid")
        return isinstance(extents, tuple) and all(extent == 1 for extent in extents[1:])

    def _is_same(self, instruction: Instruction, operand: Operand | None, above: frozenset[Key]) -> bool:
        """Whether an operand is the same in all lanes. `above`: registers that follow from it."""
        if not isinstance(operand, Register):
            return isinstance(operand, Immediate)
        if not instruction.scope.is_register(operand.name):
            return operand.name.partition(".")[0] in _OF_CTA
        key = key_of(instruction.scope, operand.name)
        made = self._only(key)
        if made is None or key in above or not is_exact(made):
            return False
        if self._drops_lanes(made):
            return True
        plain = all(isinstance(each, (Register, Immediate)) for each in made.operands)
        return plain and all(self._is_same(made, each, above | {key}) for each in made.operands[1:])

    def _drops_lanes(self, instruction: Instruction) -> bool:
        """Whether an instruction takes bits of %tid.x without those of the lane."""
        operands = instruction.operands
        if len(operands) < 3 or not isinstance(operands[1], Register) or not all(isinstance(each, Immediate) for each in operands[2:]):
            return False
        second = operands[2]
        assert isinstance(second, Immediate)
        if second.kind != "int" or lowest_bit(instruction, int(second.value)) < LANE_BITS:
            return False
        made = self._only(key_of(instruction.scope, operands[1].name)) if instruction.scope.is_register(operands[1].name) else instruction
        return made is not None and (made is instruction or is_move(made)) and made.operands[1].text == "%tid.x"

    def _only(self, key: Key) -> Instruction | None:
        """The one instruction that writes a register, and always does."""
        made = self.made.get(key, [])
        return made[0] if len(made) == 1 and made[0].predicate is None else None
