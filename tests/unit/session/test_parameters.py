"""The parameters of a launch, as the driver is given them: by pointers and in a buffer, and never guessed."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from consan.instrument.ptx import parse
from consan.session.modules.parameters import DeclaredSizes

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[12], .param .align 64 .b8 d[128]) { ret; }
.visible .entry none() { ret; }
"""
VALUES = (b"\x07", bytes(range(8)), bytes(range(12)), bytes(range(128)))
PARAMS = DeclaredSizes.of(parse(PTX), "k")


def pointed(values: tuple[bytes, ...]) -> Any:
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
    return (ctypes.c_void_p * len(values))(*map(ctypes.addressof, buffers)), buffers


def buffered(data: bytes, size: int, *more: int) -> Any:
    held = ctypes.create_string_buffer(data, len(data)), ctypes.c_size_t(size)
    extra = (ctypes.c_void_p * (5 + len(more)))(1, ctypes.addressof(held[0]), 2, ctypes.addressof(held[1]), *more, 0)
    return extra, held


def test_pointers() -> None:
    pointers, _values = pointed(VALUES)
    assert PARAMS.given(ctypes.addressof(pointers)) == VALUES
    pointers[1] = None
    assert PARAMS.given(ctypes.addressof(pointers)) is None


def test_a_buffer() -> None:
    data = VALUES[0] + bytes(7) + VALUES[1] + VALUES[2] + bytes(36) + VALUES[3]
    for size, found in ((len(data), VALUES), (len(data) - 1, None)):
        extra, _values = buffered(data, size)
        assert PARAMS.given(0, ctypes.addressof(extra)) == found


@pytest.mark.parametrize("keys", [(), (1,), (3,)])
def test_a_buffer_that_lacks_something_or_has_more(keys: tuple[int, ...]) -> None:
    words = [word for key in keys for word in (key, 4096)]
    extra = (ctypes.c_void_p * (len(words) + 1))(*words, 0)
    assert PARAMS.given(0, ctypes.addressof(extra)) is None


def test_values_that_follow_each_other() -> None:
    data = b"".join(VALUES)
    assert PARAMS.divided(data) == VALUES
    assert (PARAMS.divided(data[:-1]), PARAMS.divided(data + b"1"), PARAMS.divided(b"")) == (None, None, None)


def test_no_parameters() -> None:
    assert DeclaredSizes.of(parse(PTX), "none").given(None) == ()
    assert PARAMS.given(None) is None


def test_a_size_that_is_left_open_is_not_guessed() -> None:
    params = DeclaredSizes.of(parse(PTX.replace("c[12]", "c[]")), "k")
    pointers, _values = pointed(VALUES)
    assert params.given(ctypes.addressof(pointers)) is None


def test_computed_values_must_fit() -> None:
    assert PARAMS.fitting(VALUES) == VALUES
    assert PARAMS.fitting(VALUES[:3]) is None
    assert PARAMS.fitting((b"12", *VALUES[1:])) is None
