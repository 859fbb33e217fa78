"""The text of a kernel with what consan takes each instruction to do, for `consan ptx --effects`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from consan.instrument.isa import InstructionEvent, MemoryAccess, is_memory_or_sync, lookup
from consan.instrument.ptx import Instruction, Module

_INDENT: Final = "        // "
_VERBS: Final = {"read": "reads", "write": "writes", "rmw": "reads and writes"}

# How threads observe the end of the asynchronous part (`Row.completion`).
_COMPLETIONS: Final = {
    "mbarrier": "asynchronous: complete when a phase of the mbarrier is",
    "bulk-group": "asynchronous: complete when its bulk group is",
    "async-group": "asynchronous: complete when its cp.async group is",
    "wgmma-group": "asynchronous: complete when its wgmma group is",
    "wait::ld": "asynchronous: complete behind tcgen05.wait::ld",
    "wait::st": "asynchronous: complete behind tcgen05.wait::st",
}
# The effect of a family on the order of threads, beside its accesses; by action where actions differ.
FAMILIES: Final = {
    ("barrier", "arrive"): "arrives at a barrier of the CTA",
    ("barrier", ""): "arrives at a barrier of the CTA, waits there for the others, and is ordered behind what they did before",
    ("warp-barrier", ""): "waits for the lanes of its mask, and is ordered behind what they did before",
    ("warp-collective", ""): "executed together by the lanes of its mask; orders no memory",
    ("cluster-barrier", "arrive"): "arrives at the barrier of the cluster",
    ("cluster-barrier", "wait"): "waits for all threads of the cluster, and is ordered behind what they did before they arrived",
    ("mbarrier", "init"): "initialises an mbarrier",
    ("mbarrier", "inval"): "ends the life of an mbarrier",
    ("mbarrier", "arrive"): "arrives at an mbarrier",
    ("mbarrier", "arrive_drop"): "arrives at an mbarrier, for this phase and all that come",
    ("mbarrier", "arrive_after_copies"): "an mbarrier gets an arrival when the thread's cp.async so far are complete",
    ("mbarrier", "expect_tx"): "announces bytes at an mbarrier",
    ("mbarrier", "complete_tx"): "counts bytes at an mbarrier",
    ("mbarrier", "test_wait"): "tests a phase of an mbarrier; where the result is true, is ordered behind the arrivals",
    ("mbarrier", "try_wait"): "waits for a phase of an mbarrier; where the result is true, is ordered behind the arrivals",
    ("annotation", "puts"): "orders what the thread has put to the memory of one rank (NVSHMEM)",
    ("cp.async.commit", ""): "puts the thread's cp.async since the last group into a group",
    ("cp.async.wait", ""): "waits until no more than so many of the thread's cp.async groups are in flight",
    ("bulk", "commit_group"): "puts the thread's bulk operations since the last group into a group",
    ("bulk", "wait_group"): "waits until no more than so many of the thread's bulk groups are in flight",
    ("wgmma", "mma_async"): "reads its operands in shared memory, which descriptors give, through the async proxy",
    ("wgmma", "commit_group"): "puts the warp's wgmma since the last group into a group",
    ("wgmma", "wait_group"): "waits until no more than so many of the warp's wgmma groups are in flight",
    ("wgmma", "fence"): "orders registers before wgmma",
    ("tcgen05", "alloc"): "allocates columns of tensor memory, and waits until there are enough",
    ("tcgen05", "dealloc"): "frees columns of tensor memory",
    ("tcgen05", "relinquish_alloc_permit"): "gives up the right to allocate tensor memory",
    ("tcgen05", "ld"): "reads tensor memory",
    ("tcgen05", "st"): "writes tensor memory",
    ("tcgen05", "mma"): "reads its operands in shared or tensor memory, which descriptors give, and writes tensor memory",
    ("tcgen05", "cp"): "copies from shared memory, which a descriptor gives, to tensor memory",
    ("tcgen05", "shift"): "moves rows of tensor memory",
    ("tcgen05", "commit"): "an mbarrier gets an arrival when the thread's tcgen05 operations so far are complete",
    ("tcgen05", "wait::ld"): "waits for the thread's tcgen05.ld",
    ("tcgen05", "wait::st"): "waits for the thread's tcgen05.st",
    ("tcgen05", "fence::before_thread_sync"): "orders tcgen05 operations before what synchronises the thread",
    ("tcgen05", "fence::after_thread_sync"): "orders tcgen05 operations behind what has synchronised the thread",
    ("annotation", "release"): "an annotation: a release that the text does not show",
    ("annotation", "acquire"): "an annotation: an acquire that the text does not show",
    ("annotation", "begin"): "an annotation: from here on accesses are compared with no others",
    ("annotation", "end"): "an annotation: from here on accesses are compared again",
    ("mbarrier-fence", ""): "makes the thread's initialisations of mbarriers visible to the cluster",
    ("proxy-fence", ""): "orders accesses through the generic proxy and another proxy",
}


def with_effects(module: Module) -> str:
    """The text, and under each instruction a comment for each effect."""
    said = dict[int, list[str]]()
    for function in module.functions:
        for instruction in function.instructions():
            line, _ = module.source.position(instruction.end - 1)
            said.setdefault(line, []).extend(effects_of(instruction))
    lines = module.source.text.splitlines()
    return "".join(f"{line}\n" + "".join(f"{_INDENT}{each}\n" for each in said.get(number, ())) for number, line in enumerate(lines, 1))


def effects_of(instruction: Instruction) -> list[str]:
    """The effects of an instruction, in words; none for one that touches no memory and orders nothing."""
    row = lookup(instruction.parts)
    if row is None or not row.fits(instruction):
        return ["not modelled: consan does not know this form"] if is_memory_or_sync(instruction.parts) else []
    event = row.event(instruction)
    said = [*_accesses(event), *_orders(event)]
    gap = {"not modelled": "not modelled", "in part": "modelled in part"}.get(row.status)
    return [*said, f"{gap}: a kernel that executes it is `incomplete`"] if gap else said


def _accesses(event: InstructionEvent) -> Iterator[str]:
    for access in event.accesses:
        if not access.is_visible:
            continue
        proxy = "" if access.proxy == "generic" else f", through the {access.proxy} proxy"
        where = f" at {access.address.text}" if access.address is not None else ""
        yield f"{_VERBS[access.access]} {_size(access)}{access.qualified_space} memory{where}{proxy}{_strength(event, access)}"


def _size(access: MemoryAccess) -> str:
    if access.total_bytes:
        return f"{access.total_bytes} bytes of "
    return f"{access.size.text} bytes of " if access.size is not None else ""


def _strength(event: InstructionEvent, access: MemoryAccess) -> str:
    scope = "" if access.scope == "none" else f".{access.scope}"
    return f" (.{access.sem}{scope})" if not _is_asynchronous(event) else ""


def _is_asynchronous(event: InstructionEvent) -> bool:
    row = event.row
    return row.completion in _COMPLETIONS and not (row.is_mbarrier or row.is_of_groups or row.awaits_tensor_memory)


def _orders(event: InstructionEvent) -> Iterator[str]:
    row = event.row
    if words := FAMILIES.get((row.family, row.action)) or FAMILIES.get((row.family, "")):
        yield words
    orders = [word for word in event.orders if word != "proxy"]
    if orders:
        yield f"{', '.join(orders)} at .{event.scope} scope"
    if _is_asynchronous(event):
        yield _COMPLETIONS[row.completion]
