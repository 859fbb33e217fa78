"""Twice a matrix in Pallas, by way of Triton, and its sum by a kernel of XLA, which a function of the host sees.

With `racy`, all programs write the same rows.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

RACY = "racy" in sys.argv
ROWS, COLUMNS, STEP = 32, 64, 16


def scale(source, out):
    step = pl.program_id(0)
    tile = source[pl.ds(step * STEP, STEP), :]
    rows = pl.ds(0 if RACY else step * STEP, STEP)
    out[rows, :] = tile * 2  # reader


doubled = pl.pallas_call(
    scale,
    grid=(ROWS // STEP,),
    out_shape=jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32),
    compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=1),
)
x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
seen = []


@jax.jit
def work(each):
    total = each.sum()
    jax.debug.callback(lambda value: seen.append(float(value)), total)
    return doubled(each), total


y, total = work(x)
jax.effects_barrier()
assert RACY or (np.asarray(y) == 2 * x).all()
assert seen == [float(total)] == [x.sum()]
