"""Repairs that no change of events can say, as edits of the text: for runs of the changed kernel (consan/session/asking/reruns.py).

An instruction is executed by more threads or by fewer, has another form or another number, or several become one atomic operation; shared
memory is cleared before the kernel begins. Runs decide which of them is right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final

from consan.checker.questions.changes import line_of
from consan.checker.repairs.forms import RepairStep
from consan.checker.repairs.text_clusters import ClusterForms
from consan.checker.repairs.text_paths import OF_BARRIERS, TextRepair
from consan.dataclass import dataclass
from consan.instrument import effects
from consan.instrument.control_flow import definitions, keys_read, read, written
from consan.instrument.control_flow.slices import backward_slice
from consan.instrument.isa import row_of
from consan.instrument.ptx import Function, Immediate, Instruction

_BY_ONE: Final[dict[str, tuple[type[effects.Effect], ...]]] = {  # by the situation of the finding
    "too-many-arrivals": (effects.MbarrierArrive,),
    "initialised-twice": (effects.MbarrierInit,),
    "replicated": (effects.Write,),
}
_MAP: Final = re.compile(r"\[\s*(%\w+)\s*,\s*\{")
_ACQUIRE: Final = "fence.proxy.tensormap::generic.acquire.gpu"
_UPDATES: Final = ("@update", "same-value", "replicated")  # an update within a lock is none
_HALVES: Final = (0xFFFF, 0xFFFF0000)
_OF_MASKS: Final = ("not-in-mask", "divergent-mask")
_MASKED: Final = re.compile(r"(?:shfl|vote|match|redux)\b.*\.sync\b")
_UPDATE: Final = re.compile(r"(add|min|max|and|or|xor)\.(?:rn\.)?([usbf])(32|64)$")
_SCALED: Final = re.compile(r"(?:fma|mad)\.(rn|lo)\.([usf](?:32|64))$")
_SPACES: Final = ("shared", "shared::cta", "shared::cluster", "global")
_OF_THREAD: Final = re.compile(r"%tid\b|%lane(?:id|mask)")
_OWN: Final = {
    "the first thread": "mov.u32 at, %tid.x; setp.eq.u32 own, at, 0;",
    "the first lane of each warp": "mov.u32 at, %laneid; setp.eq.u32 own, at, 0;",
}
_CLEAR: Final = (
    "{{ .reg .b32 at, end, step, size, zero; .reg .pred over; mov.u32 zero, 0; "
    "mov.u32 at, %tid.z; mov.u32 size, %ntid.y; mov.u32 step, %tid.y; mad.lo.u32 at, at, size, step; "
    "mov.u32 size, %ntid.x; mov.u32 step, %tid.x; mad.lo.u32 at, at, size, step; "
    "mov.u32 step, %ntid.y; mul.lo.u32 step, step, size; mov.u32 size, %ntid.z; mul.lo.u32 step, step, size; "
    "mov.u32 size, {name}; add.u32 at, at, size; add.u32 end, size, {bytes}; "
    "again: setp.ge.u32 over, at, end; @over bra done; st.shared.u8 [at], zero; add.u32 at, at, step; bra again; done: bar.sync 0; }} "
)


@dataclass
class TextRepairs(ClusterForms):
    """Those for one finding, the likeliest first."""

    def __iter__(self) -> Iterator[TextRepair]:
        forms = (
            self._by_fewer, self._heard_by_all, self._tracked, self._around_flags, self._out_of_branches, self._earlier, self._unaligned,
            self._masks, self._atomic, self._by_one, self._ordered, self._counted, self._released, self._initialised, self._repeated,
            self._elsewhere, self._constant, self._announced, self._of_tokens,
            self._numbers, self._as_one, self._unconditional, self._turns, self._dropped, self._ranks, self._around_branches,
            self._cleared, self._maps_fenced, self._alternating,
        )  # fmt: skip
        first = (self._around_branches,) if self.situation == "after-exit" else ()
        for form in (
            () if self.situation == "lane-gone" else (*first, *forms)
        ):  # its condition may keep the lane from what it must not touch
            yield from form()

    # -- by more threads, by fewer -----------------------------------------------------------------------------------------

    def _by_fewer(self) -> Iterator[TextRepair]:
        """Executed by one thread, or by one of each warp: what is done at mbarriers, and stores of one value by many threads."""
        kinds = _BY_ONE.get(self.situation, ())
        found = self._own if effects.Write in kinds else self._of_kinds(kinds)
        found = [(function, each) for function, each in found if each.predicate is None and not any(written(each))]
        for who, code in _OWN.items() if found else ():
            edits = [(each.start, each.end, f"{{ .reg .b32 at; .reg .pred own; {code} @own {each.text} }}") for _, each in found]
            steps = [RepairStep("alter", f"{each.opcode} by {who} only", "at", self._site(function, each)) for function, each in found]
            lines = {(step.instruction, line_of(self.places.sites[step.site])): step for step in steps}
            yield TextRepair(tuple(lines.values()), tuple(edits))

    # -- other forms -------------------------------------------------------------------------------------------------------

    def _unaligned(self) -> Iterator[TextRepair]:
        """A barrier that the lanes of a warp need not reach together; all named barriers of the finding's kernel change.

        Not `bar.sync 0`: that is `__syncthreads()`, which CUDA C++ has in no other form, and which all threads have to reach.
        """
        found = [(function, each) for function, each in self._of_kinds((effects.CtaBarrier,)) if _unaligned(each) != each.text]
        found = [(function, each) for function, each in found if [operand.text for operand in each.operands] != ["0"]]
        if found and self.situation.startswith("divergent"):
            steps = tuple(RepairStep("alter", _unaligned(each).split()[0], "at", self._site(function, each)) for function, each in found)
            yield TextRepair(steps, tuple((each.start, each.end, _unaligned(each)) for _, each in found))

    def _as_one(self) -> Iterator[TextRepair]:
        """All named barriers with one number, and the lanes of a warp need not reach them together; or one for the threads of all."""
        found = [(function, each) for function, each in self._of_kinds((effects.CtaBarrier,)) if len(each.operands) >= 2]
        if self.kind == "data-race" and any(row_of(each).arrives_only for _, each in found):
            number = next((each.operands[0].text for _, each in found if isinstance(each.operands[0], Immediate)), "1")
            texts = [f"{each.opcode} {number}, {math.prod(self.block)};" for _, each in found]
            steps = tuple(RepairStep("alter", text.rstrip(";"), "at", self._site(*at)) for at, text in zip(found, texts, strict=True))
            yield TextRepair(steps, tuple((each.start, each.end, text) for (_, each), text in zip(found, texts, strict=True)))
        for number in dict.fromkeys(each.operands[0].text for _, each in found) if self.situation.startswith("divergent") else ():
            texts = [_unaligned(each).replace(f" {each.operands[0].text},", f" {number},", 1) for _, each in found]
            steps = tuple(RepairStep("alter", text.rstrip(";"), "at", self._site(*at)) for at, text in zip(found, texts, strict=True))
            yield TextRepair(steps, tuple((each.start, each.end, text) for (_, each), text in zip(found, texts, strict=True)))

    def _ordered(self) -> Iterator[TextRepair]:
        """Relaxed loads and stores of flags that acquire and release: all of the kernel."""
        found = [(function, each) for function in self._functions for each in function.instructions() if _strengthened(each) != each.text]
        if found and self.kind in ("data-race", "global-race"):
            steps = tuple(RepairStep("alter", _strengthened(each).split()[0], "at", self._site(function, each)) for function, each in found)
            yield TextRepair(steps, tuple((each.start, each.end, _strengthened(each)) for _, each in found))

    def _masks(self) -> Iterator[TextRepair]:
        """The mask of a `__syncwarp`: half a warp; of shuffles, votes and matches, all of the finding: the warp, or a half of it."""
        for function, each in self._own:
            if row_of(each).is_warp_barrier:
                for mask in _HALVES:
                    yield from self._other((function, each), f"bar.warp.sync {mask:#x};")
            if row_of(each).is_warp_barrier and self.situation == "not-in-mask":
                yield from self._other((function, each), _of_its_mask(each), f"{each.opcode} by the lanes of its mask only")
        masked = [each for each in self._own if self.situation in _OF_MASKS and _MASKED.match(each[1].opcode)]
        for mask in (0xFFFFFFFF, *_HALVES) if masked else ():
            texts = [_with_mask(each, mask) for _, each in masked]
            steps = tuple(RepairStep("alter", f"{at[1].opcode} with the mask {mask:#x}", "at", self._site(*at)) for at in masked)
            if texts != [each.text for _, each in masked]:
                yield TextRepair(steps, tuple((each.start, each.end, text) for (_, each), text in zip(masked, texts, strict=True)))

    def _counted(self) -> Iterator[TextRepair]:
        """Arrivals of copies that the count of the mbarrier includes, or does not."""
        for function, each in self._of_kinds((effects.MbarrierCopies,)):
            noinc = each.opcode.replace("arrive.", "arrive.noinc.")
            opcode = each.opcode.replace(".noinc", "") if ".noinc" in each.opcode else noinc
            yield from self._other((function, each), each.text.replace(each.opcode, opcode), opcode)

    def _released(self) -> Iterator[TextRepair]:
        """An arrival of the thread itself behind that of its copies, and twice the count: the copies' arrivals publish nothing else."""
        copies, inits = (self._of_kinds((kind,)) for kind in (effects.MbarrierCopies, effects.MbarrierInit))
        if not copies or self.kind != "data-race":
            return
        added = [(each.end, each.end, f" mbarrier.arrive.shared.b64 _, {each.operands[0].text};") for _, each in copies]
        doubled = [
            (each.start, each.end, f"{{ .reg .b32 twice; add.u32 twice, {count}, {count}; {each.opcode} {at}, twice; }}")
            for _, each in inits
            for at, count in ([operand.text for operand in each.operands],)
        ]
        steps = [RepairStep("add", "mbarrier.arrive", "after", self._site(*each)) for each in copies]
        steps += [RepairStep("alter", f"{each.opcode} with twice the count", "at", self._site(function, each)) for function, each in inits]
        yield TextRepair(tuple(steps), (*added, *doubled))

    def _initialised(self) -> Iterator[TextRepair]:
        """One more mbarrier, behind one that is initialised."""
        for function, each in self._of_kinds((effects.MbarrierInit,)) if self.situation == "not-initialised" else ():
            at, count = (operand.text for operand in each.operands)
            code = f" {{ .reg .b32 next; add.u32 next, {at.strip('[]')}, 8; {each.opcode} [next], {count}; }}"
            step = RepairStep("add", f"{each.opcode} of the next mbarrier", "after", self._site(function, each))
            yield TextRepair((step,), ((each.end, each.end, code),))

    def _numbers(self) -> Iterator[TextRepair]:
        """The number or the thread count of a named barrier: any multiple of a warp, and any number that the kernel uses."""
        if self.kind not in OF_BARRIERS:
            return
        barriers = [(function, each) for function, each in self._of_kinds((effects.CtaBarrier,)) if len(each.operands) >= 2]
        if self.situation == "barrier-number":
            yield from self._lower_numbers([each for each in barriers if not isinstance(each[1].operands[0], Immediate)])
        used = {str(each.operands[0].text) for _, each in barriers}
        counts = [str(count) for count in range(32, math.prod(self.block) + 1, 32)]
        for place, values in ((0, sorted(used)), (1, counts)):
            for function, each in barriers:
                old = each.operands[place]
                if isinstance(old, Immediate):
                    for value in values:
                        operands = [other.text for other in each.operands]
                        operands[place] = value
                        yield from self._other((function, each), f"{each.opcode} {', '.join(operands)};")

    def _lower_numbers(self, barriers: list[tuple[Function, Instruction]]) -> Iterator[TextRepair]:
        """A number that is one less, for each barrier whose number the kernel computes."""
        texts = [
            f"{{ .reg .b32 number; sub.u32 number, {each.operands[0].text}, 1; {each.text.replace(each.operands[0].text, 'number', 1)} }}"
            for _, each in barriers
        ]
        steps = {
            self._statement(*each): RepairStep("alter", f"{each[1].opcode} with a number that is one less", "at", self._site(*each))
            for each in barriers
        }
        yield TextRepair(
            tuple(steps.values()), tuple((each.start, each.end, text) for (_, each), text in zip(barriers, texts, strict=True))
        )

    def _maps_fenced(self) -> Iterator[TextRepair]:
        """A tensor map is acquired before the copy that uses it, or released behind its change; or both."""
        if self.kind != "missing-proxy-fence":
            return
        for function, copy in self._own:
            named = _MAP.search(copy.text) if ".tensor" in copy.opcode else None
            if named is None:
                continue
            acquire, release = f"{_ACQUIRE} [{named[1]}], 128", "fence.proxy.tensormap::generic.release.gpu"
            steps = (RepairStep("add", acquire, "before", self._site(function, copy)),)
            edits = ((copy.start, copy.start, f"{acquire}; "),)
            yield TextRepair(steps, edits)
            for other in (each for each in self._own if each[1] is not copy):
                step = RepairStep("add", release, "after", self._site(*other))
                released = (other[1].end, other[1].end, f" {release};")
                yield TextRepair((step,), (released,))
                yield TextRepair((step, *steps), (released, *edits))

    # -- several instructions ----------------------------------------------------------------------------------------------

    def _atomic(self) -> Iterator[TextRepair]:
        """One reduction in place of a load, an addition and a store of the same thread to the same address."""
        if self.kind not in ("data-race", "global-race") or not self.situation.endswith(_UPDATES):
            return
        for function, load in self._own:
            for update, store in _updates(function, load):
                opcode, text = _reduction(load, update, store.operands[0].text)
                edits = ((load.start, load.end, ""), (update.start, update.end, ""), (store.start, store.end, text))
                words = f"{opcode} in place of the load, the change and the store"
                yield self._repair("alter", words, (function, store), *edits)

    def _by_one(self) -> Iterator[TextRepair]:
        """An update by which all threads store one value, by the first thread only; but for one that an atomic operation can be."""
        stores = [
            (function, each)
            for function, each in self._own
            if row_of(each).is_store and each.predicate is None and not _differs_by_thread(function, each)
        ]
        loads = [
            (function, each)
            for function, store in stores
            for each in function.instructions()
            if row_of(each).is_load and each.operands[1].text == store.operands[0].text and each.predicate is None
        ]
        combined = any(True for function, load in loads for _ in _updates(function, load))
        if self.situation == "replicated@update" and loads and not combined:
            code = _OWN["the first thread"]
            edits = [
                (each.start, each.end, f"{{ .reg .b32 at; .reg .pred own; {code} @own {each.text} }}") for _, each in (*loads, *stores)
            ]
            step = RepairStep("alter", "the update by the first thread only", "at", self._site(*stores[0]))
            yield TextRepair((step,), tuple(dict.fromkeys(edits)))

    def _cleared(self) -> Iterator[TextRepair]:
        """Zeros in a variable of shared memory before the kernel begins."""
        if self.kind != "uninitialized-read":
            return
        for function in {id(function): function for function, _ in self._own}.values():
            first = next(function.instructions())
            for name, size in _shared_variables(function, self.text.module.text):
                code = _CLEAR.format(name=name, bytes=size)
                step = RepairStep("add", f"zeros in {name} ({size} bytes) and then bar.sync 0", "before", self._site(function, first))
                yield TextRepair((step,), ((first.start, first.start, code),))


def _unaligned(instruction: Instruction) -> str:
    opcode = instruction.opcode.replace(".aligned", "")
    if row_of(instruction).is_cta_barrier:
        opcode = f"barrier.{opcode.partition('.')[2]}"
    return instruction.text.replace(instruction.opcode, opcode, 1)


def _of_its_mask(barrier: Instruction) -> str:
    mask = barrier.operands[-1].text
    code = f"mov.u32 at, %lanemask_eq; and.b32 at, at, {mask}; setp.ne.u32 own, at, 0;"
    return f"{{ .reg .b32 at; .reg .pred own; {code} @own {barrier.text} }}"


def _with_mask(instruction: Instruction, mask: int) -> str:
    before, _, behind = instruction.text.rpartition(instruction.operands[-1].text)
    return f"{before}{mask:#x}{behind}"


def _strengthened(instruction: Instruction) -> str:
    order = {"ld": "acquire", "st": "release"}.get(instruction.parts[0])
    return instruction.text.replace(".relaxed.", f".{order}.", 1) if order else instruction.text


def _reduction(load: Instruction, update: Instruction, address: str) -> tuple[str, str]:
    """The opcode of the reduction that is one of `_updates`, and its text. An operand that a product is added to takes the product."""
    found = _UPDATE.match(update.opcode)
    if found is not None:
        kind = "u" if found[2] == "s" and (found[1], found[3]) == ("add", "64") else found[2]
        opcode = f"red.{load.parts[1]}.{found[1]}.{kind}{found[3]}"
        return opcode, f"{opcode} {address}, {next(each.text for each in update.operands[1:] if each.text != load.operands[0].text)};"
    scaled = _SCALED.match(update.opcode)
    assert scaled is not None
    opcode = f"red.{load.parts[1]}.add.{'u' if scaled[2] == 's64' else scaled[2][0]}{scaled[2][1:]}"
    product = f"mul.{scaled[1]}.{scaled[2]} part, {update.operands[1].text}, {update.operands[2].text};"
    return opcode, f"{{ .reg .b{scaled[2][1:]} part; {product} {opcode} {address}, part; }}"


def _differs_by_thread(function: Function, store: Instruction) -> bool:
    """Whether the value or the address of a store follows from the number of the thread, or from what an atomic operation has found."""
    found = (store, *backward_slice(definitions(function), keys_read(store), keys_read))
    return any(row_of(each).is_atomic or _OF_THREAD.search(each.text) for each in found)


def _updates(function: Function, load: Instruction) -> Iterator[tuple[Instruction, Instruction]]:
    """The change of a loaded value by another one and the store of the result to the same address, if nothing else uses the two."""
    if not row_of(load).is_load or load.predicate is not None or load.parts[1] not in _SPACES:
        return
    value, address = load.operands[0].text, load.operands[1].text
    users = [each for each in function.instructions() if value in read(each)]
    if len(users) != 1 or users[0].predicate is not None:
        return
    taken = [each.text == value for each in users[0].operands[1:]]
    if sum(taken) != 1 or not (_UPDATE.match(users[0].opcode) or (_SCALED.match(users[0].opcode) and taken[-1])):  # one: not x + x
        return
    result = users[0].operands[0].text
    stores = [each for each in function.instructions() if result in read(each)]
    if len(stores) == 1 and stores[0].opcode.startswith(f"st.{load.parts[1]}") and stores[0].operands[0].text == address:
        yield users[0], stores[0]


def _shared_variables(function: Function, text: str) -> list[tuple[str, int]]:
    """The arrays of bytes in shared memory that a function declares, and their sizes; then those of the module."""
    declared: Callable[[str], list[tuple[str, int]]] = lambda code: [  # noqa: E731
        (name, int(size)) for name, size in re.findall(r"\.shared\s+(?:\.align\s+\d+\s+)?\.b8\s+([\w$]+)\[(\d+)\]", code)
    ]
    return list(dict.fromkeys((*declared(function.text), *declared(text))))
