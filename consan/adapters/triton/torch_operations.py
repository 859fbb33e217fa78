"""The bytes that an operation of torch reads and writes, for a comparison with the launches in other streams.

Tensors on "cuda" count: those that were made there, and the results of functions of such tensors. Each is on a device, in whose current
stream its operations are. A tensor of the result with a storage of
its own is written, and so are the first argument of a function whose name ends with one underscore, and `out`; all tensors of the
arguments are read then. A result that is a view has touched nothing. While streams are compared, a copy to the host is a copy, as on a GPU.

With --ranks the same is compared with launches of other ranks, for tensors of symmetric memory. There `tensor[key] = value` writes the
part that the key names. The elements that a function chooses by values, and those of an operator that is not torch's, are not certain.

Not handled: tensors that `.cuda()` or `.to("cuda")` gives of the host's (they are the same tensor here: a note says so), and
what functions do to storages that are in none of their arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from consan.adapters.distributed.torch_streams import CurrentStream
from consan.adapters.triton.host import without_modes
from consan.dataclass import dataclass
from consan.ranks.crew import HostOperated, current
from consan.session.comparing.array_rows import HOST, Placed

# They copy to the host, which waits.
_TO_HOST: Final = frozenset(
    ("item", "tolist", "cpu", "numpy", "equal", "allclose", "__bool__", "__int__", "__float__", "__index__", "__repr__", "__format__")
)
# They choose elements of a tensor by values.
_CHOOSE: Final = frozenset(("__getitem__", "embedding", "gather", "index_select", "masked_select", "take", "take_along_dim",
                            "index_add_", "index_copy_", "index_fill_", "index_put_", "index_reduce_", "masked_fill_", "masked_scatter_",
                            "put_", "scatter_", "scatter_add_", "scatter_reduce_"))  # fmt: skip
_OVERWRITE: Final = frozenset(("copy_", "fill_", "zero_"))  # they read nothing of the first tensor
_MOVE: Final = frozenset(("to", "cuda"))  # they copy only where the device is another one
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
    _on_device: dict[int, int] = field(default_factory=dict)  # the devices of storages

    def done(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, *, asked: int | None, others: bool = False
    ) -> Any:
        """Tell the session of a function that has run; gives its result. `asked`: the device that its arguments name.

        `others`: an operator that is not torch's.
        """
        given, made, streams = list(_tensors([*args, *kwargs.values()])), list(_tensors(result)), self.now.session.streams
        crew = current()
        shared = [each for each in given if crew is not None and crew.operations is not None and crew.operations.shares(each)]
        self._on_device |= dict.fromkeys(map(_storage, shared), streams.here)
        ours = [each for each in given if _storage(each) in self._on_device]
        source = next((self._on_device[_storage(each)] for each in reversed(ours)), None)
        if asked is not None and source not in (None, asked) and name in _MOVE:  # from one device to another
            result = result.clone()
            made = list(_tensors(result))
        known = {_storage(each) for each in given}
        fresh = [each for each in made if _storage(each) not in known]
        self._placed(fresh, source if asked is None else asked)
        to_host = bool(ours) and (name in _TO_HOST or (name == "to" and any(str(each) == "cpu" for each in (*args, *kwargs.values()))))
        if streams.compares:
            if asked is not None and made and not (fresh or ours):
                self.now.session.note(_ALIASED)
            read = ours[1:] if name in _OVERWRITE and ours and ours[0] is given[0] else ours
            self._tell(name, read, self._written(name, given, kwargs, fresh), source, to_host=to_host)
        if crew is not None and crew.operations is not None:
            if others and shared:
                crew.operations.done(name, shared, shared, certain=False)
            else:
                self._tell_ranks(crew.operations, name, args, kwargs, fresh, to_host=to_host)
        if to_host:
            streams.host_waits(self.now.get(source))
            self._placed(fresh, None)
        if shared and name == "numpy":
            return result.copy()
        return result.clone() if to_host and (streams.compares or shared) and made and not fresh else result

    def _placed(self, tensors: Sequence[Any], device: int | None) -> None:
        """Tensors are on a device; None: on the host."""
        for each in map(_storage, tensors):
            if device is None:
                self._on_device.pop(each, None)
            else:
                self._on_device[each] = device

    def _written(self, name: str, given: Sequence[Any], kwargs: Mapping[str, Any], fresh: Sequence[Any]) -> list[Any]:
        found = [*(() if "empty" in name else fresh), *_tensors(kwargs.get("out")), *(given[:1] if _in_place(name) else ())]
        return [each for each in found if _storage(each) in self._on_device]

    def _tell_ranks(
        self, operations: HostOperated, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], fresh: Sequence[Any], *, to_host: bool
    ) -> None:
        """Report a function that has touched memory to the ranks."""
        changed = list(_tensors(args[:1] if _in_place(name) else ()))
        read, out = list(_tensors([*args[1 if changed else 0 :], *kwargs.values()])), list(_tensors(kwargs.get("out")))
        if not (fresh or changed or out or to_host):
            return
        certain = name not in _CHOOSE
        if name == "__setitem__":
            with without_modes():
                part = args[0][args[1]]
            certain = _storage(part) == _storage(args[0])
            changed = [part] if certain else changed
        made = [] if "empty" in name or to_host else fresh
        read = [] if name.endswith("_like") or name.startswith("new_") else read
        with without_modes():
            touched = ([each for each in some if _storage(each) in self._on_device] for some in (read, [*changed, *out, *made]))
            operations.done(name, *touched, certain=certain, to_host=to_host)

    def _tell(self, name: str, read: Sequence[Any], written: Sequence[Any], source: int | None, *, to_host: bool) -> None:
        """`source`: the device of what is read last. A copy to another one is in its stream. The streams of both wait for each other."""
        if not (written or to_host):
            return
        places = [_placed(each) for each in read], [_placed(each) for each in written]
        targets = [self._on_device[_storage(each)] for each in written[:1]]
        stream = self.now.get(*targets if source is None else [source])
        others = [self.now.get(each) for each in targets if each != stream.context and source is not None]
        for each in others:
            stream.wait(each)
        self.now.session.streams.operated(f"torch's {name}", stream, *places, owners=[*read, *written])
        for each in others:
            each.wait(stream)


def _in_place(name: str) -> bool:
    return name in _SETS or (name.endswith("_") and not name.endswith("__"))


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
