"""A miniature of CuPy 14.2's compile path: the same names, the same calls, in the same order; and a session that notes what it gets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

COMPILER = """
import sys
from types import SimpleNamespace
from cupy.cuda import function
runtime = SimpleNamespace(is_hip=False)
log = []
_kernel_cache_backend = SimpleNamespace(load=lambda name: sys.exit("cache read"), save=lambda *a: sys.exit("cache written"))
def _get_arch(): return "90"
def _get_arch_for_options_for_nvrtc(arch=None): return f"-arch=sm_{arch}", "cubin"
def _compile_using_nvrtc_no_warning(source, options=(), arch=None, filename="kern.cu", name_expressions=None, log_stream=None,
                                    cache_in_memory=False, jitify=None, method=None):
    if method is None:
        option, method = _get_arch_for_options_for_nvrtc(arch)
        options += (option,)
    log.append((source, options, method))
    mapping = {name: "_Z" + name for name in name_expressions or ()} or None
    return f"{method}:{source}".encode() + b"\\0", mapping
def compile_using_nvrtc(source, options=(), arch=None):
    return _compile_using_nvrtc_no_warning(source, options, arch)
def compile_using_nvcc(source, options=(), arch=None, filename="kern.cu", code_type="cubin", separate_compilation=False, log_stream=None):
    log.append((source, options, code_type))
    return f"{code_type}:{source}".encode()
def _compile_module_with_cache(source, options=(), *, arch=None, backend="nvrtc", name_expressions=None, to_ltoir=False):
    if to_ltoir:
        return _compile_using_nvrtc_no_warning(source, options, arch, "x", None, None, False, None, "lto")[0]
    mod = function.Module()
    if _kernel_cache_backend.load("key") is not None:
        raise AssertionError
    if backend == "nvrtc":
        cubin, mapping = _compile_using_nvrtc_no_warning(source, options, arch or "90", "x.cu", name_expressions)
        mod.mapping = mapping
    else:
        cubin = compile_using_nvcc(source, options, arch, "x.cu", code_type="cubin", separate_compilation="-dc" in options)
    _kernel_cache_backend.save("key", cubin, source)
    mod.load(cubin)
    return mod
"""
FUNCTION = """
import pathlib
import itertools
handles = itertools.count(100)
class Module:
    def __init__(self): self.mapping = None; self.loaded = None; self.ptr = next(handles)
    def load(self, data): self.loaded = data
    def load_file(self, path): self.loaded = pathlib.Path(path).read_bytes()
    def get_global_var(self, name): return {"__consan_ctl": 4096}[name]
"""
RAW = """
import functools
from cupy.cuda import function
@functools.lru_cache
def _get_raw_module(code, path, options=(), *rest):
    mod = function.Module()
    mod.load_file(path)
    return mod
class RawModule:
    def __init__(self, path): self.path = path
    @property
    def module(self): return _get_raw_module(None, self.path, ())
"""
RUNTIME = """
import ctypes
memcpyHostToDevice = 1
writes = []
def memcpy(dst, src, size, kind): writes.append((dst, ctypes.string_at(src, size), kind))
"""
THRUST = "def sort(*a): return 'sorted'\ndef get_build_version(): return 1\navailable = True\n"
FILES = {
    "__init__": '__version__ = "14.2.0"\n',
    "cuda/__init__": "",
    "cuda/compiler": COMPILER,
    "cuda/function": FUNCTION,
    "cuda/runtime": RUNTIME,
    "cuda/thrust": THRUST,
    "_core/__init__": "",
    "_core/raw": RAW,
}


def _function(module: str, *kernel: Any) -> int:
    """The handle of a kernel of another module."""
    return {"plain": 8, "hooks": 9}[module] if kernel == ("k", 64, (1, 1, 1)) else 0


@dataclass
class CupySession:
    """Marks what it instruments and notes every call."""

    source_dir: Path
    backend: Any = field(default_factory=lambda: SimpleNamespace(device_name="Fake GPU", function=_function))
    names: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    attached: list[Any] = field(default_factory=list)
    hooks: str = "text:"
    launches: list[Any] = field(default_factory=list)
    other: str | None = None  # the module whose kernel is to be launched

    def instrument(self, ptx: str, *, name: str) -> Any:
        self.names.append(name)
        hooked = SimpleNamespace(ptx=self.hooks + ptx)
        known = {"plain": ptx, "name": name, "session": self, "framework": "cuda", "recorded": None}
        return SimpleNamespace(cubin=b"instrumented:" + ptx.encode(), instrumented=hooked, **known)

    def instrument_for_framework(self, ptx: str, *, name: str, reached: bool = False) -> Any:
        made = self.instrument(ptx, name=name)
        made.recorded = "how to read the log"
        return made

    @contextlib.contextmanager
    def framework_launch(self, prepared: Any, launch: Any) -> Iterator[Any]:
        self.launches.append(launch)
        yield self.other

    def plain(self, prepared: Any) -> str:
        return "plain"

    def attach(self, prepared: Any, set_symbol: Any) -> None:
        self.attached.append(prepared)
        if prepared.recorded is not None:
            return
        set_symbol("__consan_ctl", b"8 bytes!")

    def uninstrumented(self, name: str, launches: int = 1) -> None:
        self.listed.append(name)

    def note(self, text: str) -> None:
        self.notes.append(text)
