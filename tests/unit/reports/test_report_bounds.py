"""Words for accesses outside their array: the index, the last index, and nothing where these are not whole numbers."""

from __future__ import annotations

import pytest

from consan.reports.records.bounds import Extent, extent_named, extent_of, outside
from consan.reports.source.variables import Argument, Layout, Placed, address_name

PLAIN = Extent("out", 128, 256)
ROW = Extent("row", 128, 256, indexed=True)


@pytest.mark.parametrize(
    ("extent", "touched", "reached", "element", "keep"),
    [
        (ROW, (384, 388), (384, 640), "this is row[64], and the last one is row[63]", "at most 63, and reaches 127;"),
        (ROW, (124, 128), (120, 128), "this is row[-1], and the first one is row[0]", "at least 0, and reaches -2;"),
        (Extent("out", 128, 256, ends=True), (384, 388), (384, 388), "in elements of 4 bytes this is element 64, and the last one is 63",
         "at most 63, and reaches 64 or more;"),
        (Extent("out", 128, 256, ends=True), (124, 128), (124, 128), "in elements of 4 bytes this is element -1, and the first one is 0",
         "at least 0, and reaches -1 or less;"),
        (PLAIN, (384, 400), (384, 400), "in elements of 16 bytes this is element 16, and the last one is 15", "at most 15"),
    ],
)  # fmt: skip
def test_the_index_and_its_limit(extent: Extent, touched: tuple[int, int], reached: tuple[int, int], element: str, keep: str) -> None:
    facts = outside(extent, touched, reached)
    assert facts["element"] == f"; {element}"
    assert f": it must be {keep}" in facts["keep"]


@pytest.mark.parametrize(
    ("extent", "touched"),
    [
        (None, (384, 388)),
        (ROW, (386, 390)),  # not aligned to elements
        (Extent("row", 128, 250), (384, 388)),  # no whole number of elements
        (ROW, (130, 134)),
        (ROW, (128, 132)),  # inside
        (ROW, (384, 384)),
    ],
)
def test_no_index_where_there_is_none(extent: Extent | None, touched: tuple[int, int]) -> None:
    assert outside(extent, touched, touched) == {}


@pytest.mark.parametrize("begin", [0x2000 + 64, 0x2000 - 8])
@pytest.mark.parametrize("name", ["", "out"])
def test_the_name_of_an_address_tells_the_buffer(name: str, begin: int) -> None:
    told = address_name([Argument("argument 2", 0x2000, 64, name)], begin, begin + 4)
    assert extent_named(told, begin) == Extent("argument 2 (out)" if name else "argument 2", 0x2000, 64, ends=True)


def test_other_names_tell_no_buffer() -> None:
    assert extent_named("bytes 16..19 of argument 2 (out)", 0x2010) is None


def test_a_shared_variable_and_dynamic_memory() -> None:
    row = Placed("row", 0, 256, element=4, dims=(64,))
    grid = Placed("grid", 256, 256, element=4, dims=(8, 8))
    layout = Layout((row, grid), dynamic=512)
    assert extent_of(layout, "_ZZ1kE3row", 1024, 4) == Extent("row", 0, 256, indexed=True)
    assert extent_of(layout, "row", 1024, 8) == Extent("row", 0, 256)
    assert extent_of(layout, "grid", 1024, 4) == Extent("grid", 256, 256)
    assert extent_of(layout, "more", 1024, 4) == Extent("dynamic shared memory", 512, 512)
    assert extent_of(layout, "", 1024, 4) is None
    assert extent_of(Layout((row,)), "more", 1024, 4) is None
