"""The hooks: every function of the runtime that instrumented kernels call, with its typed parameters.

A line of the table: name, parameters and result; the variants that have it (`-`: all) and the widths for which `#` stands; when it is
called. `caller` stands for slot, state and number of the thread. A parameter after `cluster` exists only in variants for clusters.
A parameter is of type u32 unless its type is given: u64, or the enumeration (flags.py) whose flags it takes. The result `state` is the
thread's new state.
The C++ header declares the hooks from this table, and the passes make their calls by it (`hook`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping

from consan.dataclass import dataclass
from consan.instrument.abi import flags
from consan.instrument.abi.variant import Variant

PREFIX = "__consan_"
Value = str | int
Enumeration = type[enum.IntEnum] | type[enum.IntFlag]
_SIGNATURE = re.compile(r"([\w#]+)\((.*)\)(?: -> (\w+))?")
_CALLER = "u64 slot, u64 state, me"
_HEAD = "u64 writes, u64 reads, low, bytes, own, base"


@dataclass(frozen=True)
class HookParameter:
    """A parameter: u32 or u64, and the enumeration that its value is of, if any."""

    name: str
    type: str
    flags: Enumeration | None
    cluster: bool

    @property
    def ptx(self) -> str:
        """Its type in PTX."""
        return self.type.replace("u", "b")

    def text(self, value: Value) -> str:
        """An argument: a register or literal as it is, a number as a literal."""
        if self.flags is not None and not isinstance(value, (str, self.flags)):
            raise TypeError(f"{self.name}={value!r} is not of {self.flags.__name__}")
        return value if isinstance(value, str) else str(int(value))


@dataclass(frozen=True)
class Hook:
    """A hook of one width."""

    name: str
    needs: tuple[str, ...]
    parameters: tuple[HookParameter, ...]
    result: str  # "", "state", or a type
    meaning: str

    @property
    def symbol(self) -> str:
        """Its name in PTX."""
        return PREFIX + self.name

    @property
    def result_type(self) -> str:
        """The type of the result, or "void"."""
        return {"": "void", "state": "u64"}.get(self.result, self.result)

    def is_in(self, variant: Variant) -> bool:
        """Whether a variant of the runtime has it."""
        return all(getattr(variant, need) for need in self.needs)

    def taken(self, variant: Variant) -> Iterator[HookParameter]:
        """The parameters in a variant."""
        return (each for each in self.parameters if variant.cluster or not each.cluster)


@dataclass(frozen=True)
class HookCall:
    """A call of a hook, with the values that the caller gives."""

    hook: Hook
    values: Mapping[str, Value]

    def arguments(self, variant: Variant, usual: Mapping[str, str]) -> list[tuple[str, str]]:
        """The arguments: PTX type, and register or literal. `usual`: of parameters that are not in `values`.

        Values of parameters that the variant lacks are left out.
        """
        hook, values = self.hook, self.values
        names = {each.name for each in hook.parameters}
        if not hook.is_in(variant) or values.keys() - names or names - values.keys() - usual.keys():
            raise TypeError(f"{hook.name} takes {', '.join(sorted(names))} in variants with {hook.needs}, not {', '.join(values)}")
        return [(each.ptx, each.text(values[each.name] if each.name in values else usual[each.name])) for each in hook.taken(variant)]


def hook(name: str, /, **values: Value) -> HookCall:
    """A call of a hook by name."""
    return HookCall(HOOKS[name], values)


def _parameters(text: str) -> Iterator[HookParameter]:
    for item in filter(None, re.split(r",\s*", text.replace("caller", _CALLER).replace("head", _HEAD))):
        *words, name = item.split()
        cluster = words[:1] == ["cluster"]
        kind = words[-1] if words[cluster:] else "u32"
        members = None if kind in ("u32", "u64") else getattr(flags, kind)
        yield HookParameter(name, "u64" if kind == "u64" else "u32", members, cluster)


def _values(nbytes: int) -> str:
    """The words of a stored value."""
    return ", ".join(("a", "b", "c", "d")[: max(1, nbytes // 4)])


def _hooks(table: str) -> Iterator[Hook]:
    for line in filter(None, table.splitlines()):
        signature, variants, meaning = line.strip().split(" | ")
        read = _SIGNATURE.fullmatch(signature)
        assert read is not None, line
        name, text, result = read[1], read[2], read[3] or ""
        needs, _, widths = variants.partition("#")
        for width in widths.split() or [""]:
            parameters = _parameters(text.replace("value#", _values(int(width or 0))))
            named = tuple(filter(None, needs.strip(" -").split("+")))
            yield Hook(name.replace("#", width), named, tuple(parameters), result, meaning.replace("#", width))


HOOKS = {
    hook.name: hook
    for hook in _hooks("""
    enter(u64 runtime, module, KernelFlags entry, counter) -> u64 | - | a kernel begins; returns the slot of the CTA
    find(u64 runtime) -> u64 | - | a device function begins; returns the slot of the CTA
    low() -> u32 | - | returns the shared address of the CTA's first byte
    self() -> u32 | cluster | returns the number of the thread in its cluster
    count(u64 runtime, counter) | - | a kernel without checked accesses begins
    poll(u64 runtime) -> u32 | - | in a loop; returns whether the host stops the launch
    stands(u64 runtime, u64 slot, module, entry, place) | - | before a thread exits because the host stops the launch; records its place
    exit(u64 runtime, u64 slot, u64 state) | - | before a thread exits
    leave(u64 runtime, caller) | engine | exits a thread because the host stops the launch
    load_state(u64 slot, me) -> state | - | after a call, or at the beginning
    store_state(caller) | - | before a call, or before a function returns
    scrub(caller) -> state | - | after a barrier of the CTA, now and then

    read#(caller, address, site) | - # 1 2 4 8 16 | before a load of # bytes
    write#(caller, address, site, value#) | - # 1 2 4 8 16 | before a store of # bytes
    strong_read#(caller, address, SiteFlags site) | - # 1 2 4 8 16 | before a strong load of # bytes
    strong_write#(caller, address, SiteFlags site) | - # 1 2 4 8 16 | before a strong store of # bytes
    atomic#(caller, address, SiteFlags site) | - # 1 2 4 8 16 | before an atomic or reduction of # bytes
    fast_read#(caller, address, site, head) | - # 1 2 4 8 16 | as read#, in line
    fast_write#(caller, address, site, head, value#) | - # 1 2 4 | as write#, in line
    flag_write(caller, address, PatternFlags releases) -> state | partial | before a strong store, atomic or reduction
    flag_read(u64 slot, me, address, PatternFlags acquires) | partial | after a strong load or atomic
    fence(caller, cluster narrow) -> state | partial | before a fence; narrow: of .cta scope

    barrier_before(caller, id, count, site, waits) -> state | partial | before a barrier; count: or Threads; waits: look for a deadlock
    barrier_after(caller, id, count) -> state | partial | after a barrier that waits
    warp_sync(caller, mask, site) -> state | partial | after bar.warp.sync
    split(caller, members, code) | - | before a warp-synchronous instruction if a member is not active; code: upper half of word `point`
    joined(caller, site, joins) | - | at a join: these lanes can no longer reach some warp-synchronous instructions
    cluster_arrive(caller, site, relaxed) -> state | engine | before barrier.cluster.arrive
    cluster_wait(caller, site) | cluster | before barrier.cluster.wait

    copy#(caller, address, site, u64 source, source_bytes) | asynchronous # 4 8 16 | before a cp.async of # bytes
    copy_commit(caller) | asynchronous | after cp.async.commit_group
    copy_wait(caller, pending) | asynchronous | after cp.async.wait_group
    copies_at_exit(caller) | asynchronous | before a thread exits
    global_write(caller, u64 address, site, bytes) | asynchronous | before a store to global memory, which cp.async may read

    mbarrier_init(caller, address, site, count) | engine | before mbarrier.init
    mbarrier_inval(caller, address, site) | engine | before mbarrier.inval
    mbarrier_arrive(caller, address, site, count, bytes, ArriveFlags flags) -> state | engine | before mbarrier.arrive and arrive_drop
    mbarrier_tx(caller, address, site, bytes) | engine | before mbarrier.expect_tx and complete_tx
    mbarrier_copies(caller, address, site, noinc) | engine | before cp.async.mbarrier.arrive
    mbarrier_before(caller, address, site) -> u64 | engine | before a wait; returns the number of the mbarrier and its phase
    mbarrier_after(caller, u64 snapshot, site, parity, WaitFlags flags) -> state | engine | after a wait
    fence_inits(caller) | cluster | before fence.mbarrier_init
    proxy_fence(caller, cluster own_cta) -> state | engine | before fence.proxy.async; own_cta: shared memory of the CTA only

    tensor_bytes(u64 map, times) -> u32 | engine | returns the bytes that a tensor copy moves
    bulk_load(caller, address, sites, bytes, mbarrier, kind) | engine | before a bulk copy into shared memory, st.async
    bulk_store(caller, address, sites, bytes) | engine | before a bulk copy from shared memory
    tensor_store(caller, address, sites, u64 map, x0, x1, x2, x3, x4) | engine | before a tensor copy from shared memory
    bulk_multicast(caller, address, sites, bytes, mbarrier, kind, mask, pairs) | cluster | before a copy to several CTAs
    bulk_push(caller, address, sites, bytes, mbarrier, source, kind) | cluster | before a copy to another CTA
    fill(caller, address, site, bytes) | engine | before st.bulk
    bulk_commit(caller) | engine | after cp.async.bulk.commit_group
    bulk_wait(caller, pending, read_only) | engine | after cp.async.bulk.wait_group
    matrix_operand(caller, u64 descriptor, site, rows, depth, form) | engine | before wgmma.mma_async, for each operand in memory
    matrix_commit(caller) | engine | after wgmma.commit_group
    matrix_wait(caller, pending) | engine | after wgmma.wait_group
    map_write(caller, address, site) | - | before tensormap.replace in shared memory
    map_copy(caller, address, site) -> state | partial | before tensormap.cp_fenceproxy

    result(caller, sites, u64 address, bytes) | engine | before a bulk copy to global memory; sites: word `result_site`
    tensor_result(caller, sites, u64 map, x0, x1, x2, x3, x4) | engine | before a tensor copy to global memory
    result_wait(caller, pending) | engine | after cp.async.bulk.wait_group without .read
    fetch(caller, site, mbarrier, u64 address, bytes) | engine | before a bulk copy from global memory
    tensor_fetch(caller, site, mbarrier, u64 map, x0, x1, x2, x3, x4) | engine | before a tensor copy from global memory
    map_use(caller, site, u64 map, mbarrier, GlobalFlags flags) | engine | before a tensor copy, whose map may be in global memory
    map_change(caller, site, u64 map, MapFlags flags) | engine | before a change of a map that may be in global memory
    map_fence(caller, u64 map) -> state | engine | before fence.proxy.tensormap; map: 0 of a release
    global_access(caller, u64 address, site, bytes, GlobalFlags flags) | engine | before an access that may meet copies in flight
    global_written(caller, u64 address, site, bytes) | engine | before a store to global memory that a bulk copy may read later
    global_fence(caller, advances) -> state | engine | before a proxy fence that covers global memory; advances: no other hook does
    global_poll(caller, site) | engine+isa | before a strong load of global memory
""")
}
