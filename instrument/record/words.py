"""The words of one block: which values a thread stores, each once, and the text that stores them.

The key of a word is the register and the guard under which it is used. A word serves until its register or its guard is written
again. So `[%r8]` and `[%r8+132]` share a word, and a register that its own load overwrites needs a new one afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from consan.instrument.passes.emit import Snippet, Unsupported, address_parts, register_bits, value_words
from consan.instrument.passes.flow import Key, key_of
from consan.instrument.ptx import Block, Immediate, Instruction, Operand, Register, Symbol
from consan.instrument.record import text
from consan.instrument.record.templates import NO_WORD, Template, TemplateEvent

_WORD, _NOTHING = "%__consan_w", "-1"
_Kept = tuple[str, object, object]


@dataclass
class Words:
    """The block that the walk over a function is in."""

    number: int
    window: str  # that of generic addresses of shared memory
    template: Template = field(init=False)
    _kept: dict[_Kept, tuple[int, frozenset[Key]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.template = Template(self.number)

    def header(self, *, late: bool) -> str:
        """The text that begins the block. `late`: its number is stored last, and so tells that all words are there."""
        return ("" if late else text.number(self.number)) + text.hash_constant(self.number)

    def add(self, event: TemplateEvent) -> None:
        """Append an event."""
        self.template.events.append(event)

    def written(self, keys: Iterable[Key]) -> None:
        """Forget the words that depend on registers that the kernel writes now."""
        gone = set(keys)
        self._kept = {name: (word, needs) for name, (word, needs) in self._kept.items() if gone.isdisjoint(needs)}

    def guard(self, instruction: Instruction) -> tuple[int, str]:
        """The word that says whether a guarded instruction executes, and the text that stores it."""
        if instruction.predicate is None:
            return NO_WORD, ""
        return self.word(("guard",), instruction, [], f"mov.u32 {_WORD}, 0;\n")

    def address(self, instruction: Instruction, address: Operand, space: str, *, widened: bool = False) -> tuple[dict[str, int], str]:
        """The fields of an event that give an address, with the guard folded in, and the text that stores its word.

        `widened`: a generic address may be a shared one with zeros above, as Triton gives to tcgen05.commit.
        """
        base, offset = address_parts(address)
        if isinstance(base, Immediate):
            guard, code = self.guard(instruction)
            return {"guard_word": guard, "offset": int(base.value) + offset}, code
        if space == "generic":
            load = _generic(base, offset, instruction.scope, self.window, widened)
            word, code = self.word(("generic", offset, widened), instruction, [base], load)
            return {"address_word": word}, code
        word, code = self.word(("shared",), instruction, [base], _shared(base, instruction.scope))
        return {"address_word": word, "offset": offset}, code

    def number_word(self, instruction: Instruction, operand: Operand) -> tuple[int, int, str]:
        """An integer operand: its value, or the word that holds it, and the text."""
        if isinstance(operand, Immediate) and operand.kind == "int":
            return int(operand.value) & 0xFFFFFFFF, NO_WORD, ""
        if not isinstance(operand, (Register, Symbol)) or not instruction.scope.is_register(operand.name):
            raise Unsupported(f"operand {operand!r}")
        bits = register_bits(operand.name, instruction.scope)
        move = f"mov.b32 {_WORD}, {operand.name};\n" if bits == 32 else f"cvt.u32.u{bits} {_WORD}, {operand.name};\n"
        word, code = self.word(("number",), instruction, [operand], move)
        return 0, word, code

    def value(self, elements: list[Operand], width: int, scope: Block) -> tuple[int, str]:
        """A word that differs where stored values differ. It is not hashed, and each store has its own."""
        snippet = Snippet()
        return self.folded(value_words(elements, width, snippet, scope), snippet)

    def folded(self, pieces: list[str], snippet: Snippet) -> tuple[int, str]:
        """The same for a value in registers of the snippet."""
        snippet.add(f"mov.b32 {_WORD}, {pieces[0]};")
        for piece in pieces[1:]:
            snippet.add(f"mad.lo.u32 {_WORD}, {_WORD}, 0x9E3779B1, {piece};")
        word = self._next()
        return word, snippet.text() + text.store(word, _WORD)

    def unhashed(self, registers: list[str], snippet: Snippet) -> tuple[int, str]:
        """Words whose values may differ between CTAs: the position of the first, and the text that computes and stores them."""
        words = [self._next() for _ in registers]
        for word, register in zip(words, registers, strict=True):
            snippet.add(text.store(word, register).strip())
        return words[0], snippet.text()

    def hashed(self, register: str, snippet: Snippet) -> tuple[int, str]:
        """A new hashed word that holds a register of the snippet: its position, and the text."""
        word = self._next()
        snippet.add((text.store(word, register) + text.hash_word(register)).strip())
        return word, snippet.text()

    def reserve(self, count: int) -> int:
        """The first of some words that the caller stores."""
        first, self.template.words = self.template.words, self.template.words + count
        return first

    def append(self, register: str, snippet: Snippet) -> None:
        """A word of its own within a snippet that goes on. It is not hashed."""
        snippet.add(text.store(self._next(), register).strip())

    def halves(self, instruction: Instruction, operand: Operand) -> tuple[int, int, str]:
        """The words of a 64-bit register that all lanes of a warp have, lower half first, and the text. Only the first lane stores them."""
        if not isinstance(operand, (Register, Symbol)) or register_bits(operand.name, instruction.scope) != 64:
            raise Unsupported(f"operand {operand!r}")
        low, code = self.word(("low",), instruction, [operand], f"cvt.u32.u64 {_WORD}, {operand.name};\n", text.store_once)
        shift = f"shr.u64 %__consan_v, {operand.name}, 32; cvt.u32.u64 {_WORD}, %__consan_v;\n"
        high, more = self.word(("high",), instruction, [operand], shift, text.store_once)
        return low, high, code + more

    def word(
        self,
        what: tuple[object, ...],
        instruction: Instruction,
        registers: list[Register | Symbol],
        load: str,
        store: Callable[[int, str], str] = text.store,
    ) -> tuple[int, str]:
        """A hashed word, stored now unless the block has it already. `load` brings the value into the temporary."""
        scope, predicate = instruction.scope, instruction.predicate
        needs = {key_of(scope, each.name) for each in registers}
        guard: object = None
        if predicate is not None:
            guard = (key_of(scope, predicate.register), predicate.negated)
            chosen = f"{_NOTHING}, {_WORD}" if predicate.negated else f"{_WORD}, {_NOTHING}"
            load += f"selp.b32 {_WORD}, {chosen}, {predicate.register};\n"
        name = (str(what), tuple(sorted(needs)), guard)
        if name in self._kept:
            return self._kept[name][0], ""
        word = self._next()
        depends = needs | ({key_of(scope, predicate.register)} if predicate is not None else set())
        self._kept[name] = (word, frozenset(depends))
        return word, load + store(word, _WORD) + text.hash_word(_WORD)

    def _next(self) -> int:
        self.template.words += 1
        return self.template.words - 1


def _shared(base: Register | Symbol, scope: Block) -> str:
    """The 32 bits of an address of the shared window."""
    if isinstance(base, Symbol) and not scope.is_register(base.name):
        return f"mov.u32 {_WORD}, {base.name};\n"
    wide = register_bits(base.name, scope) == 64
    return f"cvt.u32.u64 {_WORD}, {base.name};\n" if wide else f"mov.b32 {_WORD}, {base.name};\n"


def _generic(base: Register | Symbol, offset: int, scope: Block, window: str, widened: bool) -> str:
    """As `_shared`, for a generic address: if it is not in shared memory all bits set, or its lower half."""
    if isinstance(base, Symbol) and not scope.is_register(base.name):
        raise Unsupported(f"{base.name} used as a generic address")
    wide = register_bits(base.name, scope) == 64
    start = f"mov.b64 %__consan_v, {base.name};" if wide else f"cvt.u64.u32 %__consan_v, {base.name};"
    lower, other = ("cvt.u32.u64 %__consan_y, %__consan_v;\n", "%__consan_y") if widened else ("", _NOTHING)
    return (
        f"{start} add.s64 %__consan_v, %__consan_v, {offset};\nisspacep.{window} %__consan_q, %__consan_v;\n{lower}"
        f"cvta.to.{window}.u64 %__consan_v, %__consan_v; cvt.u32.u64 {_WORD}, %__consan_v;\n"
        f"selp.b32 {_WORD}, {_WORD}, {other}, %__consan_q;\n"
    )
