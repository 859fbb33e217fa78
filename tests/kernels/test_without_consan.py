"""The repaired twins and the legal patterns compute the right thing by themselves, with nothing instrumented.

Otherwise a wrong kernel could pass for a clean one. Runs on the bare virtual machine: in a schedule that test_twins.py has not, and more.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from sampled import one_in

from consan.backends.cpu import LoadedModule, Machine
from consan.tensormap.description import ALIGNMENT
from consan.tensormap.encoding import encode

HERE = Path(__file__).parent
RESERVED = ("multi_warp_tile",)  # the bare machine has no memory that is reserved for cooperative groups
FILES = sorted(path for folder in ("twins", "clean") for path in (HERE / folder).glob("*.cu") if path.stem not in RESERVED)


@functools.lru_cache(1)  # the seeds of a file come one after the other
def _loaded(path: Path) -> tuple[Machine, LoadedModule]:
    machine = Machine()
    return machine, machine.load(twin_file.kernel(path, racy=False).ptx)


def _pack(machine: Machine, spec: twin_file.KernelFile, args: dict[str, Any]) -> tuple[bytes, dict[str, int]]:
    """The parameter block, each parameter at its natural alignment, and the addresses of the buffers."""
    block, addresses = b"", {}
    for name, value in args.items():
        data, alignment = value.tobytes(), min(value.nbytes, ALIGNMENT)
        if value.ndim:
            addresses[name] = machine.alloc(value.nbytes)
            machine.write(addresses[name], data)
            data, alignment = addresses[name].to_bytes(8, "little"), 8
        if name in spec.structs:
            data += spec.parameter(name, value).rest
        if name in spec.maps:
            data, alignment = encode(spec.map_of(name, value).at(addresses[name])), ALIGNMENT
        block += bytes(-len(block) % alignment) + data
    return block, addresses


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
@pytest.mark.parametrize("path", one_in(8, FILES, lambda path: path.stem))
def test_result_is_right(path: Path, seed: int) -> None:
    spec = twin_file.read(path)
    machine, module = _loaded(path)
    machine.renew()
    args = spec.fresh_args()
    block, addresses = _pack(machine, spec, args)
    stats = machine.launch(module, "kernel", spec.grid, spec.block, block, shared=spec.smem, seed=seed)
    assert not stats.faults
    for name in spec.results:
        found = np.frombuffer(machine.read(addresses[name], args[name].nbytes), args[name].dtype)
        expected = spec.reference(name)
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)
