"""A source that is built: its library in this process, and its kernels as PTX.

The stub of a kernel in the library has the kernel's C++ name, with the arguments of its template: NVRTC makes the instances that the
host's code has. A source with more than `_TOGETHER` instances gets a module for each that is launched.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
from collections import Counter
from pathlib import Path
from typing import Final

from consan._errors import UsageError
from consan.audit.host import sources, text as cuda
from consan.audit.host.elf import ElfSymbol, ElfSymbols
from consan.audit.host.sources import AuditedSource
from consan.audit.rows import unqualified_name
from consan.reports.source.names import demangled
from consan.toolchain.cache import CACHE, key
from consan.toolchain.nvrtc import CompileError, CompileResult, MisnamedKernelError, compile_ptx, version

_TOGETHER: Final = 24
_TRIES: Final = 6
_LAMBDA: Final = "{lambda"  # in a name, as demanglers have it
_ERROR: Final = re.compile(r"^(.+?):(\d+): (?:catastrophic )?error", re.MULTILINE)
_DROPPED: Final = {cuda.TYPE, cuda.BOTH, cuda.CONSTANT, cuda.VARIABLE}
_OF_FUNCTION: Final = re.compile(r"&?\(?([A-Za-z_][\w:]*)\([^()<>]*\)\)?")
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*")
_OF_HEADERS: Final = re.compile(
    r"^\.(?:visible \.|weak \.)?global \.align \d+ \.[a-z]\d+ (_ZN4cuda\w+)(?:\[\d+\])?(?: = [^;\n]*)?;\n", re.MULTILINE
)
_DEVICE: Final = str(Path(__file__).parent / "source" / "device")


def device_text(name: str, text: str, wanted: str | None) -> tuple[str, str]:
    """A source without its host code, with lines where they were, and the folder of the headers that it includes instead of the host's.

    `wanted`: the instance of a template that is to be in it.
    """
    return sources.for_device(sources.whole(name, text), names=(wanted,) if wanted else ()), _DEVICE


class DeviceProgram:
    """The device's part of one source, as PTX."""

    def __init__(self, source: AuditedSource, arch: str = "sm_90a") -> None:
        self.source = source
        self.arch = arch
        self._brief = True  # the device's text has few names of std
        self._without: list[tuple[int, int]] = []
        self._texts: dict[tuple[str, ...], CompileResult] = {}

    def of(self, names: tuple[str, ...]) -> CompileResult:
        """The PTX that has these kernels and all that are no templates. Raises CompileError, MisnamedKernelError."""
        if names not in self._texts:
            self._texts[names] = self._without_errors(names)
        return self._texts[names]

    def _without_errors(self, names: tuple[str, ...]) -> CompileResult:
        """Compile, and again without the declarations that are wrong on the device and that kernels can do without."""
        for _ in range(_TRIES):
            result = self._try(names)
            if result is not None:
                return result
        raise CompileError(f"{self.source.name} does not compile for the device")

    def _try(self, names: tuple[str, ...]) -> CompileResult | None:
        """None: there is more to leave out now. Raises CompileError where there is nothing."""
        if self._brief:
            text = self._text(names)
            try:
                return self._cached(text, names)
            except MisnamedKernelError:
                raise
            except CompileError as error:  # it may take more of std
                self._brief = False
                if self._text(names) == text:
                    self._leave_out(error)
                    return None
        try:
            return self._cached(self._text(names), names)
        except CompileError as error:
            self._leave_out(error)
        return None

    def _leave_out(self, error: CompileError) -> None:
        """Leave out the declarations at the places of an error. Raises it where there is none."""
        more = [span for span in self._spans(str(error)) if span not in self._without]
        if not more:
            raise error
        self._without += more

    def _text(self, names: tuple[str, ...]) -> str:
        return sources.for_device(self.source, self._without, brief=self._brief, names=names)

    def _cached(self, text: str, names: tuple[str, ...]) -> CompileResult:
        return _cached(text, self.source.name, self.arch, names)

    def _spans(self, log: str) -> list[tuple[int, int]]:
        return self.source.spans_at(_ERROR, log, lambda item: item.kind in _DROPPED)


class HostProgram:
    """One source. `library`: its host part, loaded; None where it has none."""

    def __init__(self, source: AuditedSource, library: bytes, path: Path) -> None:
        self.source = source
        self.path = str(path)
        path.write_bytes(library)
        self.handle = ctypes.CDLL(self.path, mode=1)  # RTLD_LAZY: what it never calls need not be there
        self._symbols = ElfSymbols(library)
        self._device = DeviceProgram(source)
        self.base = _base(self.path)

    def function(self, offset: int) -> ElfSymbol | None:
        """The stub, or the variable, at an offset in the library."""
        return self._symbols.at(offset)

    def main(self) -> int:
        """The address of the host's `main`."""
        return int(next(self.base + each.offset for each in self._symbols if each.name == "main"))

    @functools.cached_property
    def stubs(self) -> list[str]:
        """The symbols of the kernels that have a stub on the host."""
        kernels = set(self.source.kernels)
        mangled = re.compile("|".join(f"{len(each)}{each}" for each in kernels) or "(?!)")  # most symbols are of the C++ library
        found = {each.name for each in self._symbols if each.kind == "function" and mangled.search(each.name)}
        return sorted(each for each in found if unqualified_name(expression(each)) in kernels)

    def compiled(self, stub: str) -> tuple[CompileResult, str]:
        """The PTX that has the kernel of a stub, and the kernel's name in it. Raises CompileError, MisnamedKernelError."""
        wanted, every = expression(stub), {expression(each): None for each in self.stubs}
        group = tuple(every) if len(every) <= _TOGETHER else (wanted,)
        if len(group) > 1:
            with contextlib.suppress(MisnamedKernelError, CompileError):  # another instance may be wrong
                return self._instance(group, wanted)
        if _LAMBDA in wanted:
            raise MisnamedKernelError("its template takes a lambda, which has no name that NVRTC could be given")
        with contextlib.suppress(MisnamedKernelError):
            return self._instance((wanted,), wanted)
        overload = _overload(stub)
        return self._instance((overload,), overload)

    def _instance(self, names: tuple[str, ...], wanted: str) -> tuple[CompileResult, str]:
        result = self._device.of(names)
        return result, result.symbols[wanted]


def _cached(text: str, name: str, arch: str, names: tuple[str, ...]) -> CompileResult:
    """NVRTC's result; the names of instances follow the PTX in the cache."""
    headers = [path.read_text() for path in sorted(Path(_DEVICE).iterdir())]

    def make() -> str:
        result = compile_ptx(text, name=name, arch=arch, include_dirs=(_DEVICE,), instantiate=names)
        return "\0".join((_used(result.ptx), *(result.symbols[each] for each in names)))

    ptx, *symbols = CACHE.fetch_text(key("audit device", repr(version()), *headers, text, name, arch, *names), make).split("\0")
    return CompileResult(ptx, "", dict(zip(names, symbols, strict=True)))


def _used(ptx: str) -> str:
    """The module without the variables of headers that nothing in it uses: libcu++ leaves hundreds."""
    words = Counter(_WORD.findall(ptx))
    return _OF_HEADERS.sub(lambda found: "" if words[found[1]] == 1 else found[0], ptx)


def expression(symbol: str) -> str:
    """A kernel's name in C++, with the arguments of its template and without its parameters."""
    name, begin, end = _named(symbol)
    return _OF_FUNCTION.sub(r"\1", _templates_by_name(name[begin:end])) if "<" in name[:end] else name[begin:end]


def _templates_by_name(name: str) -> str:
    """`&(int f<int>(int))`, as demanglers have an instance as an argument of a template, as `&f<int>`."""
    at = 0
    while (at := name.find("&(", at)) >= 0:
        end = cuda.closing(name, at + 1)
        whole = name[at + 2 : end - 1]
        begin, stop = _extent(whole)
        if "<" in whole[begin:stop]:
            name = f"{name[:at]}&{whole[begin:stop]}{name[end:]}"
        at += 1
    return name


def _overload(symbol: str) -> str:
    """A kernel in C++ with the types of its parameters, by which it is known among those of its name."""
    name, begin, end = _named(symbol)
    return f"static_cast<void (*){name[end:]}>({name[begin:end]})" if end < len(name) else name


def _named(symbol: str) -> tuple[str, int, int]:
    """A function as the demangler has it, and where its name begins and ends."""
    name = demangled(symbol).replace("(anonymous namespace)::", "")
    return name, *_extent(name)


def _extent(name: str) -> tuple[int, int]:
    """Where the name of a function begins and ends, between its type and its parameters."""
    depth, end, begin = 0, len(name), 0
    for at, character in enumerate(name):
        depth += ((character in "<(" and not name.startswith("(", at)) or character == "<") - (character == ">")
        if depth == 0 and character == "(":
            end = at
            break
        if depth == 0 and character == " ":
            begin = at + 1
    return begin, end


def _base(path: str) -> int:
    """Where a library is in this process."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(path):
            return int(line.partition("-")[0], 16)
    raise UsageError(f"{path} is not loaded")
