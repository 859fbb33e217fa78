"""Frameworks whose kernels consan cannot check, and says so.

cuTile (cuda.tile) compiles a bytecode of its own to machine code, never PTX. Its launches are listed, and a note names it.
XLA assembles and launches in its own code, where a Python program on a GPU has no place for consan: a program that uses JAX's GPU is
`incomplete`, and a note says how it can be run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from consan.adapters.seam import Seam


class CuTileAdapter(Seam):
    """Lists the kernels of cuTile."""

    name = "cutile"
    title = "cuTile"
    package = "cuda.tile"
    distribution = "cuda-tile"
    covers = "it makes no PTX: its kernels are listed, not checked"

    def _begin(self, module: ModuleType) -> None:
        self._open.note("cuTile makes no PTX, but machine code of a bytecode of its own: its kernels run as they are, and are not checked")
        if hasattr(module, "launch"):
            self._wrap(module, "launch", self._launch)

    def _launch(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        kernel = args[2] if len(args) > 2 else kwargs.get("kernel")
        function = getattr(kernel, "_pyfunc", kernel)
        self._open.uninstrumented(f"{getattr(function, '__name__', 'a kernel')} (cuTile)")
        return original(*args, **kwargs)


# Flags with which XLA assembles by the process `ptxas`, and in no other way.
BY_PTXAS: Final = "--xla_gpu_enable_libnvptxcompiler=false --xla_gpu_enable_libnvjitlink=false"


class JaxUnseen(Seam):
    """On a GPU: says that the kernels of JAX are not seen, once a program uses its GPU."""

    name = "jax"
    title = "JAX"
    package = "jax._src.xla_bridge"
    distribution = "jax"
    covers = "its kernels are not seen: XLA launches them itself"

    def _begin(self, module: ModuleType) -> None:
        if hasattr(module, "_init_backend"):
            self._wrap(module, "_init_backend", self._started)

    def _started(self, original: Callable[..., Any], platform: str, *args: Any, **kwargs: Any) -> Any:
        if platform in ("cuda", "gpu"):
            self._open.uninstrumented("what JAX launches (XLA, Pallas)")
            self._open.note(
                "XLA launches its kernels itself, and consan does not see them: run the program with --device cpu, or as one that is not"
                f' Python (consan run /path/to/python script.py), with XLA_FLAGS="{BY_PTXAS}"'
            )
        return original(platform, *args, **kwargs)
