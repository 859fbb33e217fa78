"""Arguments on the device: what each kind of value becomes, what is copied back, and which buffers the report can name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from consan._errors import UsageError
from consan.backends.virtual import VirtualBackend
from consan.launching.placement import ArrayStruct, OnDevice, Placement, placed, pointer
from consan.reports.source.variables import Argument
from consan.tensormap.argument import TensorMap


@dataclass
class Session:
    """What a placement needs of one."""

    backend: VirtualBackend = field(default_factory=VirtualBackend)
    device_lost: bool = False


def _freed(backend: VirtualBackend, address: int) -> bool:
    try:
        backend.read(address, 1)
    except Exception:
        return True
    return False


def test_each_kind_of_value() -> None:
    placement, array = Placement(VirtualBackend()), np.arange(4, dtype=np.float32)
    given: list[Any] = [b"\1\2", array, pointer(0x100, 8), pointer(0x200), array, OnDevice(b"map", 0x300, 16)]
    value, first, known, unknown, second, described = placement.parameters(given, "argument")
    address = placement.address(array)
    assert (value, first, second) == (b"\1\2", address.to_bytes(8, "little"), first)
    assert (known, unknown, described) == ((0x100).to_bytes(8, "little"), (0x200).to_bytes(8, "little"), b"map")
    assert placement.buffers == [
        *(Argument("argument 2", address, 16, element=4), Argument("argument 3", 0x100, 8)),
        *(Argument("argument 5", address, 16, element=4), Argument("argument 6", 0x300, 16)),
    ]


def test_a_struct_begins_with_the_address_of_the_copy() -> None:
    placement, array = Placement(VirtualBackend()), np.zeros(4, np.float32)
    assert placement.parameter(ArrayStruct(array, b"rest"), "argument 1") == placement.address(array).to_bytes(8, "little") + b"rest"
    assert placement.buffers == [Argument("argument 1", placement.address(array), 16, element=4)]


def test_a_tensor_map_is_of_the_copy_and_checked() -> None:
    placement, array = Placement(VirtualBackend()), np.zeros((16, 64), np.float16)
    described = TensorMap(array, (8, 64))
    assert placement.parameter(described, "argument 1") == placement.tensor_map(described.at(placement.address(array)))
    assert placement.buffers == [Argument("argument 1", placement.address(array), 2048, element=2)]
    with pytest.raises(UsageError, match="tensor map"):
        placement.tensor_map(described.at(8))


@pytest.mark.parametrize("skipped", [0, 1, 3])
def test_a_copy_keeps_the_alignment_that_it_is_asked_for(skipped: int) -> None:
    placement, array = Placement(VirtualBackend()), np.arange(64, dtype=np.float32)[skipped:]
    address = placement.address(array, 16)
    assert address % 16 == array.__array_interface__["data"][0] % 16
    assert (placement.read(array) == array).all()


def test_at_the_end_arrays_have_the_results_and_memory_is_free() -> None:
    session, array, kept = Session(), np.zeros(4, np.int32), np.zeros(4, np.int32)
    kept.flags.writeable = False
    with placed(session) as placement:
        addresses = [placement.address(array), placement.address(kept)]
        scratch = placement.scratch(64)
        for address in addresses:
            session.backend.write(address, np.full(4, 7, np.int32))
        assert not array.any()
    assert (array == 7).all()
    assert not kept.any()
    assert all(_freed(session.backend, address) for address in (*addresses, scratch))


def test_after_an_error_nothing_is_copied_back() -> None:
    session, array, addresses = Session(), np.zeros(4, np.int32), list[int]()

    def fail() -> None:
        with placed(session) as placement:
            addresses.append(placement.address(array))
            session.backend.write(addresses[0], np.full(4, 7, np.int32))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not array.any()
    assert _freed(session.backend, addresses[0])


def test_a_lost_device_is_left_alone() -> None:
    session, array = Session(), np.zeros(4, np.int32)
    with placed(session) as placement:
        session.backend.write(placement.address(array), np.full(4, 7, np.int32))
        session.device_lost = True
    assert not array.any()
    assert not _freed(session.backend, placement.address(array))
