"""The shared libraries in C++ and C: built with the package; compiled at first use where their sources differ from what was built."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import resources, util
from pathlib import Path
from typing import Final

from consan._errors import EnvironmentFailure
from consan.dataclass import dataclass
from consan.toolchain.cache import Cache, key

_TIMEOUT: Final = 600  # seconds: zig builds its C++ library first
PATIENCE: Final = 240.0  # seconds that a process waits for another one which compiles the same library
FOLDER: Final = "built"  # of the package: the libraries that were built with it
_LOADED: Final = itertools.count()  # libraries from memory
_OPEN: Final[list[contextlib.ExitStack]] = []  # the files of those whose paths others open
_BUILT: Final = Path(__file__).parent.parent / FOLDER


@dataclass(frozen=True)
class Language:
    """A language, and its compilers: what `variable` names, as for make; else the first of `commands`; else that of the ziglang wheel."""

    name: str
    variable: str
    commands: tuple[str, ...]
    zig: str

    def compiler(self) -> list[str] | None:
        """The command of the compiler. None: this machine has none."""
        if chosen := os.environ.get(self.variable):
            return shlex.split(chosen)
        if found := next((path for name in self.commands if (path := shutil.which(name))), None):
            return [found]
        # The library may run on another machine than this one.
        return [sys.executable, "-m", "ziglang", self.zig, "-mcpu=baseline", "-s"] if util.find_spec("ziglang") else None


CXX: Final = Language("C++", "CXX", ("c++", "g++", "clang++"), "c++")
C: Final = Language("C", "CC", ("cc", "gcc", "clang"), "cc")


@dataclass(frozen=True)
class HostLibrary:
    """A shared library.

    `package`: its sources are in the package's folder `source` and in the folders there, and those that are made from tables of Python come
    from `generated`. Files include each other by name alone: no two have the same. `root` is the file that includes the others. `need` says
    in errors what the library is for.
    """

    name: str
    need: str
    language: Language
    package: str
    root: str
    options: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    generated: Callable[[], dict[str, str]] = dict

    def sources(self) -> dict[str, str]:
        """The text of each file, by its name."""
        files = Path(str(resources.files(self.package)), "source").rglob("*")
        written = {file.name: file.read_text() for file in files if file.suffix in (".hpp", ".cpp", ".h", ".c")}
        return written | self.generated()

    def file(self, folder: Path, sources: Mapping[str, str]) -> Path:
        """The built library in a folder. Its name has a hash of sources, options and machine."""
        parts = (platform.system(), platform.machine(), self.options, sorted(sources.items()))
        return folder / f"{self.name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.so"

    def data(self) -> bytes:
        """The library: the built one, or from the cache, or from the compiler. Raises EnvironmentFailure."""
        sources = self.sources()
        try:
            return self.file(_BUILT, sources).read_bytes()
        except OSError:
            return self.compiled(sources)

    def origin(self) -> str:
        """Where the library comes from, for `consan doctor`; empty if this machine cannot have it."""
        if self.file(_BUILT, self.sources()).is_file():
            return "built with the package"
        command = self.language.compiler()
        return f"compiled at first use by {' '.join(command)}" if command else ""

    def compiled(self, sources: Mapping[str, str]) -> bytes:
        """The library that the compiler makes of sources, or has made. Raises EnvironmentFailure."""
        command = self.language.compiler()
        if command is None:
            wanted = " or ".join(self.language.commands[1:])
            message = f"{self.need} needs a {self.language.name} compiler: install {wanted}, or the Python package ziglang"
            raise EnvironmentFailure(message)
        name = key(*command, self.file(_BUILT, sources).name)
        return Cache().fetch_once(name, lambda: self.compile(command, sources), PATIENCE)

    def compile(self, command: list[str], sources: Mapping[str, str]) -> bytes:
        """The library that a compiler makes of sources. Raises EnvironmentFailure."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in sources.items():
                Path(folder, name).write_text(text)
            target = Path(folder, "out.so")
            words = [*command, *self.options, "-o", str(target), str(Path(folder, self.root)), *self.libraries]
            try:
                done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise EnvironmentFailure(f"{self.need}: cannot run {command[0]}: {error}") from None
            if done.returncode:
                first = next((each for each in done.stderr.splitlines() if "error" in each), done.stderr.strip()[:200])
                raise EnvironmentFailure(f"{self.need}: {command[0]} could not compile consan's library: {first}")
            return target.read_bytes()

    def load(self) -> ctypes.CDLL:
        """The library in this process. Raises EnvironmentFailure."""
        return _in_process(self)

    def build(self, folder: Path) -> None:
        """Put the library into a folder, in place of one of other sources. Raises EnvironmentFailure."""
        sources = self.sources()
        target = self.file(folder, sources)
        for old in folder.glob(f"{self.name}-*.so"):
            if old != target:
                old.unlink()
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.compiled(sources))


@functools.cache
def _in_process(library: HostLibrary) -> ctypes.CDLL:
    built = library.file(_BUILT, library.sources())
    try:
        return ctypes.CDLL(str(built)) if built.is_file() else loaded(library.data(), library.name, stays=True)
    except OSError as error:
        raise EnvironmentFailure(f"{library.need}: cannot load consan's library: {error}") from None


def loaded(data: bytes, name: str, *, stays: bool = False) -> ctypes.CDLL:
    """A library, from memory where the system can do that: no folder for temporary files is needed then. `stays`: others open its path."""
    if hasattr(os, "memfd_create"):
        with contextlib.ExitStack() as until:
            file = until.enter_context(os.fdopen(os.memfd_create(f"consan_{name}"), "wb"))
            file.write(data)
            file.flush()
            # dlopen takes a path that it has seen for the same library, and numbers of files come again.
            library = ctypes.CDLL(f"/proc/self/fd/{'./' * next(_LOADED)}{file.fileno()}")
            if stays:
                _OPEN.append(until.pop_all())
            return library
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"consan_{name}.so"
        path.write_bytes(data)
        return ctypes.CDLL(str(path))
