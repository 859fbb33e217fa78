"""Calls that allocate memory, share it with the program, and describe pointers. All but memory of the host lies in the virtual machine."""

from __future__ import annotations

import mmap
import struct
from typing import Final

from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import StandInDriver, StreamWork

_PITCH: Final = 512
_TRIES: Final = 64
_DEVICE: Final = 2  # CUmemorytype
_PINNED: Final = (
    "a kernel is given pinned memory of the host: without a GPU only native programs have that, by cudaMallocHost or cudaHostAlloc"
)


@serves(">Q Q", "cuMemAlloc_v2")
def _alloc(driver: StandInDriver, nbytes: int) -> int:
    return driver.allocate(nbytes)


@serves(">Q Q Q", "cuMemAllocAsync")
def _alloc_async(driver: StandInDriver, nbytes: int, stream: int) -> int:
    return given(driver, nbytes, stream)


@serves(">Q Q Q Q", "cuMemAllocFromPoolAsync")
def _alloc_from_pool(driver: StandInDriver, nbytes: int, pool: int, stream: int) -> int:
    return given(driver, nbytes, stream)


def given(driver: StandInDriver, nbytes: int, stream: int) -> int:
    """New device memory in the order of a stream: what uses it comes behind that. Raises CallFailed."""
    address = driver.allocate(nbytes)
    if stream in driver.captures:
        driver.special.of_graphs.add(address)
    _orders(driver, "the stream-ordered allocation", address, stream)
    return address


def _orders(driver: StandInDriver, name: str, address: int, stream: int) -> None:
    driver.work(stream, ordering(driver, name, address))


def ordering(driver: StandInDriver, name: str, address: int) -> StreamWork:
    """An allocation, or a free, in the order of a stream: as if it wrote the memory."""
    view = driver.view(address, driver.allocations[address])
    return lambda current: driver.session.streams.operated(name, current, [], [(address, view)])


@serves(">Q Q", "cuMemAllocManaged")
def managed(driver: StandInDriver, nbytes: int) -> int:
    """Memory on pages of its own, which the program gets at the same address. Something of it may lie there: the next is tried then."""
    if driver.memory.is_own:  # the virtual machine may lie where the device's addresses point
        raise CallFailed(calls.NOT_SUPPORTED, "managed memory is not served in a Python process")
    if not nbytes:
        raise CallFailed(calls.INVALID_VALUE)
    for _ in range(_TRIES):
        address: int = driver.session.backend.machine.arena.alloc(nbytes, mmap.PAGESIZE).address
        if driver.memory.lay(address, nbytes):
            driver.special.managed[address] = address
            driver.session.streams.share_with_host()
            return driver.keep(address, nbytes)
    raise CallFailed(calls.OUT_OF_MEMORY)


@serves(">Q Q", "_consan_keep_pinned")
def _keep(driver: StandInDriver, nbytes: int) -> int:
    """Pinned memory, on pages at an address that no memory of the device has: it becomes managed memory if a kernel is given it."""
    if driver.memory.is_own or not nbytes:
        raise CallFailed(calls.NOT_SUPPORTED)
    arena = driver.session.backend.machine.arena
    for _ in range(_TRIES):
        place = arena.alloc(nbytes, mmap.PAGESIZE)
        arena.hide(place)
        if driver.memory.lay(place.address, nbytes):
            driver.special.kept[place.address] = place
            _pinned_pages(driver, place.address, nbytes)
            return int(place.address)
    raise CallFailed(calls.OUT_OF_MEMORY)


def give_pinned(driver: StandInDriver, address: int) -> None:
    """A kernel may touch the pinned memory that an address is one of. Raises CallFailed."""
    begin = driver.special.pinned_at(address)
    place = driver.special.kept.pop(begin, None)
    if place is None:
        raise CallFailed(calls.NOT_SUPPORTED, _PINNED)
    driver.special.unpin(begin)
    driver.session.backend.machine.arena.show(place)
    driver.special.managed[begin] = begin
    driver.session.streams.share_with_host()
    driver.keep(begin, place.nbytes)


@serves("Q >Q", "_consan_free_host")
def _free_host(driver: StandInDriver, address: int) -> int:
    """The bytes of the program's pages, which go; 0: the program has allocated the memory itself."""
    place = driver.special.kept.pop(address, None)
    if place is not None:
        driver.session.backend.machine.arena.show(place)
        driver.keep(address, place.nbytes)
    _unpinned(driver, address)
    nbytes = driver.allocations.get(address, 0)
    if nbytes:
        driver.free(address)
    return nbytes


def manage(driver: StandInDriver, variables: list[tuple[int, int]]) -> None:
    """Let variables of a module, by address and bytes, be managed memory. Raises CallFailed."""
    pages = {page for address, nbytes in variables for page in range(address // mmap.PAGESIZE, (address + nbytes - 1) // mmap.PAGESIZE + 1)}
    for page in sorted(pages - driver.special.laid):
        if not driver.memory.lay(page * mmap.PAGESIZE, mmap.PAGESIZE):
            raise CallFailed(calls.NOT_SUPPORTED, "something of the program lies where its __managed__ variables are to be")
        driver.special.laid.add(page)
    for address, nbytes in variables:
        driver.memory.write(address, driver.view(address, nbytes).tobytes())
        driver.special.managed[address], driver.special.variables[address] = address, nbytes
        driver.session.streams.share_with_host()


@serves("Q Q", "_cudaHostRegister")
def _pinned(driver: StandInDriver, address: int, nbytes: int) -> None:
    """The first page and the last one of memory that the program registers may hold anything else, too."""
    _share(driver, address, nbytes, -(-address // mmap.PAGESIZE) * mmap.PAGESIZE, (address + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE)


@serves("Q Q", "_consan_pinned")
def _pinned_pages(driver: StandInDriver, address: int, nbytes: int) -> None:
    _share(driver, address, nbytes, address, address + nbytes)


def _share(driver: StandInDriver, address: int, nbytes: int, begin: int, end: int) -> None:
    driver.special.pin(address, nbytes)
    if begin < end and not driver.memory.is_own:
        driver.special.shared[address] = begin, end
        driver.session.streams.share_with_host()


@serves("Q >Q", "_cuMemHostGetDevicePointer")
def _device_pointer(driver: StandInDriver, address: int) -> int:
    """Memory that the driver has allocated lies at the device's addresses, too."""
    found = driver.allocation(address)
    if found is None or found[0] not in driver.special.managed:
        give_pinned(driver, address)
    return address


@serves("Q", "_cudaHostUnregister")
def _unpinned(driver: StandInDriver, address: int) -> None:
    driver.session.streams.synchronize()  # no copy to what comes to lie there is compared with one from before
    driver.special.unpin(address)


accepted("", "cuMemAdvise", "cuMemAdvise_v2", "cuMemPrefetchAsync", "cuMemPrefetchAsync_v2", "cuStreamAttachMemAsync")


@serves(">Q >Q Q Q I", "cuMemAllocPitch_v2")
def _pitched(driver: StandInDriver, width: int, height: int, element: int) -> tuple[int, int]:
    pitch = -(-width // _PITCH) * _PITCH
    return driver.allocate(pitch * height), pitch


@serves("Q", "cuMemFree_v2")
def _free(driver: StandInDriver, address: int) -> None:
    if address:
        driver.session.streams.synchronize()
        driver.free(address)


@serves("Q Q", "cuMemFreeAsync")
def _free_async(driver: StandInDriver, address: int, stream: int) -> None:
    nbytes = driver.allocations.get(address, 0)
    if nbytes:
        _orders(driver, "the stream-ordered free", address, stream)
    driver.free(address)
    if address not in driver.special.of_graphs:
        driver.session.streams.forget(address, nbytes)


@serves(">Q >Q Q", "cuMemGetAddressRange_v2")
def _range(driver: StandInDriver, address: int) -> tuple[int, int]:
    found = driver.allocation(address)
    if found is None:
        raise CallFailed(calls.INVALID_VALUE)
    return found


# -- pointers ----------------------------------------------------------------------------------------------------------------------------


def _pointer_attribute(driver: StandInDriver, attribute: int, address: int) -> bytes | None:
    """The bytes of an attribute; None: the address has none."""
    begin, nbytes = driver.allocation(address) or driver.variable(address) or (0, 0)
    if attribute == 2:  # memory type
        return struct.pack("<I", _DEVICE) if begin else None
    words = {1: driver.primary(driver.device), 3: address, 7: begin, 11: begin, 12: nbytes, 17: 0}
    bits = {8: begin in driver.special.managed, 10: False, 13: True}  # managed memory, memory of another process, mapped
    if begin and attribute in words:
        return struct.pack("<Q", words[attribute])
    if begin and attribute in bits:
        return struct.pack("<?", bits[attribute])
    return struct.pack("<i", 0) if begin and attribute == 9 else None  # the device


@serves("Q i Q", "cuPointerGetAttribute")
def _attribute(driver: StandInDriver, place: int, attribute: int, address: int) -> None:
    data = _pointer_attribute(driver, attribute, address)
    if data is None:
        raise CallFailed(calls.INVALID_VALUE)
    driver.memory.write(place, data)


@serves("I Q Q Q", "cuPointerGetAttributes")
def _attributes(driver: StandInDriver, count: int, attributes: int, places: int, address: int) -> None:
    numbers = struct.unpack(f"<{count}i", driver.memory.read(attributes, 4 * count))
    for number, place in zip(numbers, struct.unpack(f"<{count}Q", driver.memory.read(places, 8 * count)), strict=True):
        data = _pointer_attribute(driver, number, address)
        default = struct.pack("<i", -2) if number == 9 else bytes({2: 4, 8: 1, 10: 1, 13: 1}.get(number, 8))
        driver.memory.write(place, default if data is None else data)
