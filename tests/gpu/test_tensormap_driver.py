"""Our encoder against the driver's: the same bytes, and the same refusals, for maps with random parameters.

`python tests/gpu/test_tensormap_driver.py FILE` writes such maps as records, which tests/unit/tensormap/tensormap_records.py reads: first
one parameter at a time changed from a plain map, then random ones. From the first, the table in consan/tensormap/encoding.py was solved.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "tensormap"))

from tensormap_records import data, encoded, records

from consan._errors import UsageError
from consan.backends import driver as api
from consan.backends.cuda import CudaBackend
from consan.tensormap.description import DTYPES
from consan.tensormap.encoding import decode, encode

REASON = api.why_unavailable()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(REASON is not None, reason=f"no GPU: {REASON}")]
SIZES = {dtype.driver: dtype.nbytes for dtype in DTYPES.values()}
FLOATS = {dtype.driver for dtype in DTYPES.values() if dtype.is_float}
PLAIN = {"kind": "tiled", "dtype": 6, "rank": 2, "dims": [1024, 512], "strides": [2048], "box": [64, 32], "est": [1, 1]} | dict.fromkeys(
    ("il", "sw", "l2", "oob"), 0
)


def _array(kind: Any, values: Sequence[int]) -> Any:
    return (kind * max(1, len(values)))(*values)


def encode_with_driver(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the driver's result and bytes."""
    storage = (ctypes.c_uint8 * 192)()
    address = -(-ctypes.addressof(storage) // 64) * 64
    u64, u32, i32 = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32
    front = (ctypes.c_void_p(address), record["dtype"], u32(record["rank"]), ctypes.c_void_p(record["a"]))
    shape = (_array(u64, record["dims"]), _array(u64, record["strides"]))
    back = (_array(u32, record["est"]), record["il"], record["sw"], record["l2"], record["oob"])
    if record["kind"] == "tiled":
        code = api.driver().status("cuTensorMapEncodeTiled", *front, *shape, _array(u32, record["box"]), *back)
    else:
        corners = (_array(i32, record["lo"]), _array(i32, record["hi"]), u32(record["ch"]), u32(record["px"]))
        code = api.driver().status("cuTensorMapEncodeIm2col", *front, *shape, *corners, *back)
    return record | {"rc": code, "hex": None if code else ctypes.string_at(address, 128).hex()}


def variations(address: int) -> Iterator[dict[str, Any]]:
    """A plain map with one thing changed at a time."""
    plain = PLAIN | {"a": address}
    changes = {
        "dtype": range(16),
        "a": [address + step for step in (16, 32, 64, 4096, 1 << 20)],
        "dims": [[extent, 512] for extent in (1, 2, 1 << 20, 1 << 32)] + [[1024, extent] for extent in (1, 1 << 32)],
        "strides": [[16 << shift] for shift in range(0, 36, 5)],
        "box": [[8, 1], [16, 2], [64, 256], [256, 3]],
        "est": [[2, 1], [1, 2], [3, 5], [8, 8]],
        "il": range(3),
        "sw": range(7),
        "l2": range(4),
        "oob": range(2),
    }
    for name, values in changes.items():
        for value in values:
            box = [16, 32] if name in ("dtype", "sw") else plain["box"]
            yield plain | {"box": box} | {name: value}


def random_records(address: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Endless maps, most of them valid."""
    chance = random.Random(seed)
    while True:
        yield (_random_tiled if chance.random() < 0.6 else _random_im2col)(chance, address)


def _random_tiled(chance: random.Random, address: int) -> dict[str, Any]:
    rank, dtype, swizzle = chance.randint(1, 5), chance.choice(sorted(SIZES)), chance.randrange(4)
    inner = 16 * chance.randint(1, (32, 2, 4, 8)[swizzle]) // SIZES[dtype]
    box = [min(inner, 256)] + [chance.randint(1, 255 if k == 0 and chance.random() < 0.3 else 8) for k in range(rank - 1)]
    strides = [16 * chance.randint(1, 1 << chance.choice((6, 20, 35))) for _ in range(rank - 1)]
    dims = [chance.randint(1, 1 << chance.choice((8, 20, 31))) for _ in range(rank)]
    est = [chance.randint(1, 8) if chance.random() < 0.2 else 1 for _ in range(rank)]
    return _record(chance, "tiled", dtype, address, dims, strides, est, swizzle) | {"box": box}


def _random_im2col(chance: random.Random, address: int) -> dict[str, Any]:
    rank, dtype, swizzle = chance.randint(3, 5), chance.choice((0, 6, 7, 9)), chance.randrange(4)
    dims = [chance.choice((64, 128, 256)), *(chance.randint(8, 200) for _ in range(rank - 1))]
    strides = list(itertools.accumulate([dims[0] * SIZES[dtype], *dims[1:-1]], lambda x, y: x * y))
    channels = 16 * chance.randint(1, (16, 2, 4, 8)[swizzle]) // SIZES[dtype]
    corner = [[chance.randint(-16, 15) for _ in range(rank - 2)] for _ in range(2)]
    est = [chance.randint(1, 3) for _ in range(rank)]
    more = {"lo": corner[0], "hi": corner[1], "ch": channels, "px": chance.choice((1, 2, 8, 64, 128, 256, 1024))}
    return _record(chance, "im2col", dtype, address, dims, strides, est, swizzle) | more


def _record(
    chance: random.Random, kind: str, dtype: int, address: int, dims: list[int], strides: list[int], est: list[int], sw: int
) -> Any:
    names = {
        "kind": kind,
        "dtype": dtype,
        "rank": len(dims),
        "a": address + 16 * chance.randrange(1 << 16),
        "dims": dims,
        "strides": strides,
    }
    return names | {"est": est, "il": 0, "sw": sw, "l2": chance.randrange(4), "oob": chance.randrange(2) if dtype in FLOATS else 0}


def encode_all(count: int) -> list[dict[str, Any]]:
    """The variations and as many random maps, in the context of a backend."""
    backend = CudaBackend()
    address = backend.alloc(1 << 21)
    with backend.current():
        return [encode_with_driver(record) for record in (*variations(address), *itertools.islice(random_records(address), count))]


def _ours(record: dict[str, Any]) -> str | None:
    try:
        return encoded(record).hex()
    except UsageError:
        return None


def test_the_backend_encodes_like_consan() -> None:
    info = decode(data(next(record for record in records() if record["kind"] == "im2col" and not record["rc"])))
    assert CudaBackend().tensor_map(info) == encode(info)


def test_our_bytes_and_refusals_are_the_drivers() -> None:
    made = encode_all(2000)
    assert sum(not record["rc"] for record in made) > 1000
    wrong = [record for record in made if _ours(record) != (None if record["rc"] else data(record).hex())]
    assert wrong == []


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("[\n" + ",\n".join(json.dumps(record) for record in encode_all(600)) + "\n]\n")
