"""Sums the rows of a matrix in a Gluon kernel that copies ahead, and compares with NumPy."""

import numpy as np
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

start_copy = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared  # renamed in Triton 3.9
ROWS, COLUMNS, BLOCK = 6, 256, 128


@gluon.jit
def sum_rows(x, out, rows, columns, BLOCK: gl.constexpr, STAGES: gl.constexpr):  # noqa: N803 - names as in Triton's tutorials
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    ring = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK], flat)
    for row in gl.static_range(STAGES - 1):
        start_copy(ring.index(row), x + row * columns + at)
        async_copy.commit_group()
    total = gl.zeros([BLOCK], gl.float32, layout)
    for row in range(rows):
        async_copy.wait_group(STAGES - 2)  # all but the newest copy: this row is there
        total += ring.index(row % STAGES).load(layout)
        ahead = row + STAGES - 1
        if ahead < rows:
            start_copy(ring.index(ahead % STAGES), x + ahead * columns + at)
            async_copy.commit_group()
    gl.store(out + at, total)


def on_device(array):
    """A torch tensor where torch is there; on consan's virtual machine the NumPy array itself will do."""
    try:
        import torch
    except ImportError:
        return array
    return torch.from_numpy(array).to(triton.runtime.driver.active.get_active_torch_device())


x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) % 31
out = on_device(np.zeros(COLUMNS, np.float32))
sum_rows[(COLUMNS // BLOCK,)](on_device(x), out, ROWS, COLUMNS, BLOCK=BLOCK, STAGES=3)

found = out if isinstance(out, np.ndarray) else out.cpu().numpy()
print(f"{int((found != x.sum(0)).sum())} of {COLUMNS} numbers are wrong")
