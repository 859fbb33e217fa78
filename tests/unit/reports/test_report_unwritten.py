"""What the text adds to an uninitialised read: where its variable is written, or that nothing writes it."""

from __future__ import annotations

import pytest

from consan.instrument.relations import Stores, SyncPoint
from consan.instrument.sites import Place
from consan.reports.culprits.unwritten import is_array, published_at, with_stores
from consan.reports.model import Access, AsyncInfo, Finding

BULK = Access("bulk store", "cp.async.bulk", file="k.cu", line=8, name="tile[48..51]", asynchronous=AsyncInfo("bulk store"))
READ = Access("read", "ld.shared.f32", file="k.cu", line=9, name="tile[36]")
STORE = Place(40, "@%p1 st.shared.f32 [%r1], %f1;", "k.cu", 5, 3)


def told(access: Access, *places: Place, size: int = 256) -> Finding:
    return with_stores(Finding("uninitialized-read", "k", message="a read", accesses=(access,)), Stores(places, size))


def test_no_store_at_all() -> None:
    finding = told(BULK, size=1024)
    assert finding.message == "the bulk store at k.cu:8 copies 1,024 bytes of tile, and no instruction of this kernel writes tile"
    assert finding.fix == "write tile before k.cu:8, or let k.cu:8 read another array"
    assert told(READ).message == "the read at k.cu:9 reads tile[36], and no instruction of this kernel writes tile"


@pytest.mark.parametrize(("access", "fix"), [(BULK, "let k.cu:5 write all 256 bytes that k.cu:8 copies"), (READ, "such as tile[36]")])
def test_a_store_that_leaves_some_out(access: Access, fix: str) -> None:
    finding = told(access, STORE)
    assert finding.message.endswith("tile is written at k.cu:5")
    assert fix in finding.fix
    assert [each.op for each in finding.accesses] == [access.op, "st.shared.f32"]


def point(opcode: str, line: int, *, always: bool = True) -> SyncPoint:
    return SyncPoint(opcode, Place(line, f"{opcode};", "k.cu", line, 3), always=always)


FENCE, BARRIER = point("fence.proxy.async", 5), point("bar.sync", 6)
PUBLISHED = (
    ((FENCE, BARRIER), "the fence.proxy.async at k.cu:5 and the bar.sync at k.cu:6"),
    ((BARRIER, point("fence.proxy.async", 7)), "the bar.sync at k.cu:6"),
    ((point("fence.proxy.async", 5, always=False), BARRIER), "the bar.sync at k.cu:6"),
    ((FENCE, point("bar.sync", 6, always=False)), ""),
    ((point("bar.arrive", 6),), ""),
)


@pytest.mark.parametrize(("before", "words"), PUBLISHED)
def test_what_a_write_has_to_come_before(before: tuple[SyncPoint, ...], words: str) -> None:
    assert published_at(before, {}) == words


def test_a_write_that_is_missing_has_a_place() -> None:
    finding = with_stores(Finding("uninitialized-read", "k", accesses=(BULK,)), Stores((), 1024), "the bar.sync at k.cu:6")
    assert finding.fix == "write tile before the bar.sync at k.cu:6, or let k.cu:8 read another array"


def test_many_stores_are_counted() -> None:
    places = [Place(40 + line, "st.shared.f32 [%r1], %f1;", "k.cu", line, 3) for line in range(1, 6)]
    assert "k.cu:1 and k.cu:2 and k.cu:3 and at 2 more places" in told(READ, *places).fix


NAMES = {"tile[3]": True, "tile[0..3]": True, "points[1].w": False, "bytes 0..3 of tile": False, "": False}


@pytest.mark.parametrize(("name", "array"), NAMES.items())
def test_names_of_arrays(name: str, array: bool) -> None:
    assert is_array(name) is array


def test_an_atomic_operation_that_alone_writes_has_no_first_value() -> None:
    atomic = Access("atomic read-modify-write", "atom.shared.add.u32", file="k.cu", line=5, column=3, name="count")
    finding = told(atomic, Place(42, "atom.shared.add.u32 %r1, [count], 1;", "k.cu", 5, 3))
    assert finding.message == "the atomic read-modify-write at k.cu:5 changes count, and nothing has written a first value"
    assert finding.fix == "store the first value of count (0 for a sum) in one thread, then put a barrier, before k.cu:5"
    assert finding.accesses == (atomic,)
    assert "also write the rest" in told(atomic, STORE, Place(42, "atom", "k.cu", 7, 3)).fix
