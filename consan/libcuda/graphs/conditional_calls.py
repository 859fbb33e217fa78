"""Conditions of graphs, and the nodes that run other graphs by them (IF, WHILE, SWITCH).

A condition is a word of device memory, and its handle is the address: a kernel that calls `cudaGraphSetConditional` stores there
(texts/device_runtime.py), and the node reads it in the order of its stream. So a kernel in no order with the node is found.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, serves
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.graphs import node_types
from consan.libcuda.graphs.graph import DriverGraph, GraphExecutable, NestedWork, SetAtLaunch

_BYTES: Final = 4
_ASSIGNS_DEFAULT: Final = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT
IF, WHILE, SWITCH = range(3)  # CUgraphConditionalNodeType
_NODE: Final = struct.Struct("<QiIQ")  # CUDA_CONDITIONAL_NODE_PARAMS: handle, type, number of graphs, their array
_SIZES: Final = {IF: (1, 2), WHILE: (1, 1), SWITCH: (1, 1 << 16)}
_ENDLESS: Final = "a WHILE node of a graph did not end within --timeout ({} s): what would follow it was not checked"


class GraphCondition(SetAtLaunch):
    """A condition. `default`: its value at the beginning of each launch of its graph."""

    def __init__(self, driver: StandInDriver, address: int, default: int = 0) -> None:
        self._driver, self._address, self._default, self.value = driver, address, default, 0

    def read(self, stream: Any) -> None:
        """A stream of the session reads the word."""
        word = self._driver.view(self._address, _BYTES)
        self.value = int(word.view(np.uint32)[0])
        self._driver.session.streams.operated("the condition of a graph's node", stream, [(self._address, word)], [])

    def set(self, stream: Any) -> None:
        """A stream of the session gives it the default value."""
        word = self._driver.view(self._address, _BYTES)
        word.view(np.uint32)[0] = self._default
        self._driver.session.streams.operated("the default value of a graph's condition", stream, [], [(self._address, word)])


class ConditionalNode(NestedWork):
    """A node that launches graphs by a condition. `reads`: it reads the condition itself, else nodes before it do."""

    def __init__(
        self, driver: StandInDriver, condition: GraphCondition, kind: int, bodies: Sequence[DriverGraph | None], *, reads: bool = True
    ) -> None:
        self._driver, self._condition, self._kind, self._bodies, self._reads = driver, condition, kind, bodies, reads

    def instantiated(self) -> StreamWork:
        """The work for one executable graph."""
        bodies = [None if each is None else GraphExecutable(each) for each in self._bodies]
        return lambda stream: self._run(bodies, stream)

    def _run(self, bodies: list[GraphExecutable | None], stream: Any) -> None:
        begin, limit = time.monotonic(), self._driver.session.options.timeout
        while (body := self._chosen(bodies, stream)) is not None:
            body.launch(self._driver.session.streams, stream)
            if self._kind != WHILE:
                break
            if limit is not None and time.monotonic() - begin > limit:
                self._driver.session.streams.comparisons.incomplete(_ENDLESS.format(f"{limit:g}"))
                raise CallFailed(calls.UNKNOWN)

    def _chosen(self, bodies: list[GraphExecutable | None], stream: Any) -> GraphExecutable | None:
        if self._reads:
            self._condition.read(stream)
        at = self._condition.value if self._kind == SWITCH else int(not self._condition.value)
        return bodies[at] if at < len(bodies) else None


@serves(">Q Q Q I I", "cuGraphConditionalHandleCreate", "_cudaGraphConditionalHandleCreate_v2")
def _create(driver: StandInDriver, graph: int, context: int, default: int, flags: int) -> int:
    found, handle = driver.of(graph, DriverGraph), driver.allocate(_BYTES)
    driver.handles[handle] = condition = GraphCondition(driver, handle, default)
    driver.view(handle, _BYTES)[...] = 0
    if flags & _ASSIGNS_DEFAULT:
        found.set_at_launch.append(condition)
    return handle


@serves(">Q Q I I", "_cudaGraphConditionalHandleCreate")
def _create_of_runtime(driver: StandInDriver, graph: int, default: int, flags: int) -> int:
    return _create(driver, graph, 0, default, flags)  # type: ignore[no-any-return]


def _node(driver: StandInDriver, place: int) -> StreamWork:
    """The parameters name an array for the handles of the new graphs: the library has made it (source/graph_arrays.h)."""
    handle, kind, count, array = _NODE.unpack(driver.memory.read(place, _NODE.size))
    condition, (least, most) = driver.of(handle, GraphCondition), _SIZES.get(kind, (1, 0))
    if not least <= count <= most:
        raise CallFailed(calls.INVALID_VALUE)
    bodies = [DriverGraph() for _ in range(count)]
    driver.memory.write(array, struct.pack(f"<{count}Q", *map(driver.made, bodies)))
    return ConditionalNode(driver, condition, kind, bodies)


node_types.CONDITIONAL.works[False] = _node
