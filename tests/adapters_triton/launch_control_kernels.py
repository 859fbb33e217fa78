"""A Gluon kernel with cluster launch control, for Triton 3.9 or later. Triton reads its source, so it stands in a file of its own."""

# ruff: noqa: N803 - names as in Triton's tutorials

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import clc, fence_async_shared, mbarrier


@gluon.jit
def visits(out_ptr, ran_ptr, BLOCK: gl.constexpr):
    """Adds to each tile its number and one; whoever has started takes the tiles of programs that have not."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    response = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    at = gl.arange(0, BLOCK, layout)
    gl.atomic_add(ran_ptr, 1)
    tile = gl.program_id(0)
    phase = 0
    more = True
    while more:
        mbarrier.expect(ready, 16)
        clc.try_cancel(response, ready)
        gl.store(out_ptr + tile * BLOCK + at, gl.load(out_ptr + tile * BLOCK + at) + tile + 1)
        mbarrier.wait(ready, phase)
        answer = clc.load_result(response)
        more = answer.is_canceled()
        tile = answer.program_id(0)
        fence_async_shared()
        phase ^= 1
    mbarrier.invalidate(ready)
