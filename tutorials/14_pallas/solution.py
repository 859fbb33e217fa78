"""Doubles a matrix in Pallas (Mosaic GPU), tile by tile."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

ROWS, COLUMNS, STEPS = 64, 128, 4


def scale(source, out, tile, result, full):
    for step in range(STEPS):
        rows = pl.ds(step * ROWS, ROWS)
        plgpu.copy_gmem_to_smem(source.at[rows], tile, full)
        plgpu.barrier_wait(full)
        plgpu.wait_smem_to_gmem(0, wait_read_only=True)
        result[...] = tile[...] * 2
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(result, out.at[rows])
    plgpu.wait_smem_to_gmem(0)


TILE = plgpu.SMEM((ROWS, COLUMNS), jnp.float32)
doubled = plgpu.kernel(
    scale,
    out_type=jax.ShapeDtypeStruct((STEPS * ROWS, COLUMNS), jnp.float32),
    scratch_types=[TILE, TILE, plgpu.Barrier()],
    compiler_params=plgpu.CompilerParams(),
)
x = jnp.arange(STEPS * ROWS * COLUMNS, dtype=jnp.float32).reshape(-1, COLUMNS)
y = np.asarray(jax.jit(doubled)(x))
print(f"{(y != 2 * np.asarray(x)).sum()} of {y.size} numbers are wrong")
