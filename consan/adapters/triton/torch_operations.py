"""The bytes that an operation of torch reads and writes, for a comparison with the launches in other streams.

Tensors on "cuda" count: those that were made there, and the results of functions of such tensors. A tensor of the result with a storage of
its own is written, and so are the first argument of a function whose name ends with one underscore, and `out`; all tensors of the
arguments are read then. A result that is a view has touched nothing. While streams are compared, a copy to the host is a copy, as on a GPU.

Not handled: tensors that `.cuda()` or `.to("cuda")` gives of the host's (they are the same tensor here: a note says so), and
what functions do to storages that are in none of their arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from consan.adapters.triton.host import without_modes
from consan.adapters.triton.streams import CurrentStream
from consan.dataclass import dataclass
from consan.session.comparing.array_rows import HOST, Placed

# They copy to the host, which waits.
_TO_HOST: Final = frozenset(
    ("item", "tolist", "cpu", "numpy", "equal", "allclose", "__bool__", "__int__", "__float__", "__index__", "__repr__", "__format__")
)
_SETS: Final = frozenset(("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__iand__", "__ior__", "__ixor__"))
_ALIASED: Final = "tensors that .cuda() or .to() brings to the device are those of the host here: what torch does to them is not compared"


@dataclass(frozen=True)
class _Extents:
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


@dataclass
class TorchOperations:
    """The functions of torch that a program calls."""

    now: CurrentStream
    _on_device: set[int] = field(default_factory=set)  # storages

    def done(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, *, asked: bool) -> Any:
        """Tell the session of a function that has run; gives its result. `asked`: its arguments name the device."""
        given, made, streams = list(_tensors([*args, *kwargs.values()])), list(_tensors(result)), self.now.session.streams
        ours = [each for each in given if _storage(each) in self._on_device]
        known = {_storage(each) for each in given}
        fresh = [each for each in made if _storage(each) not in known]
        (self._on_device.update if asked or ours else self._on_device.difference_update)(map(_storage, fresh))
        to_host = bool(ours) and (name in _TO_HOST or (name == "to" and any(str(each) == "cpu" for each in (*args, *kwargs.values()))))
        if streams.compares:
            if asked and made and not (fresh or ours):
                self.now.session.note(_ALIASED)
            self._tell(name, ours, self._written(name, given, kwargs, fresh), to_host=to_host)
        if to_host:
            streams.host_waits(self.now.get())
            self._on_device.difference_update(map(_storage, fresh))
        return result.clone() if to_host and streams.compares and made and not fresh else result

    def _written(self, name: str, given: Sequence[Any], kwargs: Mapping[str, Any], fresh: Sequence[Any]) -> list[Any]:
        in_place = name in _SETS or (name.endswith("_") and not name.endswith("__"))
        found = [*(() if "empty" in name else fresh), *_tensors(kwargs.get("out")), *(given[:1] if in_place else ())]
        return [each for each in found if _storage(each) in self._on_device]

    def _tell(self, name: str, read: Sequence[Any], written: Sequence[Any], *, to_host: bool) -> None:
        if written or to_host:
            places = [_placed(each) for each in read], [_placed(each) for each in written]
            self.now.session.streams.operated(f"torch's {name}", self.now.get(), *places, owners=[*read, *written])


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors with memory in a value, or in a sequence of values."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "untyped_storage") and _has_memory(value):
        yield value


def _has_memory(tensor: Any) -> bool:
    """Not those that compilers work with (Helion, torch.compile): they refuse some questions, or have no storage."""
    with without_modes():
        if hasattr(tensor, "fake_mode") or tensor.device.type != "cpu" or tensor.is_sparse:
            return False
        return bool(_storage(tensor))


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _placed(tensor: Any) -> Placed:
    size = int(tensor.element_size())
    return int(tensor.data_ptr()) + HOST, _Extents(tuple(tensor.shape), tuple(step * size for step in tensor.stride()), size)
