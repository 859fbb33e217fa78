"""torch.utils.cpp_extension for audited modules: what `load_inline` and `load` give is built here, and its kernels go to the machine.

Findings have the lines of the module where its text has the source as it stands; else the lines of the source itself.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from consan._errors import UsageError
from consan.audit import rows
from consan.audit.child.described import DescribedFile, audit_guessed
from consan.audit.child.launcher import LaunchHooks
from consan.audit.files import text_of
from consan.audit.host import sources
from consan.audit.host.building import HostBuildError, built, converting, first_error
from consan.audit.host.program import DeviceProgram, HostProgram

_HEADER: Final = "#include <torch/extension.h>\n#include <cuda_runtime.h>\n"
_FLAGS: Final = ("extra_cflags", "extra_cuda_cflags")
_TORCH_LIBRARIES: Final = ("libc10.so", "libtorch_cpu.so", "libtorch_python.so")


class Extensions:
    """The extensions of one module. `path`, `text`: the module's file. `work`: its FileWork."""

    def __init__(self, launcher: LaunchHooks, work: Any, path: str, text: str, torch: Any) -> None:
        self._launcher, self._events, self._folder, self._headers = launcher, work.events, work.folder, work.folders
        self._path, self._text = path, text
        self._numbers = itertools.count()
        for name in _TORCH_LIBRARIES:
            ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name), mode=ctypes.RTLD_GLOBAL)
        library = self._folder / "converting.so"
        library.write_bytes(converting())
        self._converting = ctypes.PyDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self._converting.consan_call.restype = self._converting.consan_bound.restype = ctypes.py_object
        self._converting.consan_call.argtypes = [ctypes.c_int, ctypes.py_object]

    def own_memory(self, allocate: Any, release: Any) -> None:
        """Let torch take its memory from the machine."""
        self._converting.consan_own_memory(allocate, release)

    # -- what modules call ----------------------------------------------------------------------------------------------------

    def load_inline(
        self,
        name: str,
        cpp_sources: str | Sequence[str] = (),
        cuda_sources: str | Sequence[str] = (),
        sycl_sources: Any = None,
        functions: str | Sequence[str] | Mapping[str, str] | None = None,
        *others: Any,
        **options: Any,
    ) -> types.ModuleType:
        """As torch's. Two options count: macros, and folders of headers."""
        del sycl_sources, others
        pieces = [*_listed(cpp_sources), *_listed(cuda_sources)]
        names = _listed(functions) if not isinstance(functions, Mapping) else list(functions)
        bindings = "".join(f'm.def("{each}", &{each}, ""); ' for each in names)
        module = f"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {bindings}}}\n" if names else ""
        return self._loaded(name, _HEADER + "\n".join(map(self._lined, pieces)) + module, (), options)

    def load(self, name: str, sources: str | Sequence[str], *others: Any, **options: Any) -> types.ModuleType:
        """As torch's: sources are files. Two options count: macros, and folders of headers."""
        del others
        folder = Path(self._path).parent
        found = [path if path.is_absolute() else folder / path for path in map(Path, _listed(sources))]
        text = "".join(f'#line 1 "{path}"\n{text_of(path)}\n' for path in found)
        return self._loaded(name, _HEADER + text, [path.parent for path in found], options)

    def _lined(self, piece: str) -> str:
        """A source with the line of the module where it begins."""
        at = self._text.find(piece) if piece.strip() else -1
        if at < 0:
            return f'#line 1 "{self._path}: a source that it makes"\n{piece}'
        return f'#line {self._text.count(chr(10), 0, at) + 1} "{self._path}"\n{piece}'

    def _loaded(self, name: str, text: str, folders: Sequence[Path], options: Mapping[str, Any]) -> types.ModuleType:
        further = (*folders, *map(Path, _listed(options.get("extra_include_paths"))), *self._headers)
        source = sources.whole(self._path, text, further).defining(_macros(options))
        self._events.send("kernels", names=source.kernels)
        try:
            with self._events.builds():
                library = built(source, torch=True)
        except HostBuildError as error:
            why = first_error(str(error))
            self._events.failed("", rows.NOT_COMPILED, f"host: {why}")
            audit_guessed(self._launcher.checked, self._events, DescribedFile(self._path, source.text, DeviceProgram(source)))
            raise RuntimeError(f"Error building extension '{name}': {why}") from None
        since = len(self._bound(0))
        program = HostProgram(source, library, self._folder / f"extension{next(self._numbers)}.so")
        self._launcher.programs.append(program)
        try:
            program.handle.consan_module()
        except AttributeError:
            raise UsageError(f"{name} has no PYBIND11_MODULE") from None
        module = types.ModuleType(name)
        for number, function, names, defaults in self._bound(since):
            setattr(module, function, functools.partial(self._call, number, names, defaults))
        return module

    def _bound(self, since: int) -> Any:
        return self._converting.consan_bound(since)

    def _call(self, number: int, names: Sequence[str], defaults: Sequence[Any], *given: Any, **named: Any) -> Any:
        values = [*given, *_rest(names[len(given) :], defaults[len(given) :], named)]
        return self._converting.consan_call(number, values)


def _rest(names: Sequence[str], defaults: Sequence[Any], named: Mapping[str, Any]) -> Iterator[Any]:
    for name, value in zip(names, defaults, strict=True):
        if name in named or value is not ...:
            yield named.get(name, value)


def _macros(options: Mapping[str, Any]) -> list[str]:
    """Those of the compilers' options."""
    words = [word for name in _FLAGS for word in _listed(options.get(name))]
    return [word.removeprefix("-D") for word in dict.fromkeys(words) if word.startswith("-D")]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())
