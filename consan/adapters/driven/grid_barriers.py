"""The barrier of the grid that CUDA's device runtime has as machine code, as PTX for the virtual machine (`grid.sync()` of Numba).

A CTA that comes to it adds 1 to a counter, the first CTA what is missing to 2^31: the highest bit changes when all have come, and the
lower ones are 0 again. Threads of a CTA meet before and after; one of them releases and acquires for all.
"""

from __future__ import annotations

import re
from typing import Final

_DECLARED: Final = r"\.extern\s+\.func[^;]*?\b{name}\b[^;]*;"
_DEFINED: Final = {
    "cudaCGGetIntrinsicHandle": """
.func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b64 %kept;
    ld.param.u32 %kept, [scope];
    st.param.b64 [handle], %kept;
    ret;
}
""",
    "cudaCGSynchronize": """
.global .align 4 .u32 consan_grid_barrier;
.func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %other, %first, %waits;
    .reg .b32 %x, %y, %z, %all, %own, %before, %now;
    bar.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %own, %x, %y;
    or.b32 %own, %own, %z;
    setp.ne.u32 %other, %own, 0;
    @%other bra over;
    mov.u32 %x, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %all, %x, %y;
    mul.lo.u32 %all, %all, %z;
    sub.u32 %all, 0x80000001, %all;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    or.b32 %own, %x, %y;
    or.b32 %own, %own, %z;
    setp.eq.u32 %first, %own, 0;
    selp.u32 %own, %all, 1, %first;
    atom.acq_rel.gpu.global.add.u32 %before, [consan_grid_barrier], %own;
poll:
    ld.acquire.gpu.global.u32 %now, [consan_grid_barrier];
    xor.b32 %now, %now, %before;
    setp.ge.s32 %waits, %now, 0;
    @%waits bra poll;
over:
    bar.sync 0;
    st.param.b32 [error], 0;
    ret;
}
""",
}


def with_grid_barriers(ptx: str) -> str:
    """PTX in which declarations of the device runtime's functions for grids are their definitions."""
    for name, text in _DEFINED.items():
        ptx = re.sub(_DECLARED.format(name=name), lambda _, text=text: text, ptx, count=1)  # type: ignore[misc]
    return ptx
