"""Receipts: the sums that a recorded launch leaves in memory of the host when it ends, so that the host need not wait for it.

Behind the launch, in its stream, a small kernel adds up the hashes of all threads, each mixed with the thread's number in the grid. It
stores the two sums, how many threads have not exited, and the results of the launch in a slip of memory that the host sees. The number of
the launch comes last: once it is there, all is. Launches of one kernel and shape with equal receipts did the same.

A node of a graph has one slip for all of its launches. They are counted where they begin. The receipt counts those that it was written of,
and those that differ from the one before, or run beside another launch of the node: a graph may be made launchable more than once. The
words that the device reads again are in a copy of the slip in its own memory: the next kernel of the graph would wait for the host's. A
node without a receipt has only a counter, in memory of the device.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consan.checker.logs import names
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.names import ADD_HASHES
from consan.dataclass import dataclass
from consan.instrument.record.text.text import LAUNCH_BYTES, PLACES_BYTES

NUMBER, SUMS, UNENDED, RESULTS = 0, 8, 24, 32  # where in a slip
GIVEN = 1536  # in the slip: what the launch is given
BEGUN, RUNS, CHANGES = 2024, 2032, 2040  # of a node: its launches, those with a receipt, those that do not stand for the one before
SLIP_BYTES = 2048
MOST_RESULTS = GIVEN - RESULTS  # bytes
SLIPS = 16
WORK_BYTES = 32  # of the device: the sums, the threads that have not exited, the CTAs that are done
assert GIVEN + LAUNCH_BYTES + PLACES_BYTES <= BEGUN
_THREADS, _EACH = 128, 8  # of a CTA of the kernel, and how many threads of the launch a thread adds up at least
_CTAS_OF_SM = 2
_ENTRY, _COUNTING, _BEGINS = "consan_receipt", "consan_node_receipt", "consan_node_begins"
OWN_ENTRIES = frozenset((_ENTRY, _COUNTING, _BEGINS))
"""The names of these kernels: a graph may have them as nodes."""
_WARP = 32
MOST_OF_FRONT, _PIECES = 63, 2  # nodes of a front, pieces of memory of one
_FRONT_ENTRY, _ENTRY_BYTES = "<6Q16x", 64  # of its table: the slip, its copy, addresses and bytes. The first has the number of nodes
_FRONT_BYTES = _ENTRY_BYTES * (1 + MOST_OF_FRONT)
_COUNTER_BYTES, _COUNTERS = 8, 512
_CLEARED_BY_THREAD = 64  # bytes, at least, where all are known
MOST_CLEARED: Final = 1 << 20  # bytes of a piece of memory: all of the device clears a larger one


@dataclass(frozen=True)
class Receipt:
    """The sums that a launch has left. `results`: stored by its first thread."""

    sums: bytes
    unended: int
    results: bytes


@dataclass
class Slip:
    """Memory of the host for the receipt of one launch, and for what the launch is given."""

    address: int  # on the device
    view: npt.NDArray[np.uint8]
    begun: Any  # marks before and behind the kernel
    ended: Any
    number: int = 0
    copy: int = 0  # of a node: the address of the copy on the device

    def __post_init__(self) -> None:
        self._words = self.view.view("<u8")

    def given(self, at: int, data: bytes) -> npt.NDArray[np.uint8]:
        """Keep what a launch is given, at a place of its own."""
        part = self.view[GIVEN + at : GIVEN + at + len(data)]
        part[:] = np.frombuffer(data, np.uint8)
        return part

    @property
    def host_address(self) -> int:
        """The address on the host."""
        return int(self.view.ctypes.data)

    @property
    def is_there(self) -> bool:
        """Whether the receipt has come."""
        return int(self._words[NUMBER // 8]) == self.number

    @property
    def counts(self) -> tuple[int, int, int]:
        """For a node: its launches, those with a receipt, and those that do not stand for the one before."""
        begun, runs, changes = self._words[BEGUN // 8 : CHANGES // 8 + 1].tolist()
        return begun, runs, changes

    def begin_node(self, copy: int) -> None:
        """A node takes the slip. `copy`: that of the device, which is zero."""
        self.copy, self._words[BEGUN // 8 : CHANGES // 8 + 1] = copy, 0

    def read(self, nbytes: int) -> Receipt:
        """The receipt, with so many bytes of results."""
        return Receipt(self.view[SUMS:UNENDED].tobytes(), int(self._words[UNENDED // 8]), self.view[RESULTS : RESULTS + nbytes].tobytes())


@dataclass
class NodeFront:
    """A kernel before the nodes of a graph: it counts their launches, and clears their memory. `address`: of its table on the device."""

    address: int
    entries: bytes = b""

    @property
    def nodes(self) -> int:
        """How many it has."""
        return len(self.entries) // _ENTRY_BYTES

    @property
    def is_full(self) -> bool:
        """Whether it has no room for one more node."""
        return self.nodes == MOST_OF_FRONT


@dataclass
class Receipts:
    """The slips of a device. A slip serves one launch at a time."""

    memory: LogMemory
    free: list[Slip] = field(default_factory=list)
    _counters: list[int] = field(default_factory=list)  # addresses of those that no node has
    _rings: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._module = self.memory.module(KERNEL)
        self.memory.module(names.kernel())  # it is loaded while no thread but the program's uses the device
        self._add_ring()

    def _add_ring(self) -> None:
        backend = self.memory.backend
        address, view = backend.host_ring(SLIPS * SLIP_BYTES)
        self._rings.append(address)
        with backend.work.entered():
            for at in range(0, SLIPS * SLIP_BYTES, SLIP_BYTES):
                marks = backend.work.new_mark(), backend.work.new_mark()
                self.free.append(Slip(address + at, view[at : at + SLIP_BYTES], *marks))

    def close(self) -> None:
        """Give the memory back."""
        self.free.clear()
        while self._rings:
            self.memory.backend.free_ring(self._rings.pop())

    def take(self) -> Slip:
        """A slip for the next launch. Its user has waited for one that is free, unless launches were given up."""
        if not self.free:
            self._add_ring()
        slip = self.free.pop()
        self.number(slip)
        return slip

    def number(self, slip: Slip) -> int:
        """Number the next launch of a slip."""
        slip.number = self.memory.backend.work.next_number()
        return slip.number

    def spare(self) -> Slip:
        """A slip for launches that repeat. It is none of those for which others wait."""
        if len(self.free) <= 1:
            self._add_ring()
        return self.free.pop()

    def counter(self) -> int:
        """The address of a counter, which is zero."""
        if not self._counters:
            first = self.memory.take("counters of nodes", _COUNTER_BYTES * _COUNTERS, clear=False)
            self.memory.backend.poke(first, bytes(_COUNTER_BYTES * _COUNTERS))
            self._counters = list(range(first, first + _COUNTER_BYTES * _COUNTERS, _COUNTER_BYTES))
        return self._counters.pop()

    def counted(self, counter: int) -> int:
        """The launches that a counter has counted."""
        return int.from_bytes(self.memory.backend.peek(counter, _COUNTER_BYTES), "little")

    def front(self) -> NodeFront:
        """A front that no node has yet. Its table is not written: `put_front` follows."""
        return NodeFront(self.memory.take("fronts of nodes", _FRONT_BYTES, clear=False))

    def _put(self, front: NodeFront) -> None:
        self.memory.backend.poke(front.address, struct.pack("<Q56x", front.nodes) + front.entries)

    def put_front(self, front: NodeFront, node: Slip | int, clears: Sequence[tuple[int, int]]) -> None:
        """Have the front count the launches of one more node, and clear these pieces of memory: addresses and bytes.

        `node`: its slip, or its counter.
        """
        counts = (0, node - BEGUN) if isinstance(node, int) else (node.address, node.copy)
        pieces = [*clears, *[(0, 0)] * (_PIECES - len(clears))]
        front.entries += struct.pack(_FRONT_ENTRY, *counts, *itertools.chain(*pieces))
        self._put(front)

    def counts_aside(self, front: NodeFront, stream: int) -> None:
        """Put a front into a captured stream that only counts: no node waits for it."""
        self.memory.backend.work.launch_aside(self._module, _BEGINS, MOST_OF_FRONT, _WARP, (front.address,), stream)

    def begins(self, nbytes: int | None, front: NodeFront, stream: int) -> None:
        """Put a front into a captured stream. `nbytes`: those that it clears; None: not known yet."""
        most = _CTAS_OF_SM * self.memory.backend.sm_count
        ctas = most if nbytes is None else max(1, min(most, nbytes // (_THREADS * _CLEARED_BY_THREAD)))
        self.memory.backend.work.launch(self._module, _BEGINS, ctas, _THREADS, (front.address,), stream)

    def ask(self, slip: Slip, hashes: int, threads: int, work: int, results: tuple[int, int], stream: int, *, counts: bool = False) -> None:
        """Have the receipt written behind the work of a stream. `hashes`: of so many threads; `results`: where, and how many bytes.

        `counts`: the work is a node of a graph.
        """
        module, entry, ctas, of_cta, numbers = self.kernel(slip, hashes, threads, work, results)
        if counts:
            entry, numbers = _COUNTING, (*numbers[:-1], slip.copy)
        self.memory.backend.work.launch(module, entry, ctas, of_cta, numbers, stream)

    def kernel(
        self, slip: Slip, hashes: int, threads: int, work: int, results: tuple[int, int]
    ) -> tuple[Any, str, int, int, Sequence[int]]:
        """The kernel that writes a receipt: its module and name, CTAs, threads of one, parameters. The last is the number of the launch."""
        ctas = max(1, min(_CTAS_OF_SM * self.memory.backend.sm_count, -(-threads // (_THREADS * _EACH))))
        numbers = hashes, threads, work, results[0], results[1] // 4, slip.address, slip.number
        return self._module, _ENTRY, ctas, _THREADS, numbers


def _over_warp(total: str) -> str:
    """Add up a 64-bit register over the lanes of a warp, in lane 0."""
    step = "mov.b64 {{%a, %b}}, {0}; shfl.sync.down.b32 %c, %a, {1}, 31, -1; shfl.sync.down.b32 %d, %b, {1}, 31, -1;"
    add = "mov.b64 %x, {{%c, %d}}; add.u64 {0}, {0}, %x;"
    return "\n".join((step + add).format(total, distance) for distance in (16, 8, 4, 2, 1))


_HEAD = """(.param .u64 hashes, .param .u64 threads, .param .u64 work, .param .u64 results, .param .u64 words,
                         .param .u64 slip, .param .u64 number) {
.reg .b64 %h, %w, %r, %o, %n, %m, %x, %i, %one, %other, %count, %step, %words, %number, %s<3>;
.reg .b32 %t, %a, %b, %c, %d, %ctas;
.reg .pred %p, %q, %last;
ld.param.u64 %h, [hashes]; ld.param.u64 %count, [threads]; ld.param.u64 %w, [work]; ld.param.u64 %r, [results];
ld.param.u64 %words, [words]; ld.param.u64 %o, [slip]; ld.param.u64 %number, [number];
mov.u32 %t, %tid.x; mov.u32 %a, %ntid.x; mov.u32 %b, %ctaid.x; mov.u32 %ctas, %nctaid.x;
mul.wide.u32 %i, %a, %b; cvt.u64.u32 %x, %t; add.u64 %i, %i, %x; mul.wide.u32 %step, %a, %ctas;
mov.b64 %s0, 0; mov.b64 %s1, 0; mov.b64 %s2, 0;
"""
_SUMS_OF_THREAD = f"""again:
setp.ge.u64 %p, %i, %count;
@%p bra added;
shl.b64 %x, %i, 4; add.u64 %x, %x, %h; add.u64 %n, %i, 1;
{ADD_HASHES}
add.u64 %i, %i, %step;
bra again;
added:
"""
# The first lanes add the sums of their warps; the last CTA finds all of them.
_SUMS_OF_GRID = f"""bar.warp.sync -1;
{_over_warp("%s0")}
{_over_warp("%s1")}
{_over_warp("%s2")}
and.b32 %a, %t, {_WARP - 1}; setp.ne.u32 %p, %a, 0;
@%p bra stored;
red.relaxed.gpu.global.add.u64 [%w], %s0; red.relaxed.gpu.global.add.u64 [%w+8], %s1; red.relaxed.gpu.global.add.u64 [%w+16], %s2;
fence.acq_rel.gpu;
stored:
bar.sync 0;
setp.ne.u32 %p, %t, 0; mov.u32 %d, 0;
@%p bra counted;
atom.acq_rel.gpu.global.add.u32 %d, [%w+24], 1; add.u32 %d, %d, 1;
counted:
setp.eq.u32 %q, %d, %ctas;
barrier.cta.red.or.pred %last, 0, %q;
@!%last bra done;
"""
_COPIED = f"""cvt.u64.u32 %n, %t; setp.ne.u32 %q, %t, %t;
copied:
setp.ge.u64 %p, %n, %words;
@%p bra ready;
shl.b64 %x, %n, 2; add.u64 %m, %x, %r; ld.global.u32 %a, [%m]; add.u64 %m, %x, %o;
{{compared}}
st.global.u32 [%m+{RESULTS}], %a;
add.u64 %n, %n, {_THREADS};
bra copied;
ready:
barrier.cta.red.or.pred %q, 0, %q;
setp.ne.u32 %p, %t, 0;
@%p bra done;
ld.relaxed.gpu.global.u64 %s0, [%w]; ld.relaxed.gpu.global.u64 %s1, [%w+8]; ld.relaxed.gpu.global.u64 %s2, [%w+16];
"""
# The copy of the slip, at `%number`, has the values of the launch before.
_COMPARED = f"""add.u64 %m, %x, %number; ld.global.u32 %b, [%m+{RESULTS}]; setp.ne.or.u32 %q, %a, %b, %q;
st.global.u32 [%m+{RESULTS}], %a; add.u64 %m, %x, %o;"""
_COUNTED = f"""ld.global.u64 %n, [%number+{RUNS}]; ld.global.u64 %m, [%number+{CHANGES}];
ld.global.u64 %one, [%number+{SUMS}]; ld.global.u64 %other, [%number+{SUMS + 8}]; ld.relaxed.gpu.global.u64 %x, [%number+{BEGUN}];
setp.ne.or.u64 %q, %one, %s0, %q; setp.ne.or.u64 %q, %other, %s1, %q;
setp.ne.and.u64 %q, %n, 0, %q;
add.u64 %n, %n, 1; setp.ne.or.u64 %q, %x, %n, %q;
@%q add.u64 %m, %m, 1;
st.global.u64 [%number+{RUNS}], %n; st.global.u64 [%number+{CHANGES}], %m;
st.global.u64 [%number+{SUMS}], %s0; st.global.u64 [%number+{SUMS + 8}], %s1;
st.global.u64 [%o+{RUNS}], %n; st.global.u64 [%o+{CHANGES}], %m;
"""
_WRITTEN = f"""st.global.u64 [%o+{SUMS}], %s0; st.global.u64 [%o+{SUMS + 8}], %s1; st.global.u64 [%o+{UNENDED}], %s2;
"""
_LAST = f"st.release.sys.global.u64 [%o+{NUMBER}], %number;\n"  # the host looks at it while the device works
_END = """done:
ret;
}
"""


def _kernel(entry: str, compared: str = "", counted: str = "", last: str = "") -> str:
    sums = _HEAD + _SUMS_OF_THREAD + _SUMS_OF_GRID
    return f".visible .entry {entry}{sums}{_COPIED.format(compared=compared)}{counted}{_WRITTEN}{last}{_END}"


# A thread clears 16 bytes of each `%step`; pieces are multiples of that. The next step may begin before all is seen: hence the fence.
_CLEARS = """ld.global.u64 %at, [%e+{0}]; ld.global.u64 %end, [%e+{1}]; mov.b64 %x, %i;
clear{0}:
setp.ge.u64 %p, %x, %end;
@%p bra cleared{0};
add.u64 %c, %at, %x; st.global.v2.u64 [%c], {{%zero, %zero}}; add.u64 %x, %x, %step;
bra clear{0};
cleared{0}:
"""
# Each node has CTAs of its own, so that a front of many takes no longer than one of a few.
_FRONT = f""".visible .entry {_BEGINS}(.param .u64 table) {{
.reg .b64 %table, %e, %o, %c, %n, %at, %end, %x, %i, %step, %zero;
.reg .b32 %t, %a, %b, %ctas, %nodes, %each, %node, %more;
.reg .pred %p, %first;
ld.param.u64 %table, [table]; ld.global.u32 %nodes, [%table]; mov.b64 %zero, 0;
setp.eq.u32 %p, %nodes, 0;
@%p bra done;
mov.u32 %t, %tid.x; mov.u32 %a, %ntid.x; mov.u32 %b, %ctaid.x; mov.u32 %ctas, %nctaid.x;
div.u32 %each, %ctas, %nodes; max.u32 %each, %each, 1; div.u32 %node, %b, %each; rem.u32 %b, %b, %each; div.u32 %more, %ctas, %each;
mad.lo.u32 %b, %b, %a, %t; setp.eq.u32 %first, %b, 0; mul.wide.u32 %i, %b, 16;
mul.lo.u32 %a, %each, %a; mul.wide.u32 %step, %a, 16;
again:
setp.ge.u32 %p, %node, %nodes;
@%p bra done;
mad.wide.u32 %e, %node, {_ENTRY_BYTES}, %table; add.u64 %e, %e, {_ENTRY_BYTES}; add.u32 %node, %node, %more;
@!%first bra counted;
ld.global.u64 %o, [%e]; ld.global.u64 %c, [%e+8];
atom.relaxed.gpu.global.add.u64 %n, [%c+{BEGUN}], 1; add.u64 %n, %n, 1;
setp.ne.u64 %p, %o, 0;
@%p st.global.u64 [%o+{BEGUN}], %n;
counted:
{"".join(_CLEARS.format(at, at + 8) for at in (16, 32))}bra again;
done:
fence.acq_rel.gpu;
ret;
}}
"""
KERNEL = ".version 7.8\n.target sm_70\n.address_size 64\n" + _kernel(_ENTRY, last=_LAST) + _kernel(_COUNTING, _COMPARED, _COUNTED) + _FRONT
