"""Calls that reserve addresses, make memory, and map it there: an allocation lives while memory is mapped over a whole range.

Not handled: memory that is mapped over a part of a range, twice, or again after it was unmapped (it would bring its bytes along).
"""

from __future__ import annotations

from typing import Any, Final

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import StandInDriver

_GRANULARITY: Final = 16  # bytes; small, so that what lies behind a program's array lies outside of its allocation
_WHOLE: Final = "without a GPU, memory is mapped over whole ranges of addresses only"
_ONCE: Final = "without a GPU, memory is mapped once only"


@dataclass(eq=False)
class PhysicalMemory:
    """Memory that has no address of its own. `used`: it was mapped."""

    nbytes: int
    used: bool = False


@serves(">Q Q i", "cuMemGetAllocationGranularity")
def _granularity(driver: StandInDriver, properties: int, option: int) -> int:
    return _GRANULARITY


@serves(">Q Q Q Q Q", "cuMemAddressReserve")
def _reserve(driver: StandInDriver, nbytes: int, align: int, wanted: int, flags: int) -> int:
    if not nbytes or nbytes % _GRANULARITY:
        raise CallFailed(calls.INVALID_VALUE)
    arena = driver.session.backend.machine.arena
    place = arena.alloc(nbytes, align or 256)
    arena.hide(place)
    driver.special.ranges[place.address] = place
    return int(place.address)


@serves("Q Q", "cuMemAddressFree")
def _forget(driver: StandInDriver, address: int, nbytes: int) -> None:
    place = _range(driver, address, nbytes)
    if address in driver.allocations:
        raise CallFailed(calls.INVALID_VALUE)
    del driver.special.ranges[address]
    driver.session.backend.machine.arena.show(place)
    driver.session.backend.free(address)


@serves(">Q Q Q Q", "cuMemCreate")
def _create(driver: StandInDriver, nbytes: int, properties: int, flags: int) -> int:
    if not nbytes or nbytes % _GRANULARITY:
        raise CallFailed(calls.INVALID_VALUE)
    return driver.made(PhysicalMemory(nbytes))


@serves("Q Q Q Q Q", "cuMemMap")
def _map(driver: StandInDriver, address: int, nbytes: int, offset: int, handle: int, flags: int) -> None:
    memory = driver.of(handle, PhysicalMemory)
    place = _range(driver, address, nbytes)
    if address in driver.allocations or offset + nbytes > memory.nbytes:
        raise CallFailed(calls.INVALID_VALUE)
    if memory.used:
        raise CallFailed(calls.NOT_SUPPORTED, _ONCE)
    memory.used = True
    driver.session.backend.machine.arena.show(place)
    driver.keep(address, nbytes)


@serves("Q Q", "cuMemUnmap")
def _unmap(driver: StandInDriver, address: int, nbytes: int) -> None:
    place = _range(driver, address, nbytes)
    if driver.allocations.pop(address, None) is None:
        raise CallFailed(calls.INVALID_VALUE)
    driver.session.streams.synchronize()
    driver.session.backend.machine.arena.hide(place)


def _range(driver: StandInDriver, address: int, nbytes: int) -> Any:
    """The range that an address begins. Raises CallFailed."""
    place = driver.special.ranges.get(address)
    if place is None or place.nbytes != nbytes:
        raise CallFailed(calls.NOT_SUPPORTED, _WHOLE)
    return place


accepted("Q", "cuMemRelease", "cuMemSetAccess")  # memory that is mapped lives on
