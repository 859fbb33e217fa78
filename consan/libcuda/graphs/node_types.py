"""The types of nodes that one call adds (cuGraphAddNode), by their numbers, and where each has its parameters.

The work of a node is registered by the call that adds nodes of that type alone (graph_calls.py). The driver and the runtime have their own
where they describe the node differently.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import field
from typing import Any, Final

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed
from consan.libcuda.driver import StandInDriver, StreamWork

NodeWork = Callable[..., StreamWork]
_UNION: Final = 16  # in CUgraphNodeParams and cudaGraphNodeParams: where the parameters of a type begin
_TYPE: Final = struct.Struct("<i")


@dataclass(eq=False)
class NodeType:
    """A type. `at`: where its parameters begin. `by_value`: a handle or an address, not what is at one.

    `works`: what gives the work for a node, of the driver (False) and of the runtime (True).
    """

    at: int = _UNION
    by_value: bool = False
    works: dict[bool, NodeWork] = field(default_factory=dict)


KERNEL, MEMSET, HOST, ALLOCATION, CONDITIONAL, EMPTY = (NodeType() for _ in range(6))
MEMCPY: Final = NodeType(_UNION + 16)  # behind flags and a context
CHILD, WAIT, RECORD, FREE = (NodeType(by_value=True) for _ in range(4))
_TYPES: Final = (KERNEL, MEMCPY, MEMSET, HOST, CHILD, EMPTY, WAIT, RECORD, None, None, ALLOCATION, FREE, None, CONDITIONAL)


def described(driver: StandInDriver, params: int, *, runtime: bool) -> Any:
    """The work that the parameters of a node at an address describe. Raises CallFailed."""
    (number,) = _TYPE.unpack(driver.memory.read(params, _TYPE.size))
    found = _TYPES[number] if 0 <= number < len(_TYPES) else None
    work_of = None if found is None else found.works.get(runtime, found.works.get(False))
    if found is None or work_of is None:
        raise CallFailed(calls.NOT_SUPPORTED, f"consan's stand-in driver does not serve nodes of type {number}")
    place = params + found.at
    return work_of(driver, int.from_bytes(driver.memory.read(place, 8), "little") if found.by_value else place)
