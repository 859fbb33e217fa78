"""Found by the interpreters that a program under `consan run` starts: hands kernels to consan, then lets the next sitecustomize run.

Where the program runs with the interposer (consan/native), that hands the kernels over, and frameworks are prepared for it.

Nothing is imported until the process imports a framework that brings kernels. Another interpreter than consan's is left alone.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
from typing import Any

_VARIABLE = "_CONSAN_CHILDREN"  # that of consan.native.python.interpreters
_FRAMEWORKS = ("cupy", "cupyx", "triton", "numba", "numba_cuda_mlir", "cuda", "cutlass", "torch", "warp", "tilelang", "helion", "jax")
_HERE = os.path.dirname(os.path.abspath(__file__))


class _Trigger:
    """A finder that finds nothing itself: at the first import of a framework it arms consan and asks the others."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that the finders give once consan is armed."""
        if name.partition(".")[0] not in _FRAMEWORKS:
            return None
        sys.meta_path.remove(self)
        if "native" in self._given:
            from consan.native.python import frameworks

            frameworks.prepare(self._given["native"])
        else:
            from consan.process import children

            children.arm(self._given)
        found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if hasattr(finder, "find_spec"))
        return next((spec for spec in found if spec is not None), None)


def _arm() -> None:
    given = json.loads(os.environ.get(_VARIABLE, "{}"))
    if given and os.path.realpath(sys.prefix) == given["prefix"] and importlib.util.find_spec("consan") is not None:
        sys.meta_path.insert(0, _Trigger(given))


def _next() -> None:
    """Run the sitecustomize that this one hides."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_arm()
_next()
