"""The little of torch that a program of several ranks needs, where torch is not installed: tensors are NumPy arrays with torch's methods.

Reads and writes of methods and functions in symmetric memory are compared with launches of other ranks.

Not handled: all else; a name that is missing is an error that says so.
"""

from __future__ import annotations

import functools
import math
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NoReturn

import numpy as np

from consan._errors import NotSupported
from consan.ranks.crew import current

STANDS_IN: Final = "__consan_stand_in__"
_TYPES: Final = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SHORT: Final = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64", "short": "int16"}
_DEVICE: Final = SimpleNamespace(type="cuda", index=0)
# Methods of an array that read it, those that copy it to the host, and those that write it.
_READ: Final = ("argmax", "argmin", "argsort", "astype", "choose", "compress", "copy", "cumprod", "cumsum", "dot", "flatten", "nonzero",
                "repeat", "round", "searchsorted", "take", "trace")  # fmt: skip
_TO_HOST: Final = ("__bool__", "__complex__", "__float__", "__format__", "__index__", "__int__", "__repr__", "__str__", "item", "tobytes",
                   "tolist")  # fmt: skip
_WRITE: Final = ("fill", "partition", "put", "sort")


def _operated(name: str, reads: Any, writes: Any = (), *, certain: bool = True, to_host: bool = False) -> None:
    """Report an operation to the ranks. Values that are no tensors are left out."""
    crew = current()
    if crew is not None and crew.operations is not None:
        tensors = ([each for each in some if isinstance(each, StandInTensor)] for some in (reads, writes))
        crew.operations.done(name, *tensors, certain=certain, to_host=to_host)


def _telling(name: str, function: Any, *, writes: bool = False, to_host: bool = False) -> Any:
    """A function of tensors that the session hears of. `writes`: it changes the first one."""

    @functools.wraps(function)
    def made(*args: Any, **how: Any) -> Any:
        result = function(*args, **how)
        given = [part for each in args for part in (each if isinstance(each, (list, tuple)) else (each,))]
        arrays = [each for each in given if isinstance(each, np.ndarray)]
        new = [result] if not any(np.may_share_memory(result, each) for each in arrays if isinstance(result, np.ndarray)) else []
        _operated(name, given[1:] if writes else given, given[:1] if writes else new, to_host=to_host)
        return result

    return made


class StandInTensor(np.ndarray[Any, Any]):
    """A NumPy array with methods of a tensor."""

    device: Any = _DEVICE
    is_cuda = True

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **how: Any) -> Any:
        """Arithmetic: it reads its operands, and writes `out`."""
        named = {name: _plain(value) for name, value in how.items()} | ({"out": tuple(map(_plain, out))} if out else {})
        result = getattr(ufunc, method)(*map(_plain, inputs), **named)
        in_place = method == "at"
        made = () if in_place else out or tuple(map(_tensor, result if isinstance(result, tuple) else (result,)))
        _operated(ufunc.__name__, inputs[1:] if in_place else inputs, inputs[:1] if in_place else made, certain=not in_place)
        return None if in_place else made[0] if len(made) == 1 else made

    def __getitem__(self, key: Any) -> Any:
        """A view; if it is an element or a copy, it has been read."""
        found = super().__getitem__(key)
        if not (isinstance(found, np.ndarray) and np.may_share_memory(found, self)):
            part = _part(self, key)
            _operated("__getitem__", [self if part is None else part], [found], certain=part is not None)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a part."""
        part = _part(self, key)
        super().__setitem__(key, value)
        _operated("__setitem__", [value], [self if part is None else part], certain=part is not None)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.__array_interface__["data"][0])

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self.itemsize)

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements."""
        steps = tuple(step // self.itemsize for step in self.strides)
        return steps if dim is None else steps[dim]

    def copy_(self, other: Any) -> StandInTensor:
        """Take the values of another one."""
        np.copyto(_plain(self), _plain(other), casting="unsafe")
        _operated("copy_", [other], [self])
        return self

    def fill_(self, value: Any) -> StandInTensor:
        """Set all elements."""
        _plain(self)[...] = value
        _operated("fill_", [value], [self])
        return self

    def zero_(self) -> StandInTensor:
        """Set all elements to zero."""
        return self.fill_(0)

    def clone(self) -> StandInTensor:
        """A copy."""
        return _tensor(self.copy())

    def to(self, *args: Any, **named: Any) -> StandInTensor:
        """With another type; all devices are one."""
        types = [value for value in (*args, *named.values()) if isinstance(value, np.dtype)]
        return _tensor(self.astype(types[0])) if types else self

    def cuda(self, *args: Any) -> StandInTensor:
        """There is one memory."""
        return self

    def cpu(self) -> StandInTensor:
        """A copy for the host."""
        made = _tensor(_plain(self).copy())
        _operated("cpu", [self], to_host=True)
        return made

    def record_stream(self, stream: Any) -> None:
        """Nothing: memory is given to no other tensor while there is this one."""

    def numpy(self) -> np.ndarray[Any, Any]:
        """The array, as a copy for the host."""
        return self.cpu().view(np.ndarray)

    def contiguous(self) -> StandInTensor:
        """With strides of a new tensor."""
        return _tensor(np.ascontiguousarray(self))


for _names, _how in ((_READ, {}), (_TO_HOST, {"to_host": True}), (_WRITE, {"writes": True})):
    for _name in _names:
        setattr(StandInTensor, _name, _telling(_name, getattr(np.ndarray, _name), **_how))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, StandInTensor) else value


def _part(tensor: StandInTensor, key: Any) -> StandInTensor | None:
    """The elements that a key names; None if they are chosen by values."""
    keys = key if isinstance(key, tuple) else (key,)
    alone = any(each is Ellipsis for each in keys)
    found = _plain(tensor)[keys if alone else (*keys, ...)]
    return found.view(StandInTensor) if np.may_share_memory(found, tensor) else None


def _tensor(array: Any) -> StandInTensor:
    return np.asarray(array).view(StandInTensor)


def from_bytes(found: np.ndarray[Any, Any], dtype: Any) -> StandInTensor:
    """The bytes of an array as a tensor; a rest that is no element is left out."""
    kind = np.dtype("float32" if dtype is None else dtype)
    return found[: found.nbytes // kind.itemsize * kind.itemsize].view(kind).view(StandInTensor)


def _shape(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def empty(*size: Any, dtype: Any = None, device: Any = None, **other: Any) -> StandInTensor:
    """`torch.empty`."""
    return _tensor(np.zeros(_shape(size), dtype or "float32"))


def _new(name: str, array: Any) -> StandInTensor:
    """A tensor that an operation has filled."""
    made = _tensor(array)
    _operated(name, (), [made])
    return made


def zeros(*size: Any, dtype: Any = None, device: Any = None, **other: Any) -> StandInTensor:
    """`torch.zeros`."""
    return _new("zeros", empty(*size, dtype=dtype))


def full(size: Any, value: Any, *, dtype: Any = None, device: Any = None) -> StandInTensor:
    """`torch.full`."""
    return _new("full", np.full(size, value, dtype or np.result_type(type(value)).name.replace("float64", "float32")))


def tensor(data: Any, *, dtype: Any = None, device: Any = None) -> StandInTensor:
    """`torch.tensor`."""
    made = np.array(data, dtype)
    return _new("tensor", made.astype(np.float32) if dtype is None and made.dtype == np.float64 else made)


def arange(*bounds: Any, dtype: Any = None, device: Any = None) -> StandInTensor:
    """`torch.arange`."""
    return _new("arange", np.arange(*bounds, dtype=dtype))


def _random(draw: str) -> Any:
    state = np.random.default_rng(0)
    return lambda *size, dtype=None, device=None: _new(draw, getattr(state, draw)(_shape(size)).astype(dtype or "float32"))


def _assert_close(actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-6, **other: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol, atol)


def _functions() -> dict[str, Any]:
    like = {f"{name}_like": lambda other, value=value, **how: full(other.shape, value, dtype=other.dtype)
            for name, value in {"zeros": 0, "ones": 1}.items()}  # fmt: skip
    like["empty_like"] = lambda other, **how: empty(other.shape, dtype=other.dtype)
    types = (
        {name: np.dtype(name) for name in _TYPES} | {short: np.dtype(name) for short, name in _SHORT.items()} | {"bool": np.dtype("bool")}
    )
    return {
        "Tensor": StandInTensor, "empty": empty, "zeros": zeros, "full": full, "tensor": tensor, "arange": arange, **like, **types,
        "ones": lambda *size, dtype=None, device=None: empty(*size, dtype=dtype).fill_(1),
        "rand": _random("random"), "randn": _random("standard_normal"), "manual_seed": lambda seed: None,
        "device": lambda *name: _DEVICE,
        "equal": _telling("equal", lambda one, other: bool(np.array_equal(_plain(one), _plain(other))), to_host=True),
        "cat": _telling("cat", lambda tensors, dim=0: _tensor(np.concatenate([_plain(each) for each in tensors], dim))),
        "allclose": _telling("allclose", lambda one, other, **how: bool(np.allclose(_plain(one), _plain(other), **how)), to_host=True),
    }  # fmt: skip


def modules() -> dict[str, ModuleType]:
    """The modules by their names, those of `torch.distributed` empty."""
    cuda = {"set_device": lambda device: None, "current_device": lambda: 0, "synchronize": lambda device=None: None,
            "is_available": lambda: True, "device_count": lambda: 1}  # fmt: skip
    contents = {
        "torch": _functions(), "torch.cuda": cuda, "torch.testing": {"assert_close": _telling("assert_close", _assert_close, to_host=True)},
        "torch.ops": {}, "torch.distributed": {}, "torch.distributed._symmetric_memory": {},
    }  # fmt: skip
    made = {name: ModuleType(name) for name in contents}
    for name, module in made.items():
        parent, _, last = name.rpartition(".")
        vars(module).update(contents[name], __path__=[], __getattr__=_missing(name), **{STANDS_IN: True})
        if parent:
            setattr(made[parent], last, module)
    return made


def _missing(module: str) -> Any:
    def refuse(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSupported(f"{module}.{name}: torch is not installed, and consan's replacement does not have it")

    return refuse
