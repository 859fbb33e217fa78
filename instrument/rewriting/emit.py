"""How inserted PTX is written: values brought into registers, calls of hooks, labels and predicates.

Every insertion is its own `{ ... }` scope, so its registers and labels cannot collide with the kernel's. Names begin with `%__consan_`
all the same, because messages of the assembler quote them. Types follow the declarations (ISA "Register State Space"): a value of any
declared type is converted to the untyped width that a hook takes.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import field

from consan.dataclass import dataclass
from consan.instrument.isa import MemoryAccess
from consan.instrument.ptx import Address, Block, Immediate, Instruction, Negated, Operand, Pair, Register, Symbol, Underscore

SLOT = "%__consan_slot"
STATE = "%__consan_state"
SELF = "%__consan_self"
COUNT = "%__consan_count"
CONTROL = "__consan_ctl"
#: The slot's geometry in registers, if hooks are pasted in line (see Head in runtime/access.cuh): name and type.
HEAD = (
    ("%__consan_w", "b64"),
    ("%__consan_r", "b64"),
    ("%__consan_low", "b32"),
    ("%__consan_bytes", "b32"),
    ("%__consan_own", "b32"),
    ("%__consan_base", "b32"),
)

_WIDTHS = {"pred": 1, "f16x2": 32, "bf16x2": 32}


class Unsupported(Exception):  # noqa: N818
    """An operand that the rewriter cannot handle; the instruction becomes `unmodelled`."""


def register_bits(name: str, scope: Block) -> int:
    """Declared width of a register in bits (1 for a predicate)."""
    found = scope.lookup(name)
    declared = scope.parameter(name) if found is None else found[0]
    if declared is None:
        raise Unsupported(f"register {name} is not declared")
    kind = declared.type
    return _WIDTHS.get(kind) or int("".join(filter(str.isdigit, kind)))


@dataclass
class Snippet:
    """Lines of one insertion with its own registers."""

    lines: list[str] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)  # declarations that a later insertion needs too
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def register(self, kind: str) -> str:
        """Declare a scratch register."""
        return self.registers(kind, 1)[0]

    def registers(self, kind: str, count: int) -> list[str]:
        """Declare several scratch registers, in one line."""
        names = [f"%__consan_{'p' if kind == 'pred' else 't'}{next(self._numbers)}" for _ in range(count)]
        self.lines.append(f".reg .{kind} {', '.join(names)};")
        return names

    def add(self, line: str) -> None:
        """Append one line."""
        self.lines.append(line)

    def call(self, hook: str, arguments: list[tuple[str, str]], *, result: tuple[str, str] | None = None, guard: str = "") -> None:
        """Call a hook; `arguments` and `result` are (type, register or literal), `guard` is "@p " or "@!p "."""
        names = []
        for kind, value in arguments:
            name = f"__consan_a{next(self._numbers)}"
            self.lines.append(f".param .{kind} {name}; st.param.{kind} [{name}], {value};")
            names.append(name)
        returns = returned = ""
        if result:
            returned = f"__consan_r{next(self._numbers)}"
            self.lines.append(f".param .{result[0]} {returned};")
            returns = f"({returned}), "
        listed = f", ({', '.join(names)})" if names else ""
        self.lines.append(f"{guard}call {returns}{hook}{listed};")
        if result:
            self._take_result(result, returned, guard)

    def paste(self, body: str, guard: str, label: str) -> None:
        """Paste a hook's body in line; a false guard skips it."""
        if guard:
            condition = guard.strip().lstrip("@")
            negated = condition[1:] if condition.startswith("!") else f"!{condition}"
            self.add(f"@{negated} bra {label}_skip;")
        self.add(body)
        if guard:
            self.add(f"{label}_skip:")

    def _take_result(self, result: tuple[str, str], returned: str, guard: str) -> None:
        """ld.param must not be predicated, so the result of a guarded call goes through its own register."""
        kind, target = result
        if not guard:
            self.add(f"ld.param.{kind} {target}, [{returned}];")
            return
        value = self.register(kind)
        self.add(f"ld.param.{kind} {value}, [{returned}];")
        self.add(f"{guard}mov.{kind} {target}, {value};")

    def text(self) -> str:
        """The insertion as a scope, preceded by the declarations that outlive it."""
        return "".join(f"{line}\n" for line in self.outer) + "{\n" + "\n".join(self.lines) + "\n}\n"


def control(snippet: Snippet, word: int) -> str:
    """A register with a word of the module's control block."""
    register = snippet.register("b64")
    snippet.add(f"ld.global.u64 {register}, [{CONTROL}+{8 * word}];")
    return register


def guard_text(instruction: Instruction) -> str:
    """The instruction's own guard, as text for an inserted instruction."""
    predicate = instruction.predicate
    return "" if predicate is None else f"@{'!' if predicate.negated else ''}{predicate.register} "


def narrow_guard(snippet: Snippet, instruction: Instruction, condition: str) -> str:
    """A guard that is true if the instruction's guard and `condition` (a predicate register) are true."""
    predicate = instruction.predicate
    if predicate is None:
        return f"@{condition} "
    other = predicate.register
    if predicate.negated:
        other = snippet.register("pred")
        snippet.add(f"not.pred {other}, {predicate.register};")
    both = snippet.register("pred")
    snippet.add(f"and.pred {both}, {condition}, {other};")
    return f"@{both} "


def shared_address(snippet: Snippet, address: Operand, scope: Block) -> str:
    """A 32-bit register with an address of the shared state space."""
    base, offset = address_parts(address)
    if isinstance(base, Immediate):
        return _constant(snippet, "u32", int(base.value) + offset)
    target = snippet.register("b32")
    if isinstance(base, Symbol) and not scope.is_register(base.name):
        snippet.add(f"mov.u32 {target}, {base.name};")
    elif register_bits(base.name, scope) == 64:
        snippet.add(f"cvt.u32.u64 {target}, {base.name};")
    else:
        snippet.add(f"mov.b32 {target}, {base.name};")
    if offset:
        snippet.add(f"add.s32 {target}, {target}, {offset};")
    return target


def is_ranked(access: MemoryAccess) -> bool:
    """Whether an address may be in the shared::cluster window, and not only in the executing CTA."""
    return access.is_generic or access.qualified_space == "shared::cluster"


def shared_operand(snippet: Snippet, address: Operand, space: str, scope: Block, window: str = "shared") -> str:
    """As `shared_address`, for an operand that may be a generic address of shared memory."""
    if space != "generic":
        return shared_address(snippet, address, scope)
    wide, target = wide_address(snippet, address, scope), snippet.register("b32")
    snippet.add(f"cvta.to.{window}.u64 {wide}, {wide};")
    snippet.add(f"cvt.u32.u64 {target}, {wide};")
    return target


def wide_address(snippet: Snippet, address: Operand, scope: Block, space: str = "") -> str:
    """A 64-bit register with a generic or global address. `space`: the state space of a symbol, if it is not generic."""
    base, offset = address_parts(address)
    if isinstance(base, Immediate):
        return _constant(snippet, "u64", int(base.value) + offset)
    target = snippet.register("b64")
    if isinstance(base, Symbol) and not scope.is_register(base.name):
        if not space:
            raise Unsupported(f"{base.name} used as a generic address")
        snippet.add(f"mov.u64 {target}, {base.name};")
    elif register_bits(base.name, scope) == 64:
        snippet.add(f"mov.b64 {target}, {base.name};")
    else:
        snippet.add(f"cvt.u64.u32 {target}, {base.name};")
    if offset:
        snippet.add(f"add.s64 {target}, {target}, {offset};")
    return target


def address_parts(address: Operand) -> tuple[Register | Symbol | Immediate, int]:
    """The base of an address, and its offset."""
    if isinstance(address, (Register, Symbol)):
        return address, 0
    if not isinstance(address, Address) or address.index is not None:
        raise Unsupported(f"address {address!r}")
    return address.base, address.offset


def _constant(snippet: Snippet, kind: str, value: int) -> str:
    target = snippet.register(kind.replace("u", "b"))
    snippet.add(f"mov.{kind} {target}, {value};")
    return target


def word(operand: Operand, snippet: Snippet, scope: Block) -> str:
    """An integer operand (barrier id, count, size, mask) as a 32-bit register or literal."""
    if isinstance(operand, Immediate) and operand.kind == "int":
        return str(int(operand.value) & 0xFFFFFFFF)
    name = _register_name(operand, scope)
    bits = register_bits(name, scope)
    if bits == 32:
        return name
    target = snippet.register("b32")
    snippet.add(f"cvt.u32.u{bits} {target}, {name};")
    return target


def _register_name(operand: Operand, scope: Block) -> str:
    if isinstance(operand, (Register, Symbol)) and scope.is_register(operand.name):
        return operand.name
    raise Unsupported(f"operand {getattr(operand, 'text', operand)}")


def predicate_of(operand: Operand) -> tuple[str, bool]:
    """Register and negation of a predicate operand."""
    if isinstance(operand, Negated):
        return operand.operand.name, True
    if isinstance(operand, (Register, Symbol)):
        return operand.name, False
    raise Unsupported(f"predicate {operand!r}")


def _immediate_bits(value: Immediate, width: int) -> int:
    if value.kind == "int":
        return int(value.value) & ((1 << 8 * width) - 1)
    code = "<f" if width == 4 else "<d"
    return int.from_bytes(struct.pack(code, value.value), "little")


def value_words(elements: list[Operand], width: int, snippet: Snippet, scope: Block) -> list[str]:
    """The stored value (`len(elements)` elements of `width` bytes) as 32-bit registers, packed as in memory."""
    pieces: list[str] = []
    for element in elements:
        pieces += _pieces(element, width, snippet, scope)
    if width >= 4:
        return pieces
    per_word = 4 // width
    return [_pack(pieces[i : i + per_word], width, snippet) for i in range(0, len(pieces), per_word)]


def _pieces(element: Operand, width: int, snippet: Snippet, scope: Block) -> list[str]:
    if isinstance(element, Immediate):
        bits = _immediate_bits(element, width)
        return [_constant(snippet, "u32", bits >> shift & 0xFFFFFFFF) for shift in range(0, 8 * width, 32)]
    if isinstance(element, (Underscore, Pair)):
        raise Unsupported(f"stored value {element!r}")
    name = _register_name(element, scope)
    bits = register_bits(name, scope)
    if width == 16 or bits == 128:
        raise Unsupported("128-bit register stored")
    low = snippet.register("b32")
    if bits == 64:
        high = snippet.register("b32")
        snippet.add(f"mov.b64 {{{low}, {high}}}, {name};")
        return [low, high] if width == 8 else [low]
    snippet.add(_widen(low, name, bits, scope))
    return [low]


def _widen(target: str, name: str, bits: int, scope: Block) -> str:
    if bits == 32:
        return f"mov.b32 {target}, {name};"
    return f"cvt.u32.u{bits} {target}, {name};" if bits == 8 else f"mov.b32 {target}, {{{name}, {name}}};"


def _pack(pieces: list[str], width: int, snippet: Snippet) -> str:
    target = snippet.register("b32")
    mask = (1 << 8 * width) - 1
    snippet.add(f"and.b32 {target}, {pieces[0]}, {mask};")
    for position, piece in enumerate(pieces[1:], start=1):
        snippet.add(f"bfi.b32 {target}, {piece}, {target}, {8 * width * position}, {8 * width};")
    return target
