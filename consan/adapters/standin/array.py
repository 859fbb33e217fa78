"""`cupy.ndarray` and the NumPy functions of the stand-in.

An `ndarray` holds a NumPy array that aliases the virtual machine's memory and delegates to it; every result passes through `wrap`, which
keeps views of device memory and copies anything else into it. As in CuPy, scalars come back as 0-d arrays, and NumPy arrays are not
converted silently, in either direction.

Not handled: dtypes CuPy has no kernel type for (objects, strings), and names that NumPy does not have either: those end in
`NotInStandin`, one clear sentence.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from consan._errors import NotSupported
from consan.adapters.standin.context import (
    DeviceMemory,
    HostArray,
    MemoryPointer,
    current_stream,
    empty_host,
    host_waits,
    operated,
    owner_of,
    to_device,
)
from consan.adapters.standin.device import Device

# NumPy names that CuPy does not offer, or offers with another meaning.
_NOT_CUPYS = frozenset(
    ("vectorize", "memmap", "matrix", "nditer", "recarray", "chararray", "frompyfunc", "datetime64", "timedelta64", "ndindex")
)
_KINDS = "biufc"
_TO_HOST = frozenset(("item", "tolist", "tobytes", "tofile", "dump", "dumps"))  # methods that copy to the host
_IN_PLACE = frozenset(("fill", "sort", "partition", "put", "itemset", "resize"))  # methods that write to their array
_WRITES_FIRST = frozenset(("copyto", "put", "place", "putmask", "fill_diagonal", "shuffle"))  # functions that write to their first argument


class NotInStandin(NotSupported, AttributeError):  # noqa: N818 - as NotSupported
    """A part of CuPy that the stand-in does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not part of consan's CPU stand-in for CuPy; run on a GPU (--device gpu), or avoid it in this script")
        self.name = name


class ndarray(NDArrayOperatorsMixin):  # noqa: N801 - CuPy's name
    """An array in the virtual machine's memory."""

    __array_priority__ = 100

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C") -> None:
        if memptr is None:
            self._host: HostArray = empty_host(shape, dtype, order)
            return
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        block = np.asarray(memptr.mem)
        self._host = np.ndarray(extents, dtype, buffer=block, offset=memptr.offset, strides=strides, order="F" if order == "F" else "C")

    @property
    def data(self) -> MemoryPointer:
        """The device address of the first element."""
        owner = owner_of(self._host)
        assert owner is not None, "an array of the stand-in lies in device memory"
        return MemoryPointer(owner, int(self._host.__array_interface__["data"][0]) - owner.host)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        described = dict(self._host.__array_interface__)
        return {**described, "data": (self.data.ptr, False), "version": 3}

    @property
    def device(self) -> Device:
        """Its device."""
        owner = owner_of(self._host)
        return Device(0 if owner is None else owner.device)

    def get(self, stream: Any = None, order: str = "C", out: HostArray | None = None, blocking: bool = True) -> HostArray:
        """Copy to a NumPy array, in a stream or in the current one of its device. The host waits for it, but with `blocking=False`."""
        order_of = current_stream(self.device.id) if stream is None else stream.order
        operated("a copy to the host", [self._host], stream=order_of)
        if blocking:
            host_waits(order_of)
        if out is not None:
            out[...] = self._host
            return out
        return np.array(self._host, order="F" if order == "F" else "C")

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy from a NumPy array, in a stream, or in the current one, for which the host waits."""
        self._host[...] = np.asarray(arr)
        operated("a copy from the host", writes=[self._host], stream=None if stream is None else stream.order)
        if stream is None:
            host_waits()

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: Any = None, copy: bool = True) -> ndarray:
        """Convert; a copy unless `copy=False` and nothing changes."""
        if not copy and self._host.dtype == np.dtype(dtype):
            return self
        operated("astype", [self._host])
        return of_host(to_device(self._host.astype(dtype)))

    def __array__(self, *args: Any, **kwargs: Any) -> HostArray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return call(func, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            value = getattr(self._host, name)
        except AttributeError:
            raise NotInStandin(f"cupy.ndarray.{name}") from None
        return functools.wraps(value)(functools.partial(_method, self, name)) if callable(value) else wrap(value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_host":
            object.__setattr__(self, name, value)
        else:
            setattr(self._host, name, value)

    def __getitem__(self, key: Any) -> Any:
        key = _lenient(key)
        # A full index yields a scalar in NumPy and a 0-d view in CuPy: a[3] = ... and a[3][()] keep working.
        result = self._host[key if isinstance(key, tuple) else (key,)]
        found = self._host[_with_ellipsis(key)] if isinstance(result, np.generic) else result
        if owner_of(found) is None:  # an index array selects
            operated("an index", known=False)
        return wrap(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        target, source = self._host[_with_ellipsis(_lenient(key))], _lenient(value)
        self._host[_lenient(key)] = source
        operated("an assignment", [source], [target], known=owner_of(target) is not None)  # an index array selects no view

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self._host)))

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __format__(self, spec: str) -> str:
        return format(self.get()[()] if self._host.ndim == 0 else self.get(), spec)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __index__(self) -> int:
        return self.get().__index__()

    def __copy__(self) -> ndarray:
        operated("a copy", [self._host])
        return of_host(to_device(self._host))

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.__copy__()

    __hash__ = None  # type: ignore[assignment]


def of_host(host: HostArray) -> ndarray:
    """An array over device memory that a NumPy array already aliases."""
    array = ndarray.__new__(ndarray)
    array._host = host
    return array


def wrap(value: Any) -> Any:
    """Turn NumPy results into arrays of the stand-in: views stay views, the rest moves to device memory."""
    if isinstance(value, np.ndarray):
        _check_dtype(value.dtype)
        return of_host(value if owner_of(value) is not None else to_device(value))
    if isinstance(value, np.generic):
        return of_host(to_device(np.asarray(value)))
    if isinstance(value, (tuple, list)):
        items = [wrap(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in _KINDS and dtype.kind != "V":
        raise TypeError(f"Unsupported dtype {dtype}")


def copied(host: HostArray) -> ndarray:
    """A contiguous copy of an array in device memory."""
    operated("a copy", [host])
    return of_host(to_device(np.ascontiguousarray(host)))


def _with_ellipsis(key: Any) -> tuple[Any, ...]:
    """An index whose result is a view, where it can be one."""
    parts = key if isinstance(key, tuple) else (key,)
    return parts if any(part is ... for part in parts) else (*parts, ...)


def _lenient(value: Any) -> Any:
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_lenient(item) for item in value)
    return value


def _strict(value: Any) -> Any:
    """As `_lenient`, but a NumPy array is the mistake that it is in CuPy."""
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_strict(item) for item in value)
    return _lenient(value)


def call(function: Callable[..., Any], args: Any, kwargs: Any, of: Sequence[HostArray] = ()) -> Any:
    """Run a NumPy function on arrays of the stand-in; `out=` gives back the very array that was passed. `of`: the array of a method."""
    out = kwargs.get("out")
    given, named = [_strict(arg) for arg in args], {key: _strict(value) for key, value in kwargs.items()}
    result = function(*given, **named)
    _tell(function.__name__, of, given, named, result)
    if out is None:
        return wrap(result)
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


def _method(array: ndarray, name: str, *args: Any, **kwargs: Any) -> Any:
    # ndarray.item and tolist answer with Python objects, the in-place methods with None: `wrap` lets both pass.
    if name in _TO_HOST:
        return getattr(array.get(), name)(*args, **kwargs)
    return call(getattr(array._host, name), args, kwargs, [array._host])


def _tell(name: str, of: Sequence[HostArray], given: Sequence[Any], named: Mapping[str, Any], result: Any) -> None:
    """Tell the session what a function has read and written. One that gives a view of an array has touched nothing."""
    out = named.get("out")
    written = [
        *(of if name in _IN_PLACE else ()),
        *(out if isinstance(out, tuple) else (out,)),
        *(given[:1] if name in _WRITES_FIRST else ()),
    ]
    owners = [owner_of(each) for each in _arrays(result)]
    if _arrays(written) or any(owner is None for owner in owners) or isinstance(result, (np.generic, bool)):
        operated(name, _arrays([*of, *given, *named.values()]), written)


def _arrays(values: Any) -> list[HostArray]:
    """The NumPy arrays in a value, or in a sequence of values."""
    if isinstance(values, (tuple, list)):
        return [each for value in values for each in _arrays(value)]
    return [values] if isinstance(values, np.ndarray) else []


def array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0, **_: Any) -> ndarray:
    """`cupy.array`: always a new array unless `copy=False`."""
    if isinstance(obj, ndarray) and not copy and obj.device == Device() and (dtype is None or obj._host.dtype == np.dtype(dtype)):
        return obj
    if isinstance(obj, ndarray):
        operated("a copy", [obj._host])
    host = np.array(_lenient(obj), dtype=dtype, ndmin=ndmin, order=order if order in ("C", "F") else "K")  # type: ignore[call-overload]
    _check_dtype(host.dtype)
    return of_host(to_device(host))


def asarray(a: Any, dtype: Any = None, order: Any = None, **_: Any) -> ndarray:
    """`cupy.asarray`: the array itself where it already is one of the current device."""
    return array(a, dtype=dtype, copy=False, order=order or "K")


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """`cupy.ascontiguousarray`."""
    made = asarray(a, dtype)
    return made if made._host.flags.c_contiguous else array(made, order="C")


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> HostArray:
    """`cupy.asnumpy`: a NumPy copy."""
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """`cupy.empty`: what the memory holds."""
    return of_host(empty_host(shape, dtype or float, order))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    """`cupy.full`."""
    value = _lenient(fill_value)
    result = empty_host(shape, np.asarray(value).dtype if dtype is None else dtype, order)
    result[...] = value
    operated("a new array", writes=[result])
    return of_host(result)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """`cupy.zeros`."""
    return full(shape, 0, dtype or float, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """`cupy.ones`."""
    return full(shape, 1, dtype or float, order)


def get_array_module(*args: Any) -> Any:
    """`cupy.get_array_module`: the stand-in if any argument is one of its arrays."""
    return sys.modules["cupy"] if any(isinstance(arg, ndarray) for arg in args) else np


def allocate(size: int) -> MemoryPointer:
    """`cupy.cuda.alloc`."""
    return MemoryPointer(DeviceMemory(size), 0)


def delegate(module: ModuleType, name: str, qualified: str) -> Any:
    """A NumPy name as the stand-in offers it: types and constants as they are, functions wrapped."""
    value = getattr(module, name, None)
    if value is None and name != "newaxis":
        raise NotInStandin(qualified)
    if name in _NOT_CUPYS or name.startswith("_") or isinstance(value, ModuleType):
        raise NotInStandin(qualified)
    if isinstance(value, type) or not callable(value):
        return value
    function = value

    def delegated(*args: Any, **kwargs: Any) -> Any:
        return call(function, args, kwargs)

    delegated.__name__ = delegated.__qualname__ = name
    return delegated
