"""Memory that a program maps where it has reserved addresses: threads may touch it while it is mapped, and no longer."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from planted import plant

from consan.libcuda import calls, library
from consan.libcuda.memory import virtual_calls
from consan.session.session import Session

Word = ctypes.c_uint64
BYTES = 96
STORE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 to) {
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], 7;
    ret;
}
"""


class Reserving:
    """A program in C, its kernel, and memory at reserved addresses."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        module = self("cuModuleLoadData", STORE.encode())
        self.kernel = self("cuModuleGetFunction", module, b"store")
        self.address = self("cuMemAddressReserve", BYTES, 0, 0, 0)
        self.memory = self("cuMemCreate", BYTES, 0, 0)

    def code(self, name: str, *values: int | bytes | object) -> int:
        return int(getattr(self.library, name)(*(Word(each) if isinstance(each, int) else each for each in values)))

    def __call__(self, name: str, *values: int | bytes) -> int:
        result = Word()
        assert self.code(name, ctypes.byref(result), *values) == 0, name
        return result.value

    def map(self, nbytes: int = BYTES) -> int:
        return self.code("cuMemMap", self.address, nbytes, 0, self.memory, 0)

    def store(self, at: int) -> int:
        place = Word(self.address + at)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(place))
        return self.code("cuLaunchKernel", self.kernel, *[1] * 6, 0, 0, parameters, 0)

    def word(self, at: int = 0) -> int:
        word = ctypes.c_uint32()
        assert self.code("cuMemcpyDtoH_v2", ctypes.byref(word), self.address + at, 4) == 0
        return word.value


@pytest.fixture
def program(session: Session) -> Iterator[Reserving]:
    library.enter(session)
    yield Reserving()
    library.leave()


def kinds(session: Session) -> list[str]:
    return [found.kind for found in session.report().findings]


def test_memory_is_stored_to_where_it_is_mapped(program: Reserving, session: Session) -> None:
    assert program.map() == 0
    assert program.code("cuMemSetAccess", program.address, BYTES, 0, 1) == 0
    assert program.store(4) == 0
    assert (program.word(4), kinds(session)) == (7, [])
    assert program.code("cuMemUnmap", program.address, BYTES) == 0
    assert program.code("cuMemRelease", program.memory) == 0
    assert program.code("cuMemAddressFree", program.address, BYTES) == 0
    assert program.map() == calls.NOT_SUPPORTED


@pytest.mark.parametrize("state", ["reserved", "unmapped", "behind"])
def test_no_thread_touches_what_is_not_mapped(program: Reserving, session: Session, state: str) -> None:
    assert state == "reserved" or program.map() == 0
    assert state != "unmapped" or program.code("cuMemUnmap", program.address, BYTES) == 0
    assert program.store(BYTES if state == "behind" else 0) == 0
    assert kinds(session) == ["out-of-bounds"]


def test_a_planted_fault_lets_unmapped_memory_be_touched(program: Reserving, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, virtual_calls, "arena.hide(place)", "arena.find(place.address)", "_unmap")
    assert program.map() == 0
    assert program.code("cuMemUnmap", program.address, BYTES) == 0
    assert (program.store(0), kinds(session)) == (0, [])


@pytest.mark.parametrize(("wrong", "code"), [("part", calls.NOT_SUPPORTED), ("twice", calls.INVALID_VALUE), ("again", calls.NOT_SUPPORTED)])
def test_what_would_share_memory_is_refused(program: Reserving, wrong: str, code: int) -> None:
    assert wrong == "part" or program.map() == 0
    if wrong == "again":
        assert program.code("cuMemUnmap", program.address, BYTES) == 0
    assert program.map(BYTES // 2 if wrong == "part" else BYTES) == code


def test_mapped_memory_is_not_given_back(program: Reserving) -> None:
    assert program.map() == 0
    assert program.code("cuMemAddressFree", program.address, BYTES) == calls.INVALID_VALUE
    assert program.code("cuMemFree_v2", program.address + 16) == calls.INVALID_VALUE
