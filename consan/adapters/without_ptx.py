"""Frameworks whose kernels never are PTX: consan cannot check them, and says so.

cuTile (cuda.tile) compiles a bytecode of its own to machine code. Its launches are listed, and a note names it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

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
