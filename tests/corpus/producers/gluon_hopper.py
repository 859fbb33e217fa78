"""Gluon kernels for Hopper, warp-specialised and not: `python gluon_hopper.py NAME ARCH` prints PTX.

Runs in any interpreter that has Triton 3.6; imports nothing of consan. First line and arguments as in `triton_hopper.py`.
"""

# ruff: noqa: N803, N806 - names are those of Triton's tutorials, which users will recognise in reports

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
from triton_hopper import integers, notes


@gluon.jit
def load_tiles(a_desc, b_desc, a_tiles, b_tiles, full, empty, row, column, steps, STAGES: gl.constexpr):
    """The producer: one warp that keeps a ring of stages full."""
    bytes_a_stage: gl.constexpr = a_desc.block_type.nbytes + b_desc.block_type.nbytes
    for k in range(steps):
        stage = k % STAGES
        mbarrier.wait(empty.index(stage), (k // STAGES + 1) & 1)  # the first round passes at once
        mbarrier.expect(full.index(stage), bytes_a_stage)
        at = k * a_desc.block_type.shape[1]
        tma.async_copy_global_to_shared(a_desc, [row, at], full.index(stage), a_tiles.index(stage))
        tma.async_copy_global_to_shared(b_desc, [column, at], full.index(stage), b_tiles.index(stage))


@gluon.jit
def multiply_tiles(c_desc, a_tiles, b_tiles, c_tile, full, empty, row, column, steps, STAGES: gl.constexpr, WARPS: gl.constexpr):
    """The consumers: products of one stage after the other, each stage handed back once its product is done."""
    BLOCK_M: gl.constexpr = c_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    accumulator = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
    for k in range(steps):
        stage = k % STAGES
        mbarrier.wait(full.index(stage), k // STAGES & 1)
        running = warpgroup_mma(a_tiles.index(stage), b_tiles.index(stage).permute((1, 0)), accumulator, is_async=True)
        accumulator = warpgroup_mma_wait(0, deps=(running,))
        mbarrier.arrive(empty.index(stage), count=1)
    c_tile.store(accumulator.to(gl.float16))
    fence_async_shared()
    tma.async_copy_shared_to_global(c_desc, [row, column], c_tile)
    tma.store_wait(0)


@gluon.jit
def matmul_specialised(a_desc, b_desc, c_desc, M, N, K, STAGES: gl.constexpr, WARPS: gl.constexpr):
    row = gl.program_id(0) * c_desc.block_type.shape[0]
    column = gl.program_id(1) * c_desc.block_type.shape[1]
    steps = gl.cdiv(K, a_desc.block_type.shape[1])
    a_tiles = gl.allocate_shared_memory(gl.float16, [STAGES] + a_desc.block_type.shape, a_desc.layout)
    b_tiles = gl.allocate_shared_memory(gl.float16, [STAGES] + b_desc.block_type.shape, b_desc.layout)
    c_tile = gl.allocate_shared_memory(gl.float16, c_desc.block_type.shape, c_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (multiply_tiles, (c_desc, a_tiles, b_tiles, c_tile, full, empty, row, column, steps, STAGES, WARPS)),
            (load_tiles, (a_desc, b_desc, a_tiles, b_tiles, full, empty, row, column, steps, STAGES)),
        ],
        worker_num_warps=[1],
        worker_num_regs=[24],
    )
    for stage in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(stage))
        mbarrier.invalidate(empty.index(stage))


@gluon.jit
def start_loads(a_desc, b_desc, a_tiles, b_tiles, full, row, column, k, steps, STAGES: gl.constexpr):
    stage = k % STAGES
    inside = k < steps
    at = k * a_desc.block_type.shape[1]
    mbarrier.expect(full.index(stage), a_desc.block_type.nbytes + b_desc.block_type.nbytes, pred=inside)
    tma.async_copy_global_to_shared(a_desc, [row, at], full.index(stage), a_tiles.index(stage), pred=inside)
    tma.async_copy_global_to_shared(b_desc, [column, at], full.index(stage), b_tiles.index(stage), pred=inside)


@gluon.jit
def matmul_pipelined(a_desc, b_desc, c_desc, M, N, K, STAGES: gl.constexpr, WARPS: gl.constexpr):
    """No specialised warps: loads run STAGES - 1 steps ahead, and one product is always in flight."""
    row = gl.program_id(0) * c_desc.block_type.shape[0]
    column = gl.program_id(1) * c_desc.block_type.shape[1]
    steps = gl.cdiv(K, a_desc.block_type.shape[1])
    a_tiles = gl.allocate_shared_memory(gl.float16, [STAGES] + a_desc.block_type.shape, a_desc.layout)
    b_tiles = gl.allocate_shared_memory(gl.float16, [STAGES] + b_desc.block_type.shape, b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
    fence_async_shared()
    for ahead in gl.static_range(STAGES - 1):
        start_loads(a_desc, b_desc, a_tiles, b_tiles, full, row, column, ahead, steps, STAGES)
    BLOCK_M: gl.constexpr = c_desc.block_type.shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    running = warpgroup_mma_init(gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout))
    for k in range(steps):
        here = k % STAGES
        mbarrier.wait(full.index(here), k // STAGES & 1)
        before = warpgroup_mma_wait(0, deps=(running,))
        running = warpgroup_mma(a_tiles.index(here), b_tiles.index(here).permute((1, 0)), before, is_async=True)
        gl.thread_barrier()  # each warp waited for its own part of the product only, and one thread refills for all
        start_loads(a_desc, b_desc, a_tiles, b_tiles, full, row, column, k + STAGES - 1, steps, STAGES)
    accumulator = warpgroup_mma_wait(0, deps=(running,))
    for stage in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(stage))
    c_tile = gl.allocate_shared_memory(gl.float16, c_desc.block_type.shape, c_desc.layout)
    c_tile.store(accumulator.to(gl.float16))
    fence_async_shared()
    tma.async_copy_shared_to_global(c_desc, [row, column], c_tile)
    tma.store_wait(0)


@gluon.jit
def scale_stages(out_desc, tiles, full, empty, first, steps, factor, STAGES: gl.constexpr, LAYOUT: gl.constexpr):
    for k in range(steps):
        stage = k % STAGES
        mbarrier.wait(full.index(stage), k // STAGES & 1)
        values = tiles.index(stage).load(LAYOUT)
        tiles.index(stage).store(values * factor)
        fence_async_shared()
        tma.async_copy_shared_to_global(out_desc, [first + k * out_desc.block_type.shape[0], 0], tiles.index(stage))
        tma.store_wait(0)
        mbarrier.arrive(empty.index(stage), count=1)


@gluon.jit
def load_stages(in_desc, tiles, full, empty, first, steps, STAGES: gl.constexpr):
    for k in range(steps):
        stage = k % STAGES
        mbarrier.wait(empty.index(stage), (k // STAGES + 1) & 1)
        mbarrier.expect(full.index(stage), in_desc.block_type.nbytes)
        at = first + k * in_desc.block_type.shape[0]
        tma.async_copy_global_to_shared(in_desc, [at, 0], full.index(stage), tiles.index(stage))


@gluon.jit
def scale_in_place(in_desc, out_desc, steps, factor, STAGES: gl.constexpr, LAYOUT: gl.constexpr):
    """Tiles come in by TMA, are scaled where they lie, and go out by TMA from there."""
    first = gl.program_id(0) * steps * in_desc.block_type.shape[0]
    tiles = gl.allocate_shared_memory(gl.float32, [STAGES] + in_desc.block_type.shape, in_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (scale_stages, (out_desc, tiles, full, empty, first, steps, factor, STAGES, LAYOUT)),
            (load_stages, (in_desc, tiles, full, empty, first, steps, STAGES)),
        ],
        worker_num_warps=[1],
        worker_num_regs=[24],
    )


def descriptor(kind, dtype, *box):
    layout = gl.NVMMASharedLayout.get_default_for(list(box), dtype)
    return f"tensordesc<{kind}[{', '.join(map(str, box))}],{layout!r}>"


def matmul(function, m, n, k, stages, warps):
    boxes = {"a_desc": (m, k), "b_desc": (n, k), "c_desc": (m, n)}
    signature = {name: descriptor("fp16", gl.float16, *box) for name, box in boxes.items()}
    constants = {"STAGES": stages, "WARPS": warps}
    tile = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    return function, {**signature, **integers("M", "N", "K")}, constants, {"num_warps": warps}, tile


def scale(stages):
    box, layout = descriptor("fp32", gl.float32, 32, 32), gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    signature = {"in_desc": box, "out_desc": box, "steps": "i32", "factor": "fp32"}
    return scale_in_place, signature, {"STAGES": stages, "LAYOUT": layout}, {"num_warps": 4}, {"ROWS": 32, "COLUMNS": 32}


# name -> (function, signature, constants, options, what else a launch wants to know)
KERNELS = {
    "matmul_specialised": matmul(matmul_specialised, 64, 64, 64, stages=3, warps=4),
    "matmul_specialised_8_warps": matmul(matmul_specialised, 128, 128, 64, stages=4, warps=8),
    "matmul_pipelined": matmul(matmul_pipelined, 64, 128, 64, stages=4, warps=4),
    "scale_in_place": scale(stages=3),
}


def compile_ptx(name, arch):
    function, signature, constants, options, more = KERNELS[name]
    order = function.arg_names
    full = {name: signature.get(name, "constexpr") for name in order}
    source = GluonASTSource(fn=function, signature=full, constexprs={(order.index(k),): v for k, v in constants.items()})
    compiled = triton.compile(source, target=GPUTarget("cuda", int(arch.removeprefix("sm_").rstrip("af")), 32), options=options)
    plain = {key: value for key, value in constants.items() if isinstance(value, int)}
    return notes(compiled.metadata, {**plain, **more}, options) + compiled.asm["ptx"]


if __name__ == "__main__":
    sys.stdout.write(compile_ptx(sys.argv[1], sys.argv[2]))
