"""The module objects of the stand-in: `cupy`, `cupyx` and what is below them.

Decides which names are the stand-in's own and which come from NumPy.

Not handled: `cupyx.jit`, `cupyx.scipy`, fusion: importing them ends in one clear sentence.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from consan.adapters.standin import array, cuda, generated, kernels, random
from consan.adapters.standin.context import current

_VERSION = "14.2.0"
_OWN: dict[str, Any] = {
    **{name: getattr(array, name) for name in ("ndarray", "array", "asarray", "ascontiguousarray", "asnumpy")},
    **{name: getattr(array, name) for name in ("empty", "full", "zeros", "ones", "get_array_module")},
    "asanyarray": array.asarray,
    "RawKernel": kernels.RawKernel,
    "RawModule": kernels.RawModule,
    "ElementwiseKernel": generated.ElementwiseKernel,
    "ReductionKernel": generated.ReductionKernel,
    "is_available": lambda: True,
    "get_default_memory_pool": cuda.MemoryPool,
    "get_default_pinned_memory_pool": cuda.MemoryPool,
}
_LIKE = {"empty_like": array.empty, "zeros_like": array.zeros, "ones_like": array.ones}


class _Delegating(ModuleType):
    """A module whose other names are NumPy's."""

    __path__: list[str] = []  # noqa: RUF012 - import looks for it on the module

    def __init__(self, name: str, numpy_module: ModuleType) -> None:
        super().__init__(name)
        self._numpy = numpy_module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return array.delegate(self._numpy, name, f"{self.__name__}.{name}")


class _Testing(ModuleType):
    """`cupy.testing`: NumPy's assertions on copies."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("assert_") or not hasattr(np.testing, name):
            raise array.NotInStandin(f"cupy.testing.{name}")
        check = getattr(np.testing, name)

        def asserted(*args: Any, **kwargs: Any) -> None:
            check(*(array.asnumpy(arg) if isinstance(arg, array.ndarray) else arg for arg in args), **kwargs)

        return asserted


class _Cupyx(ModuleType):
    """`cupyx`: pinned host arrays."""

    __path__: list[str] = []  # noqa: RUF012 - import looks for it on the module
    empty_pinned, zeros_pinned, zeros_like_pinned = staticmethod(np.empty), staticmethod(np.zeros), staticmethod(np.zeros_like)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(name) if name.startswith("__") else array.NotInStandin(f"cupyx.{name}")


def _like(create: Any) -> Any:
    def created(a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> array.ndarray:
        template = a._host if isinstance(a, array.ndarray) else np.asarray(a)
        fortran = order == "F" or (order in "AK" and template.flags.f_contiguous and not template.flags.c_contiguous)
        result: array.ndarray = create(template.shape if shape is None else shape, dtype or template.dtype, order="F" if fortran else "C")
        return result

    return created


def build() -> dict[str, ModuleType]:
    """Every module by name."""
    current().session.note("CuPy is consan's CPU stand-in: arrays are computed by NumPy, kernels run on the PTX virtual machine")
    cupy = _Delegating("cupy", np)
    cupy.__dict__.update(_OWN, __version__=_VERSION, **{name: _like(create) for name, create in _LIKE.items()})
    testing, linalg, cupyx = _Testing("cupy.testing"), _Delegating("cupy.linalg", np.linalg), _Cupyx("cupyx")
    below = {**cuda.build(), **random.build(), "cupy.testing": testing, "cupy.linalg": linalg}
    for name, module in below.items():
        if name.count(".") == 1:
            setattr(cupy, name.rpartition(".")[2], module)
    return {"cupy": cupy, "cupyx": cupyx, **below}
