"""Nodes of graphs that allocate and free memory (cuGraphAddMemAllocNode). The memory is the graph's as long as it lives."""

from __future__ import annotations

import struct
from typing import Final

from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.graphs import graph_calls
from consan.libcuda.graphs.node_types import ALLOCATION, FREE
from consan.libcuda.memory.allocation_calls import ordering

_NBYTES: Final = 104  # in CUDA_MEM_ALLOC_NODE_PARAMS: the size, and behind it the address


def _allocation_node(driver: StandInDriver, place: int) -> StreamWork:
    """Memory that is the graph's: the address is known when the node is made, and what uses it comes behind the node."""
    nbytes = int.from_bytes(driver.memory.read(place + _NBYTES, 8), "little")
    address = driver.allocate(nbytes)
    driver.special.of_graphs.add(address)
    driver.memory.write(place + _NBYTES + 8, struct.pack("<Q", address))
    return ordering(driver, "the allocation of a graph", address)


def _free_node(driver: StandInDriver, address: int) -> StreamWork:
    if address not in driver.special.of_graphs:
        raise CallFailed(calls.INVALID_VALUE)
    return ordering(driver, "the free of a graph", address)


graph_calls.adds(_allocation_node, "cuGraphAddMemAllocNode", node_type=ALLOCATION)
graph_calls.adds(_free_node, "cuGraphAddMemFreeNode", node_type=FREE)
accepted("", "cuDeviceGraphMemTrim", "cuDeviceSetGraphMemAttribute")


@serves("i i Q", "cuDeviceGetGraphMemAttribute")
def _graph_memory(driver: StandInDriver, device: int, attribute: int, place: int) -> None:
    used = sum(driver.allocations[each] for each in driver.special.of_graphs)
    driver.memory.write(place, struct.pack("<Q", used))
