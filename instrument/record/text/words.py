"""The words of one block: which values a thread stores, each once, and the text that stores them.

The key of a word is the register and the guard under which it is used. A word serves until its register or its guard is written
again. So `[%r8]` and `[%r8+132]` share a word, and a register that its own load overwrites needs a new one afterwards.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import TypedDict

from consan.dataclass import dataclass
from consan.instrument.control_flow import Key, key_of
from consan.instrument.effects import NO_WORD, Effect, WordValue
from consan.instrument.isa.roles import names
from consan.instrument.ptx import Block, Immediate, Instruction, Operand, Register, Symbol
from consan.instrument.record.analyses.computed import PLACE, Computability, Computed, WordNeed
from consan.instrument.record.analyses.launch_inputs import LaunchConstant
from consan.instrument.record.text import text
from consan.instrument.record.text.templates import LINE_BYTES, Template
from consan.instrument.rewriting.emit import Snippet, Unsupported, address_parts, register_bits, value_words

TEMPORARY, _NOTHING = "%__consan_w", "-1"
_Kept = tuple[str, object, object]
NO_KEYS: frozenset[Key] = frozenset()


class Located(TypedDict):
    """The fields of an effect that give its place."""

    at: WordValue
    guard: int


class TextVariant(enum.Enum):
    """The words that a pass over a kernel writes."""

    FULL = 0  # each word is stored and hashed
    COMPACT = 1  # the host computes what it can (computed.py)
    EXPANSION = 2  # the text that does so: it stores each word, and nothing else (expansion.py)

    @property
    def on_host(self) -> bool:
        """Whether the host runs the text."""
        return self is TextVariant.EXPANSION


@dataclass
class Words:
    """The block that the walk over a function is in."""

    number: int
    window: str  # that of generic addresses of shared memory
    variant: TextVariant = TextVariant.FULL
    computed: Computed | None = None  # for all manners but FULL
    needs: list[WordNeed] = field(default_factory=list)  # of the words so far
    hashing: bool = True  # histories are compared
    stored: int = 0  # words that a compact log has
    hashes: bool = False  # some word is hashed
    ignored: bool = False  # the accesses of the instruction that the walk is at are compared with no others
    template: Template = field(init=False)
    _kept: dict[_Kept, tuple[int, frozenset[Key]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.template = Template(self.number)

    def header(self, *, late: bool) -> str:
        """The text that begins the block. `late`: its number is stored last, so who finds it knows that all words are there."""
        if self.variant is not TextVariant.FULL:
            return ""
        return ("" if late else text.number(self.number)) + (text.hash_constant(self.number) if self.hashing else "")

    def add(self, event: Effect) -> None:
        """Append an event."""
        self.template.events.append(replace(event, ignored=True) if self.ignored else event)

    def written(self, keys: Iterable[Key]) -> None:
        """Forget the words that depend on registers that the kernel writes now."""
        gone = set(keys)
        self._kept = {name: (word, needs) for name, (word, needs) in self._kept.items() if gone.isdisjoint(needs)}

    def guard(self, instruction: Instruction) -> tuple[int, str]:
        """The word that says whether a guarded instruction executes, and the text that stores it."""
        if instruction.predicate is None:
            return NO_WORD, ""
        return self.word(("guard",), instruction, [], f"mov.u32 {TEMPORARY}, 0;\n")

    def address(self, instruction: Instruction, address: Operand, space: str, *, widened: bool = False) -> tuple[Located, str]:
        """An address, with the guard folded in, and the text that stores its word.

        `widened`: a generic address may be a shared one with zeros above, as Triton gives to tcgen05.commit.
        """
        base, offset = address_parts(address)
        if isinstance(base, Immediate):
            guard, code = self.guard(instruction)
            return {"at": WordValue(int(base.value) + offset), "guard": guard}, code
        if space == "generic":
            load = _generic(base, offset, instruction.scope, self.window, widened)
            word, code = self.word(("generic", offset, widened), instruction, [base], load)
            return {"at": WordValue(0, word), "guard": NO_WORD}, code
        word, code = self.word(("shared",), instruction, [base], _shared(base, instruction.scope))
        return {"at": WordValue(offset, word), "guard": NO_WORD}, code

    def number_word(self, instruction: Instruction, operand: Operand) -> tuple[WordValue, str]:
        """An integer operand: its value, or the word that holds it, and the text."""
        if isinstance(operand, Immediate) and operand.kind == "int":
            return WordValue(int(operand.value) & 0xFFFFFFFF), ""
        if not isinstance(operand, (Register, Symbol)) or not instruction.scope.is_register(operand.name):
            raise Unsupported(f"operand {getattr(operand, 'text', operand)}")
        bits = register_bits(operand.name, instruction.scope)
        move = f"mov.b32 {TEMPORARY}, {operand.name};\n" if bits == 32 else f"cvt.u32.u{bits} {TEMPORARY}, {operand.name};\n"
        word, code = self.word(("number",), instruction, [operand], move)
        return WordValue(0, word), code

    def close(self, *, late: bool) -> str:
        """The text that ends the block."""
        compact = f"add.u64 %__consan_k, %__consan_k, {self.stored * LINE_BYTES};\n" if self.stored else ""
        if self.variant is TextVariant.COMPACT:
            return text.close(self.stored) if self.stored else ""
        whole = (text.number(self.number) if late else "") + text.close(self.template.words)
        return whole + compact * (self.variant is TextVariant.EXPANSION)

    def value(self, elements: list[Operand], width: int, scope: Block) -> tuple[int, str]:
        """A word that differs where stored values differ. It is not hashed, and each store has its own."""
        snippet = Snippet()
        return self.folded(value_words(elements, width, snippet, scope), snippet, keys_of(elements, scope))

    def folded(self, pieces: list[str], snippet: Snippet, keys: frozenset[Key] | None = None) -> tuple[int, str]:
        """The same for a value in registers of the snippet."""
        snippet.add(f"mov.b32 {TEMPORARY}, {pieces[0]};")
        for piece in pieces[1:]:
            snippet.add(f"mad.lo.u32 {TEMPORARY}, {TEMPORARY}, {text.FACTOR:#x}, {piece};")
        word = self._next()
        return word, self._after(snippet.text(), [(word, TEMPORARY)], keys, hashed=False)

    def unhashed(self, registers: list[str], snippet: Snippet, keys: frozenset[Key] | None = None) -> tuple[int, str]:
        """Words whose values may differ between CTAs: the position of the first, and the text that computes and stores them.

        `keys`: the registers that they follow from; None where that is not known.
        """
        words = [self._next() for _ in registers]
        return words[0], self._within(snippet, list(zip(words, registers, strict=True)), keys, hashed=False)

    def hashed(self, register: str, snippet: Snippet) -> tuple[int, str]:
        """A new hashed word that holds a register of the snippet: its position, and the text."""
        word = self._next()
        return word, self._within(snippet, [(word, register)], None, hashed=True)

    def _within(self, snippet: Snippet, words: list[tuple[int, str]], keys: frozenset[Key] | None, *, hashed: bool) -> str:
        """The text of a snippet, with that of words in its registers if they have to be computed."""
        computes, code = self.kept_words(words, keys, hashed=hashed)
        if not computes:
            return code
        snippet.add(code.strip())
        return snippet.text()

    def _after(
        self,
        load: str,
        words: list[tuple[int, str]],
        keys: frozenset[Key] | None,
        *,
        hashed: bool,
        store: Callable[[int, str], str] = text.store,
    ) -> str:
        """The text that computes words, if that has to be done, and the text that stores and hashes them."""
        computes, code = self.kept_words(words, keys, hashed=hashed, store=store)
        return load + code if computes else code

    def kept_words(
        self, words: list[tuple[int, str]], keys: frozenset[Key] | None, *, hashed: bool, store: Callable[[int, str], str] = text.store
    ) -> tuple[bool, str]:
        """Whether words have to be computed, and the text that stores and hashes them then."""
        hashes = "".join(text.hash_word(register) for _, register in words) if hashed and self.hashing else ""
        level = self.level(keys, hashed=hashed)
        self.hashes |= hashed and self.hashing and level is not Computability.KNOWN
        if self.variant is TextVariant.FULL:
            return True, "".join(store(word, register) for word, register in words) + hashes
        if level is Computability.UNKNOWN:
            first, self.stored = self.stored, self.stored + len(words)
            if self.variant is TextVariant.COMPACT:
                return True, "".join(store(first + place, register) for place, (_, register) in enumerate(words)) + hashes
            return False, "".join(load(first + place) + store(word, TEMPORARY) for place, (word, _) in enumerate(words))
        if self.variant is TextVariant.COMPACT:
            hashes = hashes if level is Computability.CTA else ""
            return bool(hashes), hashes
        return True, "".join(store(word, register) for word, register in words)

    def level(self, keys: frozenset[Key] | None, *, hashed: bool, constants: tuple[LaunchConstant, ...] = ()) -> Computability:
        """The certainty of a value that follows from registers and constants; a full pass only notes it."""
        if keys is None:
            return Computability.UNKNOWN
        if self.computed is None:
            self.needs.append(WordNeed(keys, hashed, constants))
            return Computability.UNKNOWN
        return self.computed.level(keys)

    def reserve(self, count: int) -> tuple[int, int, str]:
        """Some words that the caller stores on the device.

        Returns the first one's place in the block, its place in the log that the device writes, and the text by which the host copies them.
        """
        first, self.template.words = self.template.words, self.template.words + count
        if self.variant is TextVariant.FULL:
            return first, first, ""
        stored, self.stored = self.stored, self.stored + count
        copies = (load(stored + place) + text.store(first + place, TEMPORARY) for place in range(count))
        return first, stored, "".join(copies) if self.variant is TextVariant.EXPANSION else ""

    def append(self, register: str, snippet: Snippet) -> None:
        """A word of its own within a snippet that goes on. It is not hashed."""
        self.refuse("words that are always stored")
        snippet.add(text.store(self._next(), register).strip())

    def refuse(self, why: str) -> None:
        """There can be no compact log of this."""
        if self.variant is not TextVariant.FULL:
            raise Unsupported(why)

    def halves(self, instruction: Instruction, operand: Operand) -> tuple[int, int, str]:
        """The words of a 64-bit register that all lanes of a warp have, lower half first, and the text. Only the first lane stores them."""
        if not isinstance(operand, (Register, Symbol)) or register_bits(operand.name, instruction.scope) != 64:
            raise Unsupported(f"operand {getattr(operand, 'text', operand)}")
        low, code = self.word(("low",), instruction, [operand], f"cvt.u32.u64 {TEMPORARY}, {operand.name};\n", text.store_once)
        shift = f"shr.u64 %__consan_v, {operand.name}, 32; cvt.u32.u64 {TEMPORARY}, %__consan_v;\n"
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
            chosen = f"{_NOTHING}, {TEMPORARY}" if predicate.negated else f"{TEMPORARY}, {_NOTHING}"
            load += f"selp.b32 {TEMPORARY}, {chosen}, {predicate.register};\n"
        name = (str(what), tuple(sorted(needs)), guard)
        if name in self._kept:
            return self._kept[name][0], ""
        word = self._next()
        depends = needs | ({key_of(scope, predicate.register)} if predicate is not None else set())
        self._kept[name] = (word, frozenset(depends))
        symbols = tuple(LaunchConstant(each.name, 0, 4, symbol=True) for each in registers if not scope.is_register(each.name))
        if symbols:
            self.level(NO_KEYS, hashed=True, constants=symbols)
            load = self.constant(symbols[0], load)
        unsure = what[0] == "generic"  # the host has other windows
        keys = None if unsure else frozenset(depends - {key_of(scope, each.name) for each in registers if not scope.is_register(each.name)})
        return word, self._after(load, [(word, TEMPORARY)], keys, hashed=True, store=store)

    def constant(self, constant: LaunchConstant, load: str) -> str:
        """The text that brings a constant of the launch into the temporary. `load`: that of the kernel."""
        if self.variant is not TextVariant.EXPANSION or self.computed is None:
            return load
        slot, rest = self.computed.constants.slot(constant), load.partition("\n")[2]  # that folds the guard in
        return (load_symbol(slot) if constant.symbol else f"ld.global.u32 {TEMPORARY}, [%__consan_j+{slot}];\n") + rest

    def _next(self) -> int:
        self.template.words += 1
        return self.template.words - 1


def keys_of(operands: Iterable[Operand], scope: Block) -> frozenset[Key] | None:
    """The registers in some operands; None where a symbol or a special register is among them."""
    found = tuple(names(tuple(operands)))
    return frozenset(key_of(scope, name) for name in found) if all(map(scope.is_register, found)) else None


def load_symbol(slot: int) -> str:
    """Bring the address of a shared variable into the temporary: that of rank 0, and the rank of the CTA above it (ISA "mapa")."""
    rank = f"ld.global.u32 %__consan_x, [%__consan_u+{4 * PLACE.index('%cluster_ctarank')}]; shl.b32 %__consan_x, %__consan_x, 24;\n"
    return f"{rank}ld.global.u32 {TEMPORARY}, [%__consan_j+{slot}]; add.u32 {TEMPORARY}, {TEMPORARY}, %__consan_x;\n"


def load(position: int) -> str:
    """Load a word of the compact log."""
    return f"ld.global.u32 {TEMPORARY}, [%__consan_k+{position * LINE_BYTES}];\n"


def _shared(base: Register | Symbol, scope: Block) -> str:
    """The 32 bits of an address of the shared window."""
    if isinstance(base, Symbol) and not scope.is_register(base.name):
        return f"mov.u32 {TEMPORARY}, {base.name};\n"
    wide = register_bits(base.name, scope) == 64
    return f"cvt.u32.u64 {TEMPORARY}, {base.name};\n" if wide else f"mov.b32 {TEMPORARY}, {base.name};\n"


def _generic(base: Register | Symbol, offset: int, scope: Block, window: str, widened: bool) -> str:
    """As `_shared`, for a generic address: if it is not in shared memory all bits set, or its lower half."""
    if isinstance(base, Symbol) and not scope.is_register(base.name):
        raise Unsupported(f"{base.name} used as a generic address")
    wide = register_bits(base.name, scope) == 64
    start = f"mov.b64 %__consan_v, {base.name};" if wide else f"cvt.u64.u32 %__consan_v, {base.name};"
    lower, other = ("cvt.u32.u64 %__consan_y, %__consan_v;\n", "%__consan_y") if widened else ("", _NOTHING)
    return (
        f"{start} add.s64 %__consan_v, %__consan_v, {offset};\nisspacep.{window} %__consan_q, %__consan_v;\n{lower}"
        f"cvta.to.{window}.u64 %__consan_v, %__consan_v; cvt.u32.u64 {TEMPORARY}, %__consan_v;\n"
        f"selp.b32 {TEMPORARY}, {TEMPORARY}, {other}, %__consan_q;\n"
    )
