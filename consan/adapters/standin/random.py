"""`cupy.random` of the stand-in: NumPy's generators, results in device memory.

The functions take CuPy's `dtype=`, which NumPy's do not. The numbers are seeded and repeatable, but they are not cuRAND's.

Not handled: distributions NumPy does not have, and bit-equality with a GPU run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from consan.adapters.standin.array import NotInStandin, call, wrap


def _typed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Accept `dtype=` for the result."""

    def sampled(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        result = call(function, args, kwargs)
        return result if dtype is None or not hasattr(result, "astype") else result.astype(dtype)

    return sampled


class Generator:
    """`cupy.random.Generator`."""

    def __init__(self, seed: Any = None) -> None:
        self._generator = np.random.default_rng(seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._generator, name):
            raise NotInStandin(f"cupy.random.Generator.{name}")
        return _typed(getattr(self._generator, name))


class RandomState:
    """`cupy.random.RandomState`."""

    def __init__(self, seed: Any = None) -> None:
        self._state = np.random.RandomState(seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._state, name):
            raise NotInStandin(f"cupy.random.RandomState.{name}")
        return _typed(getattr(self._state, name))


class _Random(ModuleType):
    """`cupy.random`: a state of its own, so that a script's use of `numpy.random` is not disturbed."""

    Generator, RandomState = Generator, RandomState

    def __init__(self) -> None:
        super().__init__("cupy.random")
        self._state = np.random.RandomState()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._state, name):
            raise NotInStandin(f"cupy.random.{name}")
        return _typed(getattr(self._state, name))

    def random(self, size: Any = None, dtype: Any = float) -> Any:
        """Floats in [0, 1)."""
        return wrap(np.asarray(self._state.random_sample(size))).astype(dtype)

    sample = ranf = random_sample = random

    def random_integers(self, low: int, high: int | None = None, size: Any = None) -> Any:
        """Integers from a closed interval."""
        bounds = (1, low + 1) if high is None else (low, high + 1)
        return wrap(np.asarray(self._state.randint(*bounds, size=size)))

    def default_rng(self, seed: Any = None) -> Any:
        """A new generator."""
        return Generator(seed)

    def seed(self, seed: Any = None) -> None:
        """Seed this module's state."""
        self._state.seed(seed)


def build() -> dict[str, ModuleType]:
    """The module `cupy.random`."""
    return {"cupy.random": _Random()}
