"""The parameters of a Triton kernel, as Triton's launcher computes them from the arguments and their types in the signature.

Read in `backends/nvidia/driver.py` and `driver.c` of Triton 3.6 and 3.9. launcher.py has the order, and what becomes of tensor descriptors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from consan._errors import UsageError
from consan.session.modules.parameters import DeclaredSizes, Parameters

_FLOATS: Final = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
_WHOLE: Final = (int, bool, type(None))
_ADDRESS_BYTES: Final = 8
_IN_C: Final = {"fp32": b"f", "f32": b"f", "fp64": b"d", "constexpr": b"-", "i1": b"1", "u1": b"1"}  # as launcher.h has them
SCRATCHES: Final = ("global_scratch_size", "profile_scratch_size")  # of each a pointer follows the arguments


class Leaf(NamedTuple):
    """One argument that is no tuple: its type in the signature, its value, its name in messages."""

    type: str
    value: Any
    label: str

    @property
    def refers(self) -> bool:
        """Whether it refers to memory."""
        return self.is_pointer or self.is_descriptor

    @property
    def is_pointer(self) -> bool:
        """Whether it is an address."""
        return self.type.startswith("*")

    @property
    def is_descriptor(self) -> bool:
        """Whether it is a tensor descriptor."""
        return self.type.startswith("tensordesc")

    @property
    def base(self) -> Any:
        """The object that knows the memory: a descriptor holds it."""
        return self.value.base if self.is_descriptor else self.value


def leaves(types: Sequence[Any], values: Sequence[Any], labels: Sequence[str]) -> Iterator[Leaf]:
    """The arguments with tuples flattened and constants left out."""
    for kind, value, label in zip(types, values, labels, strict=True):
        if isinstance(kind, tuple):
            yield from leaves(kind, tuple(value), [f"{label}[{i}]" for i in range(len(kind))])
        elif kind != "constexpr":
            yield Leaf(kind, value, label)


def number_bytes(kind: str, value: Any, label: str) -> bytes:
    """A scalar in its signature type. bf16 is truncated, not rounded, as in Triton's launcher."""
    try:
        if kind == "bf16":
            return struct.pack("<f", value)[2:]
        if kind in _FLOATS:
            return struct.pack(_FLOATS[kind], value)
        size = max(int(kind[1:]) // 8, 1)
        return int(value).to_bytes(size, "little", signed=int(value) < 0)
    except (OverflowError, TypeError, ValueError, struct.error):
        raise UsageError(f"{label}: {value!r} cannot be passed as {kind}") from None


def identities(values: Sequence[Any]) -> tuple[Any, ...] | None:
    """A key of arguments: equal keys give equal parameters. None if one is neither a number nor an array."""
    try:
        return tuple(
            [
                each if each.__class__ in _WHOLE else each.hex() if isinstance(each, float) else each.data_ptr()  # -0.0 == 0.0
                for each in values
            ]
        )
    except AttributeError:
        return None


def kinds_in_c(types: Sequence[Any]) -> bytes | None:
    """The kinds of arguments of these types, for C to read them (launcher.h). None: it cannot read all."""
    found = [_kind_in_c(each) for each in types]
    return b"".join(each for each in found if each) if all(found) else None


def _kind_in_c(kind: Any) -> bytes | None:
    if not isinstance(kind, str) or kind.startswith("*"):
        return b"p" if isinstance(kind, str) else None
    bits = int(kind[1:]) if kind[:1] in ("i", "u") and kind[1:].isdecimal() else 0
    return _IN_C.get(kind) or (b"%d" % (bits // 8) if bits in (8, 16, 32, 64) else None)


def on_gpu(types: Sequence[Any], values: Sequence[Any], metadata: Any, declared: DeclaredSizes) -> Parameters | None:
    """The parameters of a launch on a GPU; None where they cannot be known.

    That is so for scratch memory, which the launcher takes behind us, tensor maps, which the driver encodes, and memory of the host, whose
    address on the device the driver tells.
    """
    if any(getattr(metadata, name, 0) for name in SCRATCHES):
        return None
    try:
        found = [_on_gpu(leaf) for leaf in leaves(types, values, [""] * len(types))]
    except (UsageError, ValueError, TypeError, AttributeError):
        return None
    known = [value for value in found if value is not None]
    scratches = len(declared.sizes) - len(known)
    if len(known) < len(found) or not 0 <= scratches <= len(SCRATCHES):
        return None
    return declared.fitting(known + [bytes(_ADDRESS_BYTES)] * scratches)


def _on_gpu(leaf: Leaf) -> bytes | None:
    if leaf.is_descriptor:
        return None
    if not leaf.is_pointer:
        return number_bytes(leaf.type, leaf.value, leaf.label)
    address = leaf.value
    if address is not None and not isinstance(address, int):
        if getattr(getattr(address, "device", None), "type", "") != "cuda":
            return None
        address = address.data_ptr()
    return int(address or 0).to_bytes(_ADDRESS_BYTES, "little")
