"""Tensor maps as records: the parameters of cuTensorMapEncode*, its result, and the bytes that it wrote.

`tensormaps.json` is a choice of 67 from 705 records that an H200's driver made (tests/gpu/test_tensormap_driver.py makes more), such
that every type, rank, swizzle, interleave, corner sign and so on of the whole is there. `hex` lacks its trailing zeros.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from consan.tensormap.description import DTYPES, INTERLEAVES, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from consan.tensormap.encoding import encode_im2col, encode_tiled

NAMES = {dtype.driver: dtype.name for dtype in DTYPES.values()}
PATH = Path(__file__).with_name("tensormaps.json")


def records() -> list[dict[str, Any]]:
    return json.loads(PATH.read_text())


def data(record: dict[str, Any]) -> bytes:
    return bytes.fromhex(record["hex"] + "0" * (256 - len(record["hex"])))


def expected(record: dict[str, Any]) -> dict[str, Any]:
    """The record in the words of TensorMapInfo."""
    im2col = record["kind"] == "im2col"
    return {
        "dtype": NAMES.get(record["dtype"], f"driver's type {record['dtype']}"),
        "address": record["a"],
        **{name: tuple(record[name]) for name in ("dims", "strides")},
        "box": () if im2col else tuple(record["box"]),
        "element_strides": tuple(record["est"]),
        "interleave": INTERLEAVES[record["il"]],
        "swizzle": SWIZZLES[record["sw"]] if record["sw"] < len(SWIZZLES) else "128 with atoms of 32",
        "l2": L2_PROMOTIONS[record["l2"]],
        "oob": OOB_FILLS[record["oob"]],
        "im2col": im2col,
        "lower": tuple(record.get("lo", ())),
        "upper": tuple(record.get("hi", ())),
        "channels": record.get("ch", 0),
        "pixels": record.get("px", 0),
    }


def encoded(record: dict[str, Any]) -> bytes:
    """What our encoder makes of the record."""
    values = expected(record)
    del values["im2col"]
    if record["kind"] == "im2col":
        del values["box"]
        return encode_im2col(**values)
    for name in ("lower", "upper", "channels", "pixels"):
        del values[name]
    return encode_tiled(**values)
