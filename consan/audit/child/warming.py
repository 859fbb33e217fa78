"""Makes one small launch, so that the processes of files find all imported, and all tables and libraries made."""

from __future__ import annotations

from typing import Final

from consan.session.modules.device import Device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.suppressions import finish
from consan.toolchain import nvrtc
from consan.toolchain.cache import CACHE

_KERNEL: Final = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry warm(.param .u64 out)
{
    .shared .align 4 .b8 tile[128];
    .reg .u32 %r<5>;
    .reg .u64 %rd<5>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    ld.shared.u32 %r4, [%r3];
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r4;
    ret;
}
"""
_THREADS: Final = 32


def warm(device: Device) -> None:
    """Launch a kernel, and load the compiler."""
    nvrtc.version()
    CACHE.measure()
    session = Session(SessionOptions(device="cpu"), on=device)
    address = device.backend.alloc(4 * _THREADS)
    prepared = session.prepare(_KERNEL, name="warm.ptx")
    with session.turn():
        session.launch(prepared, "warm", (2, 1, 1), (_THREADS, 1, 1), [address.to_bytes(8, "little")])
        finish(session.report())
    device.backend.free(address)
