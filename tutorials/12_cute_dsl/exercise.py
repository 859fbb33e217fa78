"""Sums each column of a matrix in a CuTe DSL kernel whose tiles come by TMA into a ring, and compares with NumPy."""

import cutlass
import cutlass.cute as cute
import numpy as np
from cuda.bindings import driver
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import make_ptr

TILES, STAGES, EDGE = 4, 2, 64
BYTES = EDGE * EDGE * 2


@cute.jit
def load(atom: cute.CopyAtom, source: cute.Tensor, ring: cute.Tensor, full: cute.Pointer, tile: cutlass.Constexpr):
    """One warp asks for a tile. The barrier of its stage counts the bytes."""
    stage = tile % STAGES
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive_and_expect_tx(full + stage, BYTES)
    cute.copy(atom, source[None, tile], ring[None, stage], tma_bar_ptr=full + stage)


@cute.kernel
def sum_columns(atom: cute.CopyAtom, matrix: cute.Tensor, layout: cute.ComposedLayout, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    shared = cutlass.memory.SmemAllocator()
    full = shared.allocate_array(cutlass.Int64, STAGES)
    ring = shared.allocate_tensor(cutlass.Float16, layout.outer, 1024, swizzle=layout.inner)
    if thread == 0:
        for stage in cutlass.range_constexpr(STAGES):
            cute.arch.mbarrier_init(full + stage, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    boxes = cute.local_tile(matrix, (EDGE, EDGE), (None, 0))
    to, source = cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(ring, 0, 2), cute.group_modes(boxes, 0, 2))
    if thread < 32:
        for tile in cutlass.range_constexpr(STAGES):
            load(atom, source, to, full, tile)
    total = cutlass.Float32(0)
    for tile in cutlass.range_constexpr(TILES):
        phase = tile % STAGES
        cute.arch.mbarrier_wait(full + tile % STAGES, phase)
        for row in cutlass.range_constexpr(EDGE):
            total += ring[row, thread, tile % STAGES].to(cutlass.Float32)
        cute.arch.sync_threads()  # all have read the stage
        if cutlass.const_expr(tile + STAGES < TILES):  # noqa: SIM102 - the compiler decides this one, a thread the next
            if thread < 32:
                load(atom, source, to, full, tile + STAGES)
    out[thread] = total


@cute.jit
def launch(p: cute.Pointer, q: cute.Pointer):
    matrix = cute.make_tensor(p, cute.make_layout((TILES * EDGE, EDGE), stride=(EDGE, 1)))
    kind = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cutlass.Float16)
    layout = cute.tile_to_shape(kind, (EDGE, EDGE, STAGES), (0, 1, 2))
    one = cute.slice_(layout, (None, None, 0))
    atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), matrix, one, (EDGE, EDGE))
    sum_columns(atom, tensor, layout, cute.make_tensor(q, cute.make_layout(EDGE))).launch(grid=(1, 1, 1), block=(EDGE, 1, 1))


def ok(answer):
    """The results of a call of the driver."""
    assert int(answer[0]) == 0, answer
    return answer[1] if len(answer) == 2 else answer[1:]


ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
x = (np.arange(TILES * EDGE * EDGE) % 7).astype(np.float16).reshape(TILES * EDGE, EDGE)
found = np.zeros(EDGE, np.float32)
given, out = ok(driver.cuMemAlloc(x.nbytes)), ok(driver.cuMemAlloc(found.nbytes))
ok(driver.cuMemcpyHtoD(given, x.ctypes.data, x.nbytes))
types = (cutlass.Float16, given), (cutlass.Float32, out)
launch(*(make_ptr(kind, int(place), cute.AddressSpace.gmem, assumed_align=128) for kind, place in types))
ok(driver.cuMemcpyDtoH(found.ctypes.data, out, found.nbytes))
print(f"{int((found != x.astype(np.float32).sum(0)).sum())} of {EDGE} numbers are wrong")
