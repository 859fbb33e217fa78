"""The calls that encode tensor maps (driver API, "Tensor Map Object Management"). The rules are those of consan.tensormap."""

from __future__ import annotations

import struct
from typing import Any, Final

from consan._errors import UsageError
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, serves
from consan.libcuda.driver import StandInDriver
from consan.tensormap.description import DTYPES, INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from consan.tensormap.encoding import encode_im2col, encode_tiled

_NAMES: Final = {dtype.driver: dtype.name for dtype in DTYPES.values()}


def _numbers(driver: StandInDriver, address: int, count: int, form: str) -> tuple[int, ...]:
    return struct.unpack(f"<{count}{form}", driver.memory.read(address, count * struct.calcsize(form)))


def _common(driver: StandInDriver, dtype: int, rank: int, given: tuple[int, ...], modes: tuple[int, ...]) -> dict[str, Any]:
    """The parameters that both forms have. `given`: addresses of the tensor, its sizes and strides, and of element strides."""
    address, dims, strides, steps = given
    interleave, swizzle, l2, oob = modes
    if dtype not in _NAMES or swizzle >= len(SWIZZLES) or not 1 <= rank <= 5:
        raise CallFailed(calls.NOT_SUPPORTED, f"no encoding is known of tensor maps with element type {dtype} and swizzle {swizzle}")
    return {
        "dtype": _NAMES[dtype],
        "address": address,
        "dims": _numbers(driver, dims, rank, "Q"),
        "strides": _numbers(driver, strides, rank - 1, "Q"),
        "element_strides": _numbers(driver, steps, rank, "I"),
        "interleave": INTERLEAVES[interleave],
        "swizzle": SWIZZLES[swizzle],
        "l2": L2_PROMOTIONS[l2],
        "oob": OOB_FILLS[oob],
    }


def _store(driver: StandInDriver, place: int, encode: Any, values: dict[str, Any]) -> None:
    try:
        driver.memory.write(place, encode(**values))
    except UsageError as error:
        raise CallFailed(calls.INVALID_VALUE, str(error)) from None


@serves("Q I I Q Q Q Q Q I I I I", "cuTensorMapEncodeTiled")
def _tiled(driver: StandInDriver, place: int, dtype: int, rank: int, *given: int) -> None:
    address, dims, strides, box, steps, *modes = given
    values = _common(driver, dtype, rank, (address, dims, strides, steps), tuple(modes))
    _store(driver, place, encode_tiled, {**values, "box": _numbers(driver, box, rank, "I")})


@serves("Q I I Q Q Q Q Q I I Q I I I I", "cuTensorMapEncodeIm2col")
def _im2col(driver: StandInDriver, place: int, dtype: int, rank: int, *given: int) -> None:
    address, dims, strides, lower, upper, channels, pixels, steps, *modes = given
    values = _common(driver, dtype, rank, (address, dims, strides, steps), tuple(modes))
    corners = {"lower": _numbers(driver, lower, rank - 2, "i"), "upper": _numbers(driver, upper, rank - 2, "i")}
    _store(driver, place, encode_im2col, {**values, **corners, "channels": channels, "pixels": pixels})
