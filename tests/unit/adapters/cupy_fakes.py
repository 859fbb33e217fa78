"""A miniature of CuPy 14.2's compile path: the same names, the same calls, in the same order."""

from __future__ import annotations

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
