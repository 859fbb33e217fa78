"""The shadow runtime that modules are linked with: compiled once for each variant and architecture, and kept on disk."""

from __future__ import annotations

import functools

from consan import late
from consan.instrument.runtime import RuntimeLibrary, Variant, load, runtime_architecture
from consan.toolchain.cache import Cache, key


def library_for(variant: Variant, target: str) -> RuntimeLibrary:
    """The runtime library for a module's variant and target."""
    return runtime_library(variant, runtime_architecture(target))


@functools.cache
def runtime_library(variant: Variant, architecture: str) -> RuntimeLibrary:
    """The shadow runtime of one variant: compiled once, cached on disk."""
    return load(variant, architecture, compile_runtime)


def compile_runtime(source: str, architecture: str, defines: dict[str, str]) -> str:
    """Compile the shadow runtime, through the disk cache. Implements `instrument.runtime.Compiler`."""

    def compile_now() -> str:
        options = ("-rdc=true",)
        return late.nvrtc.compile_ptx(source, name="consan_runtime.cu", arch=architecture, defines=dict(defines), options=options).ptx

    return Cache().fetch_text(key("runtime", source, architecture, *sorted(f"{k}={v}" for k, v in defines.items())), compile_now)
