"""The names of histories: 128 bits for each CTA, sums over its threads of their two hashes, each mixed with the thread's number.

On a GPU a small kernel computes the sums of large launches: to copy the hashes of a million threads takes longer than most kernels.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from consan.checker.logs.memory import LogMemory
from consan.dataclass import dataclass

NAME_BYTES = 16
MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
FEWEST_ON_DEVICE = 1 << 16  # threads
_SPLITMIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 0))  # shifts, and what follows each
_THREADS = 128  # of a CTA of the kernel
_HASH_BYTES = 8
_SUMS = 3  # of a CTA: two sums, and how many threads have not exited


@dataclass(frozen=True)
class Sums:
    """`values`: 2 x CTAs. `ended`: whether all threads of each CTA have exited."""

    values: npt.NDArray[np.uint64]
    ended: npt.NDArray[np.bool_]


def sums_of(hashes: npt.NDArray[np.uint64]) -> Sums:
    """The sums of 2 x CTAs x threads. A hash is zero where a thread has not exited."""
    threads = np.arange(1, hashes.shape[2] + 1, dtype=np.uint64)
    pairs = zip(hashes, hashes[::-1], MIX, strict=True)
    mixed = (_avalanche(_avalanche(one + threads * np.uint64(mix)) ^ other) for one, other, mix in pairs)
    return Sums(np.stack([each.sum(axis=1, dtype=np.uint64) for each in mixed]), (hashes != 0).all(axis=(0, 2)))


def sums_on_device(memory: LogMemory, place: int, ctas: int, threads: int, *, background: bool = False) -> Sums:
    """The same by the device. `place`: the address of CTAs x threads x 2 hashes. `background`: apart from the program's streams."""
    backend, size = memory.backend, ctas * _SUMS * _HASH_BYTES
    out = memory.take("sums", size, clear=not background)
    if background:
        backend.poke(out, bytes(size))
        backend.work.run(memory.module(kernel()), "consan_sums", ctas, _THREADS, (place, out, threads))
    else:
        arguments = [place.to_bytes(8, "little"), out.to_bytes(8, "little"), threads.to_bytes(4, "little")]
        backend.launch(memory.module(kernel()), "consan_sums", (ctas, 1, 1), (_THREADS, 1, 1), arguments)
    found = np.frombuffer((backend.peek if background else backend.read)(out, size), "<u8").reshape(ctas, _SUMS).T
    memory.give("sums", out)
    return Sums(np.ascontiguousarray(found[:2]), found[2] == 0)


def names_of(sums: Sums, clusters: npt.NDArray[np.int64]) -> Iterator[bytes]:
    """The names of clusters. `clusters`: the CTAs of each."""
    names = np.ascontiguousarray(sums.values.T)
    if clusters.shape[1] == 1:
        return (names[cta].tobytes() for cta in clusters[:, 0].tolist())
    return (hashlib.blake2b(names[members].tobytes(), digest_size=NAME_BYTES).digest() for members in clusters)


def joined(name: bytes, shared: bytes) -> bytes:
    """A name that also depends on what the CTAs of a launch share."""
    return hashlib.blake2b(name + shared, digest_size=NAME_BYTES).digest() if shared else name


def _avalanche(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A bijection in which every bit depends on every bit (the finaliser of SplitMix64)."""
    for shift, factor in _SPLITMIX:
        values = values ^ (values >> np.uint64(shift))
        values = values * np.uint64(factor) if factor else values
    return np.asarray(values)


def _avalanched(register: str) -> str:
    """The same in PTX."""
    steps = []
    for shift, factor in _SPLITMIX:
        steps += [f"shr.u64 %x, {register}, {shift};", f"xor.b64 {register}, {register}, %x;"]
        steps += [f"mul.lo.u64 {register}, {register}, {factor};"] if factor else []
    return " ".join(steps)


def mixed(total: str, one: str, other: str, mix: int) -> str:
    """PTX that adds the mix of two hashes to a sum. `%n`: the number of their thread, from one."""
    first = f"mad.lo.u64 %m, %n, {mix}, {one}; {_avalanched('%m')}"
    return f"{first}\nxor.b64 %m, %m, {other}; {_avalanched('%m')}\nadd.u64 {total}, {total}, %m;"


# PTX that adds the hashes of one thread, at address `%x`, to the sums `%s0` and `%s1`, and counts it in `%s2` if it has not ended.
ADD_HASHES = f"""ld.global.v2.u64 {{%one, %other}}, [%x];
setp.eq.u64 %p, %one, 0; setp.eq.or.u64 %q, %other, 0, %p;
@%q add.u64 %s2, %s2, 1;
{mixed("%s0", "%one", "%other", MIX[0])}
{mixed("%s1", "%other", "%one", MIX[1])}"""


@functools.cache
def kernel() -> str:
    """A CTA for each CTA of the launch; a thread for every so many of its threads."""
    return f""".version 7.8
.target sm_70
.address_size 64
.visible .entry consan_sums(.param .u64 hashes, .param .u64 out, .param .u32 threads) {{
.reg .b64 %a, %o, %i, %n, %m, %x, %one, %other, %s<3>;
.reg .b32 %t, %step, %count, %cta;
.reg .pred %p, %q;
ld.param.u64 %a, [hashes]; ld.param.u64 %o, [out]; ld.param.u32 %count, [threads];
mov.u32 %t, %tid.x; mov.u32 %step, %ntid.x; mov.u32 %cta, %ctaid.x;
mov.b64 %s0, 0; mov.b64 %s1, 0; mov.b64 %s2, 0;
again:
setp.ge.u32 %p, %t, %count;
@%p bra done;
mul.wide.u32 %i, %cta, %count; cvt.u64.u32 %n, %t; add.u64 %i, %i, %n; shl.b64 %i, %i, 4;
add.u64 %x, %a, %i; add.u64 %n, %n, 1;
{ADD_HASHES}
add.u32 %t, %t, %step;
bra again;
done:
mul.wide.u32 %i, %cta, {_SUMS * _HASH_BYTES}; add.u64 %o, %o, %i;
red.global.add.u64 [%o], %s0; red.global.add.u64 [%o+8], %s1; red.global.add.u64 [%o+16], %s2;
ret;
}}
"""
