"""Functions that Warp's library has as kernels of its own: those for the CPU run instead, on the memory of the virtual machine.

Sums, inner products, scans, sorts, run lengths, copies and fills of arrays with gaps, hash grids. Read against Warp 1.19. As on a GPU, the
library's kernels are not checked; a note says so. Where streams are compared, such an operation has no accesses.

Not handled: indexed and fabric arrays that are copied or filled, BVHs, meshes, volumes.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any, Final

from consan.libcuda import library
from consan.libcuda.driver import StandInDriver

_NOTE: Final = "what Warp's library computes by its own kernels (sums, sorts, hash grids, copies with gaps) is neither checked nor compared"
_SCALARS: Final = ("float", "double", "int", "int64", "uint", "uint64")
_OPERATIONS: Final = ("array_sum", "array_inner", "array_scan", "radix_sort_pairs", "segmented_sort_pairs", "runlength_encode")
_ARRAY: Final = 80  # bytes: more than an array's description has
_REGULAR: Final = 0
_Work = Callable[[Callable[[], object]], None]  # does something in Warp's current stream

# HashGrid_t: five arrays, then seven numbers; the grid's own numbers come last.
_GRID: Final = 96
_ARRAYS: Final = struct.Struct("<5Q7i")


def functions(loaded: Any, runtime: Any) -> dict[str, Callable[..., Any]]:
    """By their names in the library. `runtime`: Warp's own."""
    work = functools.partial(_work, runtime)
    grids = _HashGrids(loaded, work)
    names = (f"wp_{operation}_{scalar}" for operation in _OPERATIONS for scalar in _SCALARS)
    simple = {
        f"{name}_device": functools.partial(_on_host, work, getattr(loaded, f"{name}_host"))
        for name in names
        if hasattr(loaded, f"{name}_host")
    }
    return {
        **simple,
        "wp_array_copy_device": functools.partial(_copy, loaded, work),
        "wp_array_fill_device": functools.partial(_fill, loaded, work),
        **{f"wp_hash_grid_{action}_device": getattr(grids, action) for action in ("create", "destroy", "reserve", "update")},
    }


def _driver() -> StandInDriver:
    driver = library.driver()
    driver.session.note(_NOTE)
    return driver


def _work(runtime: Any, operation: Callable[[], object]) -> None:
    """Do it in the device's current stream, or in each launch of the graph that is captured there."""

    def work(_stream: object) -> None:
        operation()

    _driver().work(runtime.cuda_devices[0].stream.cuda_stream, work)


def _reached(driver: StandInDriver, address: int) -> int:
    """The address by which the host reaches what a parameter points to; numbers and addresses of the host are given back."""
    return int(driver.view(address, 1).ctypes.data) if driver.is_device(address) else address


def _on_host(work: _Work, function: Any, *args: Any) -> bool:
    driver = _driver()
    given = [_reached(driver, each) if isinstance(each, int) else each for each in args]
    work(lambda: function(*given))
    return True


def _array(driver: StandInDriver, place: int) -> Any:
    """The description of an array, whose data the host reaches."""
    described = ctypes.create_string_buffer(ctypes.string_at(place, _ARRAY), _ARRAY)
    (data,) = struct.unpack_from("<Q", described)
    struct.pack_into("<Q", described, 0, _reached(driver, data) if data else 0)
    return described


def _copy(loaded: Any, work: _Work, context: Any, to: Any, source: Any, to_type: int, source_type: int, element: int) -> bool:
    driver = _driver()
    if (to_type, source_type) != (_REGULAR, _REGULAR):
        driver.session.note("copies of indexed and fabric arrays of Warp do not run here")
        return False
    arrays = [_array(driver, _place(each)) for each in (to, source)]
    work(lambda: loaded.wp_array_copy_host(*arrays, to_type, source_type, element))
    return True


def _fill(loaded: Any, work: _Work, context: Any, to: Any, to_type: int, value: Any, nbytes: int) -> None:
    driver = _driver()
    if to_type != _REGULAR:
        driver.session.note("fills of indexed and fabric arrays of Warp do not run here")
        return
    array, kept = _array(driver, _place(to)), ctypes.create_string_buffer(ctypes.string_at(_place(value), nbytes), nbytes)
    work(lambda: loaded.wp_array_fill_host(array, to_type, kept, nbytes))


def _place(pointer: Any) -> int:
    """The address in a pointer of ctypes, or the number that it is."""
    return pointer if isinstance(pointer, int) else int(ctypes.cast(pointer, ctypes.c_void_p).value or 0)


class _HashGrids:
    """Grids in memory of the host, each with a copy on the device, whose address is the grid's name."""

    def __init__(self, loaded: Any, work: _Work) -> None:
        self._loaded, self._work = loaded, work
        self._hosts: dict[int, int] = {}
        # For a grid, by the number of each array: its place on the device, and bytes.
        self._copies: dict[int, dict[int, tuple[int, int]]] = {}

    def create(self, context: Any, kind: int, *dims: int) -> int:
        """A new grid."""
        grid = _driver().allocate(_GRID)
        self._hosts[grid] = self._loaded.wp_hash_grid_create_host(kind, *dims)
        self._show(grid)
        return grid

    def destroy(self, grid: int, kind: int) -> None:
        """Free it."""
        self._loaded.wp_hash_grid_destroy_host(self._hosts.pop(grid), kind)
        for address in (grid, *(each for each, _ in self._copies.pop(grid).values())):
            _driver().free(address)

    def reserve(self, grid: int, kind: int, count: int, with_groups: bool) -> None:
        """Memory for so many points."""
        self._loaded.wp_hash_grid_reserve_host(self._hosts[grid], kind, count, with_groups)
        self._show(grid)

    def update(self, grid: int, kind: int, width: float, points: Any, groups: Any) -> None:
        """Build it of points, and of their groups where there are any."""
        driver = _driver()
        arrays = [each and _array(driver, _place(each)) for each in (points, groups)]

        def build() -> None:
            self._loaded.wp_hash_grid_update_host(self._hosts[grid], kind, width, *arrays)
            self._show(grid)

        self._work(build)

    def _show(self, grid: int) -> None:
        """Copy it to the device."""
        driver, copies = _driver(), self._copies.setdefault(grid, {})
        image = bytearray(ctypes.string_at(self._hosts[grid], _GRID))
        *arrays, x, y, z, _, points, keys, _ = _ARRAYS.unpack_from(image)
        sizes = (8 * points, 8 * points, 16 * keys, 4 * x * y * z, 4 * x * y * z)
        for number, (host, nbytes) in enumerate(zip(arrays, sizes, strict=True)):
            address, room = copies.get(number, (0, 0))
            if host and room != nbytes:
                if room:
                    driver.free(address)
                address = driver.allocate(nbytes)
                copies[number] = address, nbytes
            if host:
                driver.view(address, nbytes)[...] = memoryview(ctypes.string_at(host, nbytes))
            struct.pack_into("<Q", image, 8 * number, address if host else 0)
        driver.view(grid, _GRID)[...] = memoryview(image)
