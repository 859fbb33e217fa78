"""Warp: points find their neighbours in a hash grid, and the sums of the cells are taken; several points add to a cell at the same time."""

import sys

import numpy as np
import warp as wp

RACY = "racy" in sys.argv
COUNT, RADIUS = 64, 0.3


@wp.kernel
def near(grid: wp.uint64, points: wp.array(dtype=wp.vec3), cells: wp.array(dtype=float)):
    thread = wp.tid()
    place = points[thread]
    for other in wp.hash_grid_query(grid, place, RADIUS):
        if wp.length(points[other] - place) <= RADIUS:
            if wp.static(RACY):
                cells[other % 4] = cells[other % 4] + 1.0  # reader
            else:
                wp.atomic_add(cells, other % 4, 1.0)


given = np.random.default_rng(0).random((COUNT, 3), dtype=np.float32)
points, cells = wp.array(given, dtype=wp.vec3, device="cuda"), wp.zeros(4, dtype=float, device="cuda")
grid = wp.HashGrid(4, 4, 4, device="cuda")
grid.build(points, RADIUS)
wp.launch(near, dim=COUNT, inputs=[grid.id, points, cells], device="cuda")
pairs = (np.linalg.norm(given[:, None] - given, axis=2) <= RADIUS).sum()
assert RACY or wp.utils.array_sum(cells) == pairs
keys, values = (wp.array(np.r_[3, 1, 2, 0, 0, 0].astype(np.int32), device="cuda") for _ in range(2))
wp.utils.radix_sort_pairs(keys, values, 3)
assert list(keys.numpy()[:3]) == list(values.numpy()[:3]) == [1, 2, 3]
rows = wp.zeros((4, 4), dtype=float, device="cuda")
rows[:, 1].fill_(2.0)
assert rows.numpy().sum() == 8
