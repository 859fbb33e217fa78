"""Which PTX an image stands for. Machine code that a program has linked is known by its bytes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from consan._errors import ConsanError, NotSupported, UsageError
from consan.instrument.ptx import PtxSyntaxError
from consan.libcuda.texts.places import KernelPlaces
from consan.native.images import Links
from consan.toolchain.fatbin import entries

DATA = Path(__file__).parent / "data"
ELF = b"\x7fELF\2"
PTX = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n\0"
SUMS, VALUES = ((DATA / f"part_{name}.fatbin").read_bytes() for name in ("sums", "values"))


def linked(*inputs: bytes, code: bytes = ELF) -> Links:
    links = Links()
    for each in inputs:
        links.add(1, 7, each)
    links.make(1, 7, code)
    return links


@pytest.mark.parametrize("second", [VALUES, b"!<arch>\n" + VALUES, ELF + b"\0\0\0" + VALUES], ids=["fat binary", "library", "object"])
def test_machine_code_stands_for_what_it_was_made_from(second: bytes) -> None:
    links = linked(SUMS, second)
    found = links.ptx_of(ELF, "sm_90a")
    assert found is not None
    assert found[1].count(".entry ") == 2
    assert links.ptx_of(ELF + b"other", "sm_90a") is None
    links.add(1, 8, ELF)
    links.make(1, 8, ELF + b"again")
    assert links.ptx_of(ELF + b"again", "sm_90a") == found, "linked from what was linked"


def test_a_fat_binary_without_ptx_is_known_by_the_machine_code_in_it() -> None:
    """As nvcc makes it with -gencode code=sm_90a, from what its ptxas has assembled."""
    whole = (DATA / "code.fatbin").read_bytes()
    code = next(entry.data() for entry in entries(whole) if entry.architecture == 90)
    assert Links().ptx_of(whole, "sm_90a") is None
    assert linked(PTX, code=code[:-1] + b"?").ptx_of(whole, "sm_90a") is None
    links = linked(PTX, code=code)
    assert links.ptx_of(whole, "sm_90a") == ("", PTX[:-1].decode())
    assert links.ptx_of(whole + whole, "sm_90a") is None, "of several, all would have to be known"


def test_a_linker_that_has_gone_leaves_nothing_to_the_next_of_its_handle() -> None:
    links = linked(SUMS, VALUES)
    links.make(1, 7, b"")
    links.add(1, 7, PTX)
    links.make(1, 7, ELF + b"second")
    assert links.ptx_of(ELF + b"second", "sm_90a") == ("", PTX[:-1].decode())


def test_what_is_no_ptx() -> None:
    for inputs in ((), (b"LTO-IR",), (ELF,)):
        with pytest.raises(NotSupported, match="linked from code that is no PTX"):
            linked(*inputs).ptx_of(ELF, "sm_90a")
    with pytest.raises(NotSupported, match="it holds no PTX"):
        Links().ptx_of(b"text", "sm_90a")
    with pytest.raises(NotSupported, match="machine code that has no PTX, for _Z8value_ofi, weight"):
        linked(SUMS, ELF + b"cubin").ptx_of(ELF, "sm_90a")
    assert linked(PTX, ELF + b"unused").ptx_of(ELF, "sm_90a") is not None, "what it lacks it does not need"


CHANGES = st.lists(st.tuples(st.integers(0, len(SUMS + VALUES) - 1), st.integers(0, 255)), min_size=1, max_size=6)


def test_an_entry_that_claims_to_be_enormous() -> None:
    """The size in the head of its Zstandard frame is not that of the entry."""
    data = bytearray(SUMS)
    data[116] = 208
    with pytest.raises(UsageError, match="it claims too many bytes"):
        Links().ptx_of(bytes(data), "sm_90a")


@given(CHANGES, st.integers(0, len(SUMS + VALUES)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_damaged_parts_raise_errors_that_are_expected(changes: list[tuple[int, int]], length: int, as_library: bool) -> None:
    data = bytearray(SUMS + VALUES)
    for at, value in changes:
        data[at] = value
    image = bytes(data[:length]) if length % 4 == 0 else bytes(data)
    found = None
    with contextlib.suppress(ConsanError, PtxSyntaxError):
        found = linked(b"!<arch>\n" + image).ptx_of(ELF, "sm_90a") if as_library else Links().ptx_of(image, "sm_90a")
    assert found is None or found[1]


def test_machine_code_that_a_compiler_has_left_beside_its_ptx_is_known(tmp_path: Path) -> None:
    """Also if another compilation of the same name writes over it."""
    links = Links()
    links.kept = tmp_path
    (tmp_path / "k.sm_90a.cubin").write_bytes(ELF + b"first")
    assert not links.may_know(ELF + b"first"), "without PTX nothing is known of it"
    (tmp_path / "k.sm_90a.ptx").write_bytes(PTX)
    assert links.may_know(ELF + b"first")
    assert links.ptx_of(ELF + b"first", "sm_90a") == ("", PTX[:-1].decode())
    assert not links.may_know(ELF + b"second")
    (tmp_path / "k.sm_90a.cubin").write_bytes(ELF + b"second")
    os.utime(tmp_path / "k.sm_90a.cubin", (1, 1))
    assert links.may_know(ELF + b"second")
    assert links.may_know(ELF + b"first")


def test_a_fat_binary_of_kept_machine_code(tmp_path: Path) -> None:
    """As CuTe DSL loads what it has compiled."""
    whole = (DATA / "code.fatbin").read_bytes()
    links = Links()
    links.kept = tmp_path
    (tmp_path / "k.cubin").write_bytes(next(entry.data() for entry in entries(whole) if entry.architecture == 90))
    (tmp_path / "k.ptx").write_bytes(PTX)
    assert links.may_know(whole)
    assert links.ptx_of(whole, "sm_90a") == ("", PTX[:-1].decode())


def test_lines_that_a_framework_has_left_are_those_of_ptx_without_lines(tmp_path: Path) -> None:
    links = Links()
    links.kept = tmp_path
    (tmp_path / "k.places").write_text(KernelPlaces("a.py", 3).store())
    assert links.may_know(PTX)
    found = links.ptx_of(PTX, "sm_90a")
    assert found is not None
    assert '.file 1 "a.py"' in found[1]
    assert ".loc 1 3 0" in found[1]
