"""The little of torch that a program of several ranks needs, where torch is not installed: tensors are NumPy arrays with torch's methods.

Not handled: all else; a name that is missing is an error that says so.
"""

from __future__ import annotations

import math
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NoReturn

import numpy as np

from consan._errors import NotSupported

STANDS_IN: Final = "__consan_stand_in__"
_TYPES: Final = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_SHORT: Final = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64", "short": "int16"}
_DEVICE: Final = SimpleNamespace(type="cuda", index=0)


class StandInTensor(np.ndarray[Any, Any]):
    """A NumPy array with methods of a tensor."""

    device: Any = _DEVICE
    is_cuda = True

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
        self[...] = other
        return self

    def fill_(self, value: Any) -> StandInTensor:
        """Set all elements."""
        self[...] = value
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
        """There is one memory."""
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        """The array."""
        return self.view(np.ndarray)

    def contiguous(self) -> StandInTensor:
        """With strides of a new tensor."""
        return _tensor(np.ascontiguousarray(self))


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


def full(size: Any, value: Any, *, dtype: Any = None, device: Any = None) -> StandInTensor:
    """`torch.full`."""
    return _tensor(np.full(size, value, dtype or np.result_type(type(value)).name.replace("float64", "float32")))


def tensor(data: Any, *, dtype: Any = None, device: Any = None) -> StandInTensor:
    """`torch.tensor`."""
    made = np.array(data, dtype)
    return _tensor(made.astype(np.float32) if dtype is None and made.dtype == np.float64 else made)


def arange(*bounds: Any, dtype: Any = None, device: Any = None) -> StandInTensor:
    """`torch.arange`."""
    return _tensor(np.arange(*bounds, dtype=dtype))


def _random(draw: str) -> Any:
    state = np.random.default_rng(0)
    return lambda *size, dtype=None, device=None: _tensor(getattr(state, draw)(_shape(size)).astype(dtype or "float32"))


def _assert_close(actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-6, **other: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol, atol)


def _functions() -> dict[str, Any]:
    like = {f"{name}_like": lambda other, value=value, **how: full(other.shape, value, dtype=other.dtype)
            for name, value in {"empty": 0, "zeros": 0, "ones": 1}.items()}  # fmt: skip
    types = (
        {name: np.dtype(name) for name in _TYPES} | {short: np.dtype(name) for short, name in _SHORT.items()} | {"bool": np.dtype("bool")}
    )
    return {
        "Tensor": StandInTensor, "empty": empty, "zeros": empty, "full": full, "tensor": tensor, "arange": arange, **like, **types,
        "ones": lambda *size, dtype=None, device=None: empty(*size, dtype=dtype).fill_(1),
        "rand": _random("random"), "randn": _random("standard_normal"), "manual_seed": lambda seed: None,
        "device": lambda *name: _DEVICE, "equal": lambda one, other: bool(np.array_equal(one, other)),
        "cat": lambda tensors, dim=0: _tensor(np.concatenate(tensors, dim)),
        "allclose": lambda one, other, **how: bool(np.allclose(one, other, **how)),
    }  # fmt: skip


def modules() -> dict[str, ModuleType]:
    """The modules by their names, those of `torch.distributed` empty."""
    cuda = {"set_device": lambda device: None, "current_device": lambda: 0, "synchronize": lambda device=None: None,
            "is_available": lambda: True, "device_count": lambda: 1}  # fmt: skip
    contents = {
        "torch": _functions(), "torch.cuda": cuda, "torch.testing": {"assert_close": _assert_close},
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
