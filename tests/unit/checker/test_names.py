"""The names of histories: the kernel that computes their sums does what the host does, and a name tells every change of a hash."""

from __future__ import annotations

import numpy as np
import pytest

from consan.backends.virtual import VirtualBackend
from consan.checker.logs.memory import LogMemory
from consan.checker.logs.names import Sums, kernel, names_of, sums_of, sums_on_device
from consan.toolchain.assemble import assemble_cached


def _hashes(ctas: int, threads: int) -> np.ndarray:
    return np.random.default_rng(1).integers(1, 1 << 64, (2, ctas, threads), np.uint64)


@pytest.mark.parametrize("threads", [1, 31, 128, 300])
def test_the_kernel_computes_the_same_sums(threads: int) -> None:
    hashes = _hashes(5, threads)
    hashes[0, 1, 0] = hashes[1, 3, -1] = 0  # threads that have not exited
    backend = VirtualBackend()
    place = backend.alloc(hashes.nbytes)
    backend.write(place, np.ascontiguousarray(hashes.transpose(1, 2, 0)))
    found, expected = sums_on_device(LogMemory(backend), place, 5, threads), sums_of(hashes)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.ended, expected.ended)
    assert expected.ended.tolist() == [True, False, True, False, True]


def _name(hashes: np.ndarray) -> bytes:
    (name,) = names_of(sums_of(hashes), np.array([[0]]))
    return name


def test_a_name_tells_which_thread_has_which_hash() -> None:
    hashes = _hashes(1, 64)
    names = {_name(hashes), _name(hashes[::-1]), _name(hashes[:, :, ::-1])}
    for kind in range(2):
        changed = hashes.copy()
        changed[kind, 0, 5] ^= np.uint64(1 << 63)
        names.add(_name(changed))
    swapped = hashes.copy()
    swapped[:, 0, [3, 4]] = swapped[:, 0, [4, 3]]
    names.add(_name(swapped))
    assert len(names) == 6


def test_a_cluster_is_named_by_the_order_of_its_ctas() -> None:
    sums = Sums(np.arange(8, dtype=np.uint64).reshape(2, 4), np.ones(4, np.bool_))
    units = np.array([[0, 1], [1, 0], [2, 3]])
    assert len(set(names_of(sums, units))) == 3


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_the_kernel_assembles(arch: str) -> None:
    assert assemble_cached(kernel(), arch).cubin
