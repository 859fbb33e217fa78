"""Questions about one instruction that need no more than its row: its family, where control goes, whether it may wait for others."""

from __future__ import annotations

from consan.instrument.effects import Effect
from consan.instrument.isa.model import InstructionLike, MemoryAccess, Row, Spelled
from consan.instrument.isa.table import lookup

__all__ = [
    "UNKNOWN",
    "adds",
    "chooses",
    "compares",
    "compares_and_swaps",
    "computes",
    "converts",
    "copies",
    "decides_with",
    "does",
    "elects",
    "family_of",
    "fenced_spaces",
    "fences_maps",
    "finds_larger",
    "flow_of",
    "has_action",
    "in_space",
    "is_exact",
    "is_move",
    "is_noncoherent",
    "is_wide",
    "joins_lanes",
    "keeps_payloads",
    "leaves_rounding",
    "lowest_bit",
    "makes_generic",
    "may_wait",
    "names_element",
    "polls",
    "row_of",
    "scalar_bytes",
    "shortened",
    "spares_shared",
    "sums",
    "swaps",
    "takes_either_order",
    "takes_from_lane",
]

# First letters of types of numbers that two machines may round in different ways.
_ROUNDED = ("f1", "f3", "f6", "bf", "tf", "e2m", "e3m", "e4m", "e5m", "ue8", "s2f")
_WITH_CARRY = frozenset({"addc", "subc", "madc"})
_MAY_BE_SHARED = frozenset({"shared", "generic"})
_COPIED = frozenset({"shared", "global"})
_HIDDEN = frozenset({"sync", "aligned", "b64", "pred"})
_WIDEST = 64  # bits
_WHOLE = frozenset({"b32", "u32", "s32", "b64", "u64", "s64"})
_ARITHMETIC = frozenset({"mov", "cvt", "add", "sub", "mul", "mad", "fma", "div", "neg"})  # that hand on what they take

_SCALED = frozenset(("mad", "fma"))
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})
_EITHER_ORDER = frozenset({"add", "mul", "min", "max", "and", "or", "xor"})
# The operands that no value of the others hides: a product may be with zero, and a logical operation with a mask.
_ALWAYS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("add", "sub", "xor", "min", "max", "setp", "set"), (1, 2)),
    **dict.fromkeys(("mov", "cvt", "neg", "not", "abs", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh", "div"), (1,)),
    **dict.fromkeys(_SCALED, (3,)),
}
_OF_ORDER = frozenset(("lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"))  # words of setp
_OF_CONDITIONS = frozenset(("and", "or", "xor"))  # words of setp and set: a second predicate joins in
_COMBINING = _SCALED | {"add", "sub", "min", "max", "and", "or", "xor"}  # what `atom` and `red` can do

UNKNOWN = Row("", "", "", "", "", "not modelled")
"""Stands for the row of an opcode that the table does not know."""

_CONJUNCTIONS: dict[tuple[str, ...], bool] = {("and", "pred"): True, ("or", "pred"): False}


def row_of(instruction: Spelled) -> Row:
    """The row of an instruction; `UNKNOWN`, which has no trait, without one."""
    return lookup(instruction.parts) or UNKNOWN


def scalar_bytes(instruction: Spelled, access: MemoryAccess) -> int:
    """The bytes of each scalar operation of an access: a vector, or a packed type, is as many (ISA "Packed Data Types")."""
    return access.width_bytes // (2 if row_of(instruction).modifiers(instruction.parts).get("type", "").endswith("x2") else 1)


def family_of(instruction: InstructionLike) -> str:
    """The family of an instruction; empty without a row."""
    row = lookup(instruction.parts)
    return row.family if row is not None else ""


def flow_of(instruction: InstructionLike) -> str:
    """The flow of control at an instruction (`Row.flow`); empty for the next instruction."""
    row = lookup(instruction.parts)
    return row.flow if row is not None else ""


def has_action(instruction: InstructionLike, family: str, *actions: str) -> bool:
    """Whether an instruction is of a family, with one of some actions."""
    row = lookup(instruction.parts)
    return row is not None and row.family == family and row.action in actions


def does(instruction: Spelled, *kinds: type[Effect]) -> bool:
    """Whether an instruction makes an effect of one of some kinds."""
    return row_of(instruction).does(*kinds)


def polls(instruction: InstructionLike) -> bool:
    """Whether a loop around the instruction may wait for another thread. Instructions that block by themselves do not count."""
    row = lookup(instruction.parts)
    if row is None:
        return False
    if row.family == "load":
        return row.semantics(row.modifiers(instruction.parts)).sem != "weak"
    return row.family == "atomic" or row.action in ("sleep", "test_wait")


def may_wait(instruction: InstructionLike) -> bool:
    """As `polls`, and `mbarrier.try_wait`, which blocks up to its time limit."""
    return polls(instruction) or has_action(instruction, "mbarrier", "try_wait")


def names_other_gpus(instruction: InstructionLike) -> bool:
    """Whether an opcode names the scope that other GPUs share. A volatile access has it without a name."""
    return "sys" in instruction.parts


def is_exact(instruction: InstructionLike) -> bool:
    """Whether an instruction computes with integers, bits or predicates of its operands, and with nothing else."""
    words = instruction.parts[1:]
    rounds = any(word.startswith(_ROUNDED) and any(map(str.isdigit, word)) for word in words)
    return computes(instruction) and not rounds


def computes(instruction: InstructionLike) -> bool:
    """Whether an instruction computes with its operands, and with nothing else: no carry."""
    carries = instruction.parts[0] in _WITH_CARRY or "cc" in instruction.parts[1:]
    return family_of(instruction) == "arithmetic" and not carries


def fences_maps(instruction: Spelled) -> bool:
    """Whether an instruction is a fence for tensor maps."""
    return row_of(instruction).is_proxy_fence and "tensormap::generic" in instruction.parts


def transposes(instruction: Spelled) -> bool:
    """Whether a matrix is moved with rows and columns exchanged."""
    return "trans" in instruction.parts


def is_of_bytes(instruction: Spelled) -> bool:
    """Whether the elements of the matrix that an instruction moves are bytes."""
    return "b8" in instruction.parts


def is_of_predicates(instruction: Spelled) -> bool:
    """Whether an instruction computes with predicates."""
    return row_of(instruction).modifiers(instruction.parts).get("type") == "pred"


def announces_bytes(opcode: str) -> bool:
    """Whether an arrival announces bytes, too."""
    return "expect_tx" in opcode.split(".")


def fenced_spaces(instruction: Spelled) -> frozenset[str]:
    """The memories, shared or global, in which a fence orders generic accesses and those of copies; empty for other instructions."""
    if not row_of(instruction).is_proxy_fence or "async" not in instruction.parts:
        return frozenset()
    named = {part.partition("::")[0] for part in instruction.parts} & _COPIED
    return frozenset(named) or _COPIED


def shortened(instruction: Spelled) -> str:
    """The opcode without the words that say nothing to a reader; that of a barrier is whole."""
    hidden = frozenset[str]() if row_of(instruction).is_barrier else _HIDDEN
    return ".".join(part for part in instruction.parts if part not in hidden)


def spares_shared(parts: tuple[str, ...]) -> bool:
    """Whether an opcode can neither touch shared memory nor order accesses to it: what is recorded there is true without it.

    Of fences that is so of those between virtual aliases: two addresses are two locations. False for an unknown opcode.
    """
    row = lookup(parts)
    if row is None:
        return False
    spaces = {space for touch in row.touches for space in _spaces(row, touch.space)}
    return spaces.isdisjoint(_MAY_BE_SHARED) if spaces else set(row.ordering) <= {"alias"}


def _spaces(row: Row, given: str) -> tuple[str, ...]:
    """The spaces that a form's touch may be of."""
    named = tuple(space.partition("::")[0] for space in row.classes.get(given, (given,)))
    return (*named, "generic") if given in row.classes and f"{{.{given}}}" in row.form else named


def chooses(instruction: InstructionLike) -> bool:
    """Whether an instruction takes one of two operands, as a predicate says."""
    return instruction.parts[0] == "selp"


def decides_with(instruction: InstructionLike) -> bool | None:
    """The value of one operand with which the other one decides, of a logical operation on two predicates; None of all others."""
    return {"and pred": True, "or pred": False}.get(" ".join(instruction.parts[:2]))


def copies(instruction: InstructionLike) -> bool:
    """Whether an instruction gives a value as it is, of any type."""
    return has_action(instruction, "arithmetic", "move")


def is_move(instruction: InstructionLike) -> bool:
    """Whether an instruction moves one value of 32 or 64 bits."""
    return copies(instruction) and instruction.parts[-1] in _WHOLE and len(instruction.parts) == 2


def names_element(instruction: InstructionLike) -> bool:
    """Whether the text of a fetch gives the number of its element: no filter, one dimension. An offset is a source behind the texture."""
    row = lookup(instruction.parts)
    if row is None or row.family != "texture":
        return False
    modifiers = row.modifiers(instruction.parts)
    offsets = row.roles(instruction).count("src") - (modifiers.get("lod") == "level")
    return (modifiers["geom"], modifiers.get("ctype")) == ("1d", "s32") and not offsets


def sums(instruction: InstructionLike) -> bool:
    """Whether an instruction adds or subtracts two integers."""
    return adds(instruction) or (instruction.parts[0] == "sub" and is_exact(instruction))


def is_wide(instruction: InstructionLike) -> bool:
    """Whether an instruction accesses a vector, or 128 bits at once."""
    modifiers = row_of(instruction).modifiers(instruction.parts)
    return "vec" in modifiers or modifiers["type"] == "b128"


def compares_and_swaps(instruction: InstructionLike) -> bool:
    """Whether an atomic operation writes only where it finds a given value."""
    return "cas" in instruction.parts


def swaps(instruction: InstructionLike) -> bool:
    """Whether an atomic operation writes a value that does not depend on what it finds."""
    return compares_and_swaps(instruction) or "exch" in instruction.parts


def compares(instruction: InstructionLike) -> bool:
    """Whether an instruction compares two values and gives a predicate."""
    return instruction.parts[0] == "setp"


def says_equal(instruction: InstructionLike) -> bool | None:
    """Whether a comparison says that two values are equal (True), or that they are not (False); None of all others."""
    return {"eq": True, "ne": False}.get(instruction.parts[1]) if compares(instruction) else None


def finds_larger(instruction: InstructionLike) -> bool:
    """Whether an instruction says which of two integers is larger, as an atomic minimum or maximum does."""
    return compares(instruction) and instruction.parts[1] in _OF_ORDER and instruction.parts[-1][0] in "us"


def converts(instruction: InstructionLike, space: str) -> bool:
    """Whether an instruction makes an address of a state space generic, or a generic one an address of the space."""
    return row_of(instruction).converts_address and space in instruction.parts


def makes_generic(instruction: InstructionLike, space: str) -> bool:
    """Whether an instruction makes an address of a state space generic."""
    return converts(instruction, space) and "to" not in instruction.parts


def is_noncoherent(instruction: InstructionLike) -> bool:
    """Whether an instruction reads by a path that does not see writes of the kernel ("ld.global.nc", "ld.proxy::readonly")."""
    return not {"nc", "proxy::readonly"}.isdisjoint(instruction.parts)


def adds(instruction: InstructionLike) -> bool:
    """Whether an instruction adds two integers."""
    return instruction.parts[0] == "add" and is_exact(instruction)


def combines_from(instruction: InstructionLike) -> int | None:
    """The first operand that may be what an atomic operation finds in memory (-1: the last one); None: there is no such operation."""
    name = instruction.parts[0]
    return None if name not in _COMBINING else -1 if name in _SCALED else 1


def hands_on(instruction: InstructionLike) -> bool:
    """Whether an instruction gives a value that it takes, or a sum, product or quotient with it: it decides nothing, and picks no bits."""
    parts = instruction.parts
    return (parts[0] in _ARITHMETIC and computes(instruction)) or parts[:2] == ("shfl", "sync")


def never_hidden(instruction: InstructionLike) -> tuple[int, ...]:
    """The operands, by their number, on which the result depends whatever the others are."""
    joined = _OF_CONDITIONS.intersection(instruction.parts[1:]) if instruction.parts[0] in ("setp", "set") else ()
    return () if joined or not computes(instruction) else _ALWAYS.get(instruction.parts[0], ())


def scales(instruction: InstructionLike) -> bool:
    """Whether an instruction multiplies two values."""
    return instruction.parts[0] == "mul" and computes(instruction)


def shuffles(instruction: InstructionLike) -> str:
    """How a lane gets the value of another one: "up", "down", "bfly" or "idx"; empty if the instruction is no `shfl.sync`."""
    return instruction.parts[2] if instruction.parts[:2] == ("shfl", "sync") else ""


def conjunction(instruction: InstructionLike) -> bool | None:
    """Whether an instruction joins predicates so that both must hold (true), or one (false); None if it joins none."""
    return _CONJUNCTIONS.get(instruction.parts)


def is_of_reals(instruction: InstructionLike) -> bool:
    """Whether an instruction computes with floating-point numbers."""
    return instruction.parts[0] in _ARITHMETIC - {"mov"} and instruction.parts[-1].lstrip("b").startswith("f") and computes(instruction)


def sums_reals(instruction: InstructionLike) -> bool:
    """Whether an instruction adds floating-point numbers, or a product of two to a third."""
    return instruction.parts[0] in ("add", "fma") and is_of_reals(instruction)


def takes_either_order(instruction: InstructionLike) -> bool:
    """Whether a result of two operands is the same if they are exchanged."""
    return instruction.parts[0] in _EITHER_ORDER and computes(instruction)


def rounds_reals(instruction: InstructionLike) -> bool:
    """Whether an instruction rounds a floating-point number of 32 bits to one of 16."""
    return instruction.parts[0] == "cvt" and instruction.parts[-2:] in (("f16", "f32"), ("bf16", "f32"))


def elects(instruction: InstructionLike) -> bool:
    """Whether an instruction elects a lane."""
    return instruction.parts[0] == "elect"


def takes_from_lane(instruction: InstructionLike) -> bool:
    """Whether each lane gets the value of one lane, by its number (ISA "shfl.sync")."""
    return instruction.parts[:3] == ("shfl", "sync", "idx")


def joins_lanes(instruction: InstructionLike) -> bool:
    """Whether all lanes get what the lanes of a warp hold together (ISA "redux.sync")."""
    return instruction.parts[:2] == ("redux", "sync")


def keeps_payloads(instruction: InstructionLike) -> bool:
    """Whether the ISA does not say which of two NaNs an operation leaves."""
    return instruction.parts[-1] == "f64"


def leaves_rounding(instruction: InstructionLike) -> bool:
    """Whether a compiler may join a product and a sum, since an instruction does not say how it rounds (ISA "add", floating point)."""
    return _ROUNDINGS.isdisjoint(instruction.parts)


def lowest_bit(instruction: InstructionLike, second: int) -> int:
    """The lowest bit of the first operand that a result depends on. `second`: the second operand, a number."""
    if instruction.parts[0] == "and":
        return (second & -second).bit_length() - 1 if second else _WIDEST
    return second if instruction.parts[0] in ("shr", "bfe") and 0 <= second < _WIDEST else 0


def in_space(instruction: InstructionLike, space: str, other: str) -> str:
    """The opcode with another state space."""
    return ".".join(other if part.partition("::")[0] == space else part for part in instruction.parts)
