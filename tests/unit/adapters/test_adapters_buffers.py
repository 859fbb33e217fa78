"""The buffers of launches that frameworks make: which arguments tell their address and size, and what the session makes of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from consan.adapters.buffers import buffers
from consan.reports.source.variables import Argument
from consan.session.planning.options import SessionOptions
from consan.session.session import Session


def interface(address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Any:
    """As CuPy and Numba tell their arrays."""
    return SimpleNamespace(__cuda_array_interface__={"data": (address, False), "shape": shape, "typestr": "<f4", "strides": strides})


class Tensor:
    """As torch tells its tensors."""

    def __init__(self, address: int, count: int, *, contiguous: bool = True, is_cuda: bool = True) -> None:
        self.address, self.count, self.contiguous, self.is_cuda = address, count, contiguous, is_cuda

    def data_ptr(self) -> int:
        return self.address

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return 2

    def is_contiguous(self) -> bool:
        return self.contiguous


class OfStructs:
    """An array of Warp whose elements are structs."""

    @property
    def __cuda_array_interface__(self) -> Any:
        raise TypeError("issubclass() arg 1 must be a class")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (interface(0x1000, (4, 8)), Argument("argument 2", 0x1000, 128, "out", 4)),
        (Tensor(0x2000, 10), Argument("argument 2", 0x2000, 20, "out", 2)),
        (SimpleNamespace(handle=0x3000, size=512), Argument("argument 2", 0x3000, 512, "out")),  # cuda.core.Buffer
        (interface(0x1000, (4, 1, 8), (32, 99, 4)), Argument("argument 2", 0x1000, 128, "out", 4)),  # as Warp tells its arrays
        (interface(0x1000, (4, 8), (64, 4)), None),
        (interface(0, (0,)), None),
        (Tensor(0x2000, 10, contiguous=False), None),
        (Tensor(0x2000, 10, is_cuda=False), None),
        (3, None),
        (OfStructs(), None),
        (0x4000, None),  # a bare address has no size
    ],
)
def test_arguments_that_are_buffers(value: Any, expected: Argument | None) -> None:
    assert buffers([1, value], ("n", "out")) == ((expected,) if expected else ())


def test_names_are_left_out_where_they_are_not_known() -> None:
    assert buffers([interface(0x1000, (4,))]) == (Argument("argument 1", 0x1000, 16, element=4),)


def test_the_session_names_addresses_by_told_launches() -> None:
    session, prepared = Session(SessionOptions(device="cpu"), private=True), SimpleNamespace(number=5, address_name=None)
    first = buffers([interface(0x1000, (4,)), interface(0x2000, (4,))], ("x", "out"))
    for _ in range(200):  # equal launches are one
        session.launched(prepared, "k", first)  # type: ignore[arg-type]
    assert session.names.name(5, "k", 0x2004, 0x2008) == "element 1 of argument 2 (out)"
    assert session.names.name(5, "k", 0x2010, 0x2014) == "directly past the end of argument 2 (out, 16 bytes)"
    session.launched(prepared, "k", buffers([interface(0x2000, (4,)), interface(0x1000, (4,))], ("x", "out")))  # type: ignore[arg-type]
    assert session.names.name(5, "k", 0x2004, 0x2008) == "", "launches with other buffers name nothing"
