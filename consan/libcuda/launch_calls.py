"""Calls that launch kernels. A launch is over, and checked, when its call returns."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from consan.backends.base import Dim3
from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, serves
from consan.libcuda.driver import StandInDriver, StreamWork
from consan.libcuda.memory.allocation_calls import give_pinned
from consan.libcuda.memory.texture_calls import before_launch
from consan.libcuda.module_calls import LoadedKernel
from consan.libcuda.stream_calls import EventHandle
from consan.reports.source.variables import Argument
from consan.session.comparing.launch_memory import LaunchShape, Memory
from consan.session.modules.in_clusters import scaled, unit_of
from consan.session.modules.layouts import name_addresses
from consan.session.modules.parameters import DeclaredSizes

_CONFIG: Final = struct.Struct("<7I4xQQI")  # CUlaunchConfig: grid, block, shared memory; stream; attributes and their number
_ATTRIBUTE: Final = struct.Struct("<i4x3I52x")  # CUlaunchAttribute: its id, and the first three numbers of its value
_COOPERATIVE, _CLUSTER, _PROGRAMMATIC = 2, 4, 6
_EVENTS: Final = {7: True, 12: False}  # attributes with an event, and whether a `griddepcontrol.wait` sees it
_MOST_THREADS, _DYNAMIC = 1024, 8
_END, _BUFFER, _SIZE = 0, 1, 2  # of `extra`
_IN_GRAPH: Final = "a launch in a graph that records an event by an attribute"


@dataclass(frozen=True)
class DriverLaunch:
    """A launch as the program asks for it. `grid` as its kernel counts it."""

    grid: Dim3
    block: Dim3
    shared: int
    stream: int
    cluster: Dim3 = (1, 1, 1)
    cooperative: bool = False
    programmatic: bool = False
    events: tuple[tuple[int, bool], ...] = ()  # that it records, and whether a `griddepcontrol.wait` sees each


@serves("Q I I I I I I I Q Q Q", "cuLaunchKernel")
def _kernel(driver: StandInDriver, kernel: int, *given: int) -> None:
    *sizes, shared, stream, params, extra = given
    launch(driver, kernel, DriverLaunch(_three(sizes), _three(sizes[3:]), shared, stream), params, extra)


@serves("Q I I I I I I I Q Q", "cuLaunchCooperativeKernel")
def _cooperative(driver: StandInDriver, kernel: int, *given: int) -> None:
    *sizes, shared, stream, params = given
    launch(driver, kernel, DriverLaunch(_three(sizes), _three(sizes[3:]), shared, stream, cooperative=True), params, 0)


@serves("Q Q Q Q", "cuLaunchKernelEx")
def launch_with_attributes(driver: StandInDriver, config: int, kernel: int, params: int, extra: int) -> None:
    """A launch as a CUlaunchConfig at an address describes it."""
    *sizes, shared, stream, attributes, count = _CONFIG.unpack(driver.memory.read(config, _CONFIG.size))
    data = driver.memory.read(attributes, count * _ATTRIBUTE.size) if count else b""
    asked = {number: _three(value) for number, *value in _ATTRIBUTE.iter_unpack(data)}
    off = (0, 0, 0)
    events = tuple((asked[each][0] | asked[each][1] << 32, waited) for each, waited in _EVENTS.items() if each in asked)
    if events and stream in driver.captures:
        raise CallFailed(calls.NOT_SUPPORTED, _IN_GRAPH)
    asked_launch = DriverLaunch(
        *(_three(sizes), _three(sizes[3:]), shared, stream, asked.get(_CLUSTER, (1, 1, 1))),
        cooperative=bool(asked.get(_COOPERATIVE, off)[0]),
        programmatic=bool(asked.get(_PROGRAMMATIC, off)[0]),
        events=events,
    )
    launch(driver, kernel, asked_launch, params, extra)


def _three(sizes: Any) -> Dim3:
    x, y, z = sizes[:3]
    return x, y, z


def launch(driver: StandInDriver, handle: int, asked: DriverLaunch, params: int, extra: int) -> None:
    """Run a kernel with the parameters at an address, or those that `extra` names. Raises CallFailed."""
    driver.work(asked.stream, kernel_work(driver, handle, asked, params, extra))


def kernel_work(driver: StandInDriver, handle: int, asked: DriverLaunch, params: int, extra: int) -> StreamWork:
    """A launch with the parameters that are there now, whose stream is still to be said. Raises CallFailed."""
    kernel = driver.of(handle, LoadedKernel)
    x, y, z = asked.block
    if not 0 < x * y * z <= _MOST_THREADS or not all(asked.grid) or asked.shared > kernel.attributes[_DYNAMIC]:
        raise CallFailed(calls.INVALID_VALUE)
    session, prepared, entry = driver.session, kernel.module.prepared, kernel.function.name
    values = _parameters(driver, kernel, params, extra)
    for each in _addresses(values):
        if driver.special.pinned_at(each) and not driver.is_device(each):
            give_pinned(driver, each)
    grid = scaled(asked.grid, unit_of(kernel.function))
    recorded = [(driver.of(event, EventHandle), waited) for event, waited in asked.events]
    names = name_addresses(prepared, entry, list(_buffers(driver, entry, values)))
    shape = LaunchShape(entry, grid, asked.block, driver.of_framework.copies or Memory([], shared=True))
    cooperative = asked.cooperative or driver.of_framework.cooperative

    def work(stream: Any) -> None:
        options = {"shared": asked.shared, "cluster": asked.cluster, "cooperative": cooperative, "address_name": names}
        with session.streams.lock:
            before_launch(driver, _addresses(values), stream)
            with session.streams.comparisons.accesses.placed(by_address=shape.memory.by_address and not asked.programmatic):
                made = session.launch(prepared, entry, grid, asked.block, values, **options)
            if made:
                session.streams.launched(prepared, shape, stream, programmatic=asked.programmatic)
            for event, waited in recorded:
                event.begun(stream, waited=waited)

    return work


def _parameters(driver: StandInDriver, kernel: LoadedKernel, params: int, extra: int) -> list[bytes]:
    """The bytes of each parameter, as the kernel declares them. Raises CallFailed."""
    declared = kernel.function.params
    if not declared:
        return []
    if params:
        places = struct.unpack(f"<{len(declared)}Q", driver.memory.read(params, 8 * len(declared)))
        return [driver.memory.read(place, each.nbytes) for place, each in zip(places, declared, strict=True)]
    if not extra:
        raise CallFailed(calls.INVALID_VALUE)
    buffer, nbytes = _extra(driver, extra)
    sizes = DeclaredSizes(tuple(each.nbytes for each in declared), tuple(each.alignment for each in declared))
    found = sizes.packed(driver.memory.read(buffer, nbytes))
    if found is None:
        raise CallFailed(calls.INVALID_VALUE)
    return list(found)


def _extra(driver: StandInDriver, extra: int) -> tuple[int, int]:
    """Address and size of the buffer that `extra` names."""
    found, at = dict[int, int](), extra
    while (key := _word(driver, at)) != _END:
        found[key], at = _word(driver, at + 8), at + 16
    if _BUFFER not in found or _SIZE not in found:
        raise CallFailed(calls.INVALID_VALUE)
    return found[_BUFFER], _word(driver, found[_SIZE])


def _word(driver: StandInDriver, address: int) -> int:
    return int.from_bytes(driver.memory.read(address, 8), "little")


def _addresses(values: list[bytes]) -> Iterator[int]:
    """The words of parameters, also within a struct: some are addresses."""
    for value in values:
        yield from (word for (word,) in struct.iter_unpack("<Q", value[: len(value) // 8 * 8]))


def _buffers(driver: StandInDriver, entry: str, values: list[bytes]) -> Iterator[Argument]:
    """The buffers that the framework has named, and the allocations to which other parameters point, also from within a struct."""
    yield from driver.of_framework.buffers
    named, names = {each.begin for each in driver.of_framework.buffers}, driver.parameter_names.get(entry, ())
    for number, value in enumerate(values, 1):
        for address in _addresses([value]):
            found = driver.allocation(address)
            if found is not None and address not in named:
                name = names[number - 1] if number <= len(names) else ""
                yield Argument(f"argument {number}", address, found[0] + found[1] - address, name)
