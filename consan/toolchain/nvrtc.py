"""CUDA C++ to PTX with NVRTC, in process and without a GPU.

Decides the options every kernel is compiled with: line information always (the report points at source lines), device code by
default, CUDA and libcu++ headers on the include path, standard headers from `consan.toolchain.headers`. An error in the user's
source is one `UsageError` with NVRTC's own `file:line` text. `.file` entries of the PTX name the path that the caller gave
(NVRTC makes it absolute against the working folder).

Not handled: host code (`kernel<<<...>>>`, `main`; `nvcc_command` is what to do), separate compilation of several files, and
precompiled headers.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from consan._errors import EnvironmentFailure, InternalError, UsageError
from consan.dataclass import dataclass
from consan.toolchain import find
from consan.toolchain.cache import CACHE, key
from consan.toolchain.extras import install
from consan.toolchain.headers import VIRTUAL_HEADERS

# Such words make a compilation depend on more than the text and the options: on other files, or the time of day.
_BY_MORE_THAN_TEXT: Final = re.compile(r"include|import|embed|__DATE__|__TIME")
_SPLICE: Final = re.compile(r"(?:\\|\?\?/)[ \t]*\r?\n")
UNOPTIMISED = ("-G",)  # "-Ofc=max" leaves out loads of values that nobody uses
_COMPILATION_ERROR = 6
_INVALID_OPTION = 5
# NVRTC's "k.cu(12): error: text" is rewritten to the "k.cu:12: error: text" that editors and terminals can follow.
_DIAGNOSTIC = re.compile(r"^(.*?)\((\d+)\): ((?:catastrophic )?error|warning)", re.MULTILINE)
MISSING_CURAND: Final = "the headers of cuRAND are missing: pip install nvidia-curand"
# Hints for messages that do not say what to do.
_HINTS = (
    (re.compile(r"cute/container/\S+: error: declaration is incompatible with template parameter"),
     "CUTLASS up to 4.2 does not compile with libcu++ of CUDA 13.2 or newer; pip install 'nvidia-cuda-cccl<13.2'"),
    (re.compile(r"__host__ function is not allowed in JIT mode"),
     "include the block or warp header that the kernel uses, such as <cub/block/block_reduce.cuh>"),
    (re.compile(r'identifier "(?:INFINITY|NAN|HUGE_VALF?|M_PI|(?:FLT|DBL)_\w+|U?(?:INT|LONG|LLONG|CHAR|SHRT)_M(?:AX|IN))" is undefined'),
     "nvcc includes the headers of these names by itself, NVRTC does not: #include <cmath>, <cfloat> or <climits>"),
    (re.compile(r'open source file "cuda/std/'), "libcu++ is missing: pip install nvidia-cuda-cccl"),
    (re.compile(r'open source file "curand'), MISSING_CURAND),
    (re.compile(r'open source file "(?:torch|ATen|c10|pybind11|Python)[./\w]*"'),
     "the headers of torch and Python are for the host, and consan compiles device code only: move the kernels to a file of their own"),
)  # fmt: skip
# Headers of the host's C++ library: nvcc has them, NVRTC does not.
_HOST_HEADER = re.compile(
    r'open source file "(algorithm|condition_variable|deque|exception|filesystem|forward_list|fstream|future|iomanip|ios|iosfwd|iostream'
    r"|istream|list|locale|map|mutex|new|ostream|queue|random|regex|set|shared_mutex|sstream|stack|stdexcept|streambuf|string|system_error"
    r'|thread|typeindex|typeinfo|unordered_map|unordered_set|valarray|vector|(?:sys|unistd|pthread|signal|getopt|fcntl)[./\w]*)"'
)
_ERROR = re.compile(r":\d+: (?:catastrophic )?error: ")
_NAME_MAP = re.compile(r"^__nv_name_map(?::\d+: error:|\(\d+\): error:) (.*)$", re.MULTILINE)


class CompileError(UsageError):
    """A source that does not compile: the compiler's messages, and hints."""


class MisnamedKernelError(UsageError):
    """A name in `instantiate` is no kernel; the message says why."""


@dataclass(frozen=True)
class CompileResult:
    """PTX of one source file, what the compiler said (warnings; usually empty), and the symbols of the names that were asked for."""

    ptx: str
    log: str
    symbols: Mapping[str, str] = field(default_factory=dict)


def virtual_arch(arch: str) -> str:
    """`compute_90a` for `sm_90a` or `compute_90a`: with it NVRTC stops at PTX and does not assemble."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+[af]?)", arch)
    if match is None:
        raise UsageError(f"'{arch}' is not an architecture; write it like sm_90a")
    return f"compute_{match.group(1)}"


def compile_ptx(
    source: str,
    *,
    name: str = "kernel.cu",
    arch: str = "sm_90a",
    std: str = "c++17",
    defines: Mapping[str, str | None] | None = None,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    options: Sequence[str] = (),
    instantiate: Sequence[str] = (),
    optimised: bool = True,
) -> CompileResult:
    """Compile one CUDA C++ file to PTX; `name` is the path that `.file` and messages show.

    `instantiate`: kernels as C++ names them (`rev<float, 128>`); templates are instantiated for them.

    The PTX of a source that reads no other file is kept in the cache.
    """
    given = options if optimised else (*options, *UNOPTIMISED)
    command = _options(name, arch, std, defines or {}, include_dirs, given)
    if instantiate or any(map(_BY_MORE_THAN_TEXT.search, (_SPLICE.sub("", source), *given))):
        return compile_anew(source, name, arch, command, instantiate)

    def make() -> str:
        result = compile_anew(source, name, arch, command)
        return f"{result.ptx}\0{result.log}"

    ptx, log = CACHE.fetch_text(key("compiled", _identity(), os.getcwd(), name, source, *command), make).split("\0")
    return CompileResult(ptx, log)


def compile_anew(source: str, name: str, arch: str, command: Sequence[str], instantiate: Sequence[str] = ()) -> CompileResult:
    """Compile with these options, whatever the cache has."""
    program = _Program(source, name)
    try:
        for expression in instantiate:
            program.add_name(expression)
        status = program.compile(command)
        log = program.text("ProgramLog")
        if status:
            raise _failure(status, log, name, arch)
        symbols = {expression: program.symbol(expression) for expression in instantiate}
        return CompileResult(program.text("PTX"), _readable(log), symbols)
    finally:
        program.destroy()


def _identity() -> str:
    """The compiler that is installed: its path, size and date. To ask for its version, it would have to be loaded."""
    path = find.locate(find.NVRTC)
    facts = os.stat(path) if path and os.path.exists(path) else None
    return repr((path, facts and (facts.st_size, facts.st_mtime_ns)))


def _options(
    name: str, arch: str, std: str, defines: Mapping[str, str | None], include_dirs: Sequence[str | os.PathLike[str]], extra: Sequence[str]
) -> list[str]:
    # A quoted include is looked up beside the file that holds it; NVRTC does not do that for the main file by itself.
    folders = [*map(Path, include_dirs), Path(name).absolute().parent]
    own_libcudacxx = any(map(find.has_libcudacxx, folders))
    folders += [folder for folder in find.include_dirs() if not (own_libcudacxx and find.has_libcudacxx(folder))]
    folders += filter(None, [find.cutlass_include(), find.own_headers()])
    macros = [f"-D{key}" if value is None else f"-D{key}={value}" for key, value in defines.items()]
    fixed = [f"-arch={virtual_arch(arch)}", f"-std={std}", "-lineinfo", "-default-device"]
    return [*fixed, *macros, *(f"-I{folder}" for folder in folders), *extra]


def _readable(log: str) -> str:
    lines = [line for line in log.strip().splitlines() if not line.startswith("Remark: The warnings can be suppressed")]
    return _DIAGNOSTIC.sub(r"\1:\2: \3", "\n".join(lines)).strip()


def _failure(status: int, log: str, name: str, arch: str) -> Exception:
    text = _readable(log)
    if status == _COMPILATION_ERROR:
        misnamed = _NAME_MAP.search(text)
        if misnamed is not None and len(_NAME_MAP.findall(text)) == len(_ERROR.findall(text)):
            return MisnamedKernelError(misnamed[1].partition(". Input name")[0])
        return CompileError(f"{name} does not compile:\n{text}{_hints(text, name, arch)}")
    if status == _INVALID_OPTION:
        return UsageError(f"NVRTC {'.'.join(map(str, version()))} rejects an option for {name}: {text}")
    return InternalError(f"NVRTC failed on {name}: {_error_name(status)}\n{text}".strip())


def _hints(text: str, name: str, arch: str) -> str:
    hints = [hint for pattern, hint in _HINTS if pattern.search(text)]
    header = _HOST_HEADER.search(text)
    if header is not None:
        hints.append(
            f"<{header[1]}> is a header of the host, and consan compiles device code only. Move the kernels to a file of their own,"
            f" or let nvcc make the PTX: {nvcc_command(name, arch)}"
        )
    return "".join(f"\nnote: {hint}" for hint in hints)


def nvcc_command(name: str, arch: str) -> str:
    """The commands that compile a file with host code to PTX with source lines, and that check it."""
    ptx = str(Path(name).with_suffix(".ptx"))
    make = shlex.join(("nvcc", "-ptx", "-lineinfo", f"-arch={arch.replace('compute', 'sm')}", "-o", ptx, name))
    return f"{make} && {shlex.join(('consan', 'check', ptx))}"


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    library = find.load(find.NVRTC)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _error_name(status: int) -> str:
    return str(_library().nvrtcGetErrorString(status).decode())


@functools.lru_cache(maxsize=1)
def version() -> tuple[int, int]:
    """NVRTC's version, e.g. (13, 0)."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def _check(status: int) -> None:
    if status:
        raise EnvironmentFailure(f"NVRTC does not work: {_error_name(status)}; reinstall it with: {install('cpu')}")


def _strings(items: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(items))(*(item.encode() for item in items))


class _Program:
    """An `nvrtcProgram`: created with the source and the virtual headers, destroyed by `destroy`."""

    def __init__(self, source: str, name: str) -> None:
        self._library = _library()
        self._handle = ctypes.c_void_p()
        names, texts = _strings(list(VIRTUAL_HEADERS)), _strings(list(VIRTUAL_HEADERS.values()))
        _check(
            self._library.nvrtcCreateProgram(ctypes.byref(self._handle), source.encode(), name.encode(), len(VIRTUAL_HEADERS), texts, names)
        )

    def compile(self, options: Sequence[str]) -> int:
        return int(self._library.nvrtcCompileProgram(self._handle, len(options), _strings(options)))

    def add_name(self, expression: str) -> None:
        """Ask for the symbol of a C++ name, before compiling."""
        _check(self._library.nvrtcAddNameExpression(self._handle, expression.encode()))

    def symbol(self, expression: str) -> str:
        """The symbol of a name that was asked for."""
        found = ctypes.c_char_p()
        _check(self._library.nvrtcGetLoweredName(self._handle, expression.encode(), ctypes.byref(found)))
        return (found.value or b"").decode()

    def text(self, what: str) -> str:
        """Read a sized text result: `ProgramLog` or `PTX`."""
        size = ctypes.c_size_t()
        _check(getattr(self._library, f"nvrtcGet{what}Size")(self._handle, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        _check(getattr(self._library, f"nvrtcGet{what}")(self._handle, buffer))
        return buffer.value.decode(errors="replace")

    def destroy(self) -> None:
        self._library.nvrtcDestroyProgram(ctypes.byref(self._handle))
