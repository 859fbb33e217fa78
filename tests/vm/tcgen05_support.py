"""Kernels with tensor memory for the tests of the virtual machine: shared memory from `in`, an allocation, a body, columns to `out`.

Every kernel is assembled by ptxas for sm_100a where it is installed.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from typing import Any

import numpy as np
from engine_support import Device

from consan.backends.cpu import LaunchStats

Array = np.ndarray[Any, Any]
HEADER = ".version 9.0\n.target sm_100a\n.address_size 64\n"
SHARED = 160 << 10
BASE = 2048  # address of `smem`: a KiB that the system keeps, and one that holds the two small variables
PTXAS = shutil.which("ptxas")
REGISTERS = """
.reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %r<80>; .reg .b64 %rd<40>; .reg .b32 %d<260>;
.reg .b32 %thread, %t, %smem, %bar, %rank; .reg .pred %first, %warp0, %keep;
mov.u32 %thread, %tid.x; setp.eq.u32 %first, %thread, 0; setp.lt.u32 %warp0, %thread, 32; mov.u32 %smem, smem; mov.u32 %bar, bar;
mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %keep, 0, 1;
ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in]; ld.param.u32 %r1, [nbytes];
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
mul.wide.u32 %rd2, %r2, %r1; add.u64 %rd1, %rd1, %rd2; shl.b32 %r4, %thread, 4; shl.b32 %r5, %r3, 4;
FILL: setp.ge.u32 %p0, %r4, %r1; @%p0 bra FILLED;
cvt.u64.u32 %rd2, %r4; add.u64 %rd2, %rd1, %rd2; add.u32 %r6, %smem, %r4;
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd2]; st.shared.v4.u32 [%r6], {%r10, %r11, %r12, %r13};
add.u32 %r4, %r4, %r5; bra FILL; FILLED: fence.proxy.async.shared::cta;
"""
INIT = "@%first mbarrier.init.shared::cta.b64 [%bar], 1; @%first fence.mbarrier_init.release.cluster;"
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


@functools.cache
def assembled(ptx: str, target: str = "sm_100a") -> str:
    """The text, if ptxas takes it."""
    if PTXAS is not None:
        done = subprocess.run([PTXAS, f"-arch={target}", "-o", "/dev/null", "-"], input=ptx, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return ptx


def alloc(columns: int, group: int = 1) -> str:
    """%t: the allocation, in every thread. With a group of 2, both CTAs of the pair are known to run."""
    ready = f"{INIT}{SYNC}" if group == 2 else f"{INIT}bar.sync 0;"
    return f"""{ready}
@%warp0 tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [tmem], {columns};
@%warp0 tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
bar.sync 0; ld.shared.b32 %t, [tmem];
"""


def dealloc(columns: int, group: int = 1) -> str:
    """Give the allocation back."""
    over = SYNC if group == 2 else "bar.sync 0;"
    return f"{over} @%warp0 tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %t, {columns};"


def commit_and_wait(phase: int = 0, group: int = 1) -> str:
    """The first thread commits; all threads wait."""
    return f"""@%first tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [%bar];
{wait(phase)}"""


def wait(phase: int) -> str:
    """All threads wait for a phase of the barrier."""
    return f"""WAIT{phase}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%bar], {phase}; @!%p1 bra WAIT{phase};
tcgen05.fence::after_thread_sync;
"""


def save(columns: int, start: int = 0) -> str:
    """Tensor memory, `columns` from `start` on, to out [CTA, 128 lanes, columns]; by four warps."""
    names = ", ".join(f"%d{i}" for i in range(columns))
    stores = "".join(f"st.global.b32 [%rd5+{4 * i}], %d{i};" for i in range(columns))
    return f"""add.u32 %r20, %t, {start}; tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{names}}}, [%r20];
tcgen05.wait::ld.sync.aligned;
shl.b32 %r21, %r2, 7; add.u32 %r21, %r21, %thread; mul.wide.u32 %rd5, %r21, {4 * columns}; add.u64 %rd5, %rd0, %rd5; {stores}
"""


def kernel(body: str) -> str:
    """The module."""
    return f"""{HEADER}.shared .align 8 .b64 bar; .shared .align 4 .b32 tmem; .shared .align 1024 .b8 smem[{SHARED}];
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 nbytes)
{{ {REGISTERS}{body}
ret; }}
"""


def start(
    body: str, image: Array, words: int, *, grid: int = 1, cluster: int = 1, threads: int = 128, seed: int = 0, target: str = "sm_100a"
) -> tuple[LaunchStats, Array]:
    """Launch; `image` holds the shared memory of each CTA, one after the other."""
    device = Device(assembled(kernel(body).replace("sm_100a", target), target))
    raw = np.ascontiguousarray(image).reshape(-1).view(np.uint8)
    out = device.buffer(np.zeros(words, np.uint32))
    stats = device.launch("k", grid, threads, out, device.buffer(raw), len(raw) // grid, seed=seed, cluster=(cluster, 1, 1))
    return stats, device.machine.view(out, np.uint32, words).copy()


def run(body: str, image: Array, words: int, **more: Any) -> Array:
    """The words that a kernel leaves; it must run to its end."""
    stats, found = start(body, image, words, **more)
    assert stats.completed, stats
    return found
