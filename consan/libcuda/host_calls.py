"""Functions of the host in the order of a stream, or as nodes of a graph ("Execution Control": cuLaunchHostFunc).

A function comes after what is before it in its stream, and before what follows there; the bytes of shared memory that it touches are
compared as those of a copy are. It orders threads of the host by locks, which are seen (source/host_functions.h), and by values. If it has
given no lock away, nobody knows whether a thread waits for it by an atomic variable. So in a native program it is held back until the next
call, which then is one that has not waited. A race of what was before the function with later calls is not reported, and the report is
incomplete. A framework's runtime waits for its own functions (session/comparing/program_streams.py).
"""

from __future__ import annotations

import struct
from typing import Any, Final

from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, serves
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.graphs import graph_calls
from consan.libcuda.graphs.node_types import HOST
from consan.libcuda.memory_calls import rows_of_touched, shared_blocks
from consan.session.comparing.program_streams import is_of_runtime

_NODE: Final = struct.Struct("<2Q")  # CUDA_HOST_NODE_PARAMS: function, its parameter


@serves("Q Q", "_consan_holds_back")
def _held_back(driver: StandInDriver, stream: int, function: int) -> None:
    """A function is about to be held back: until it runs, all that the host touches counts. Raises CallFailed if it does not run later."""
    if not function or stream in driver.captures:
        raise CallFailed(calls.INVALID_VALUE)
    driver.host.held_back += 1


@serves("Q Q Q Q", "cuLaunchHostFunc")
def _launch(driver: StandInDriver, stream: int, function: int, data: int, goes_on: int = 0) -> None:
    """`goes_on`: the host makes a call now for which it has not waited for the function, which was held back."""
    work, capture = host_function(driver, function, data), driver.captures.get(stream)
    if capture is not None:
        capture.add(stream, work)
        return
    driver.host.held_back = max(0, driver.host.held_back - 1)
    work(driver.stream(stream))
    if driver.memory.is_own or not goes_on:
        driver.host_may_know()


@serves("Q Q Q Q", "_consan_callback")
def _callback(driver: StandInDriver, stream: int, function: int, data: int, goes_on: int) -> None:
    if stream in driver.captures:
        raise CallFailed(calls.CAPTURE_UNSUPPORTED)
    _launch(driver, stream, function, data, goes_on)


def host_function(driver: StandInDriver, function: int, data: int) -> StreamWork:
    """A function of the host as work of a stream. Raises CallFailed."""
    if not function:
        raise CallFailed(calls.INVALID_VALUE)

    def work(stream: Any) -> None:
        streams, number = driver.session.streams, len(driver.host.over) + 1
        is_waited_for = driver.memory.is_own and is_of_runtime(function)
        before = driver.host.over[number] = stream.record()
        if is_waited_for:  # a thread that waits may go on, and call, before the function has returned
            streams.host_waits_for(before)
        with driver.elsewhere() as memory:
            touched, gave = memory.run(number, function, data, shared_blocks(driver))
        over = driver.host.over[number] = streams.host_function(stream, rows_of_touched(touched))
        if is_waited_for:
            streams.host_waits_for(over)
        elif not gave:
            driver.host.without_locks.append(over)

    return work


@serves("Q", "_consan_host_learns")
def _learns(driver: StandInDriver, number: int) -> None:
    over = driver.host.over.get(number)
    if over is not None:
        driver.session.streams.host_waits_for(over)


def _node(driver: StandInDriver, place: int) -> StreamWork:
    return host_function(driver, *_NODE.unpack(driver.memory.read(place, _NODE.size)))


graph_calls.adds(_node, "cuGraphAddHostNode", node_type=HOST)
graph_calls.sets(_node, "cuGraphHostNodeSetParams", "cuGraphExecHostNodeSetParams")
