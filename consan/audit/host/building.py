"""Builds the host's part of a source with the system's compiler, and the runtime that it calls.

A library is kept in the cache by its text, the compiler and the headers. Text outside of host functions that the compiler refuses is
left out and the build tried again: kernels use types that the host need not know.
"""

from __future__ import annotations

import fcntl
import functools
import re
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Final

from consan._errors import ConsanError, EnvironmentFailure
from consan.audit.host import sources, text as cuda
from consan.audit.host.sources import AuditedSource
from consan.toolchain import find
from consan.toolchain.cache import CACHE, default_folder, key
from consan.toolchain.host_library import CXX
from consan.toolchain.nvrtc import MISSING_CURAND

FOLDER: Final = Path(__file__).parent / "source"
_ERROR: Final = re.compile(r"^(.+?):(\d+)(?::\d+)?: (?:fatal |catastrophic )?error: (.*)$", re.MULTILINE)
_TO_DO: Final = re.compile(r"\nnote: (.* missing: pip install .*)")
_OF_CURAND: Final = re.compile(r"\bcurand\w*\.h: No such file")
_TRIES: Final = 5
_LIBRARIES: Final = ("-x", "none", "-Wl,--as-needed", "-Wl,--wrap=fopen", "-lgomp")  # of OpenMP, for programs that ask it for the time
_EXTENSION: Final = "-DTORCH_EXTENSION_NAME=consan_extension"
_TIMEOUT: Final = 300  # seconds
_FIXED: Final = ("-std=c++17", "-O0", "-w", "-fPIC", "-fpermissive", "-x", "c++")  # torch: the time to compile counts
# Programs initialise and verify with loops. -O1 keeps each kernel's stub and the call in it, by whose place the kernel is known.
_PROGRAM: Final = ("-O1", "-fno-ipa-pure-const", "-DCONSAN_PROGRAM")
_DROPPED: Final = {cuda.TYPE, cuda.DEVICE, cuda.BOTH, cuda.VARIABLE, cuda.CONSTANT, cuda.GLOBAL}


class HostBuildError(ConsanError):
    """The host's part does not compile. The text is the compiler's first error."""


def built(source: AuditedSource, others: Sequence[AuditedSource] = (), *, torch: bool = False) -> bytes:
    """The shared library of a source's host part, with other sources that are compiled by themselves. Raises HostBuildError."""
    further = tuple(map(sources.for_host, others))
    without: list[tuple[int, int]] = []
    for _ in range(_TRIES):
        text = sources.for_host(source, without)
        try:
            return _library((text, *further), _torch_options() if torch else ())
        except HostBuildError as error:
            more = [span for span in _spans(source, str(error)) if span not in without]
            if not more:
                raise
            without += more
    raise HostBuildError(f"{source.name}: the host's part does not compile")


def _spans(source: AuditedSource, log: str) -> list[tuple[int, int]]:
    """The declarations at the places of errors that the host can do without."""
    hollow = [item for item in source.items if item.kind == cuda.HOST and item.body and item.name != "main"]
    return source.spans_at(_ERROR, log, lambda item: item.kind in _DROPPED or item in hollow)


def _library(texts: Sequence[str], options: Sequence[str]) -> bytes:
    command = [*_compiler(), *_FIXED, *(options or _own_options())]
    libraries = _LIBRARIES if options else (*_LIBRARIES, *_own_cxx_library())
    return CACHE.fetch(key("audit host", *command, *libraries, *_headers(), *texts), lambda: _compiled(command, texts, libraries))


@functools.lru_cache
def _own_cxx_library() -> tuple[str, ...]:
    """Options that give a program a C++ library of its own, where the system has it to link.

    NVRTC brings one, too, whose unique symbols (locale::id) all libraries of the process share. With those of another version
    `std::cout << 1` calls a function of another facet.
    """
    command = [*_compiler(), "-print-file-name=libstdc++.a"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return ("-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL") if Path(found).is_absolute() and Path(found).is_file() else ()


def runtime() -> bytes:
    """The library with the CUDA runtime's functions."""
    return _own_library("runtime", _folders(), _headers())


def converting() -> bytes:
    """The library between Python and torch extensions."""
    return _own_library("converting", _torch_folders(), _headers(("torch",)))


def _own_library(name: str, folders: Sequence[str], headers: Sequence[str]) -> bytes:
    text = (FOLDER / f"{name}.cpp").read_text()
    command = [*_compiler(), "-std=c++17", "-O1", "-w", "-fPIC", *folders]
    return CACHE.fetch(key(f"audit {name}", *command, *headers, text), lambda: _compiled(command, (text,)))


def _compiled(command: Sequence[str], texts: Sequence[str], libraries: Sequence[str] = ()) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        paths, target = [Path(folder, f"host{number}.cpp") for number in range(len(texts))], Path(folder, "host.so")
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        try:
            words = [*command, "-shared", "-o", str(target), *map(str, paths), *libraries]
            done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            raise HostBuildError(f"the host's part did not compile in {_TIMEOUT} s") from None
        if done.returncode:
            raise HostBuildError(done.stderr)
        return target.read_bytes()


def first_error(log: str) -> str:
    """The first error of a compiler in one line."""
    found = _ERROR.search(log)
    if found is not None:
        to_do = [*_TO_DO.findall(log), *([MISSING_CURAND] if _OF_CURAND.search(found[3]) else [])]
        return f"{found[1]}:{found[2]}: {found[3]}" + "".join(f" ({each})" for each in to_do)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    heading = len(lines) > 1 and lines[0].endswith("does not compile:")  # the reason stands behind it
    return lines[heading] if lines else "no message"


def _compiler() -> list[str]:
    command = CXX.compiler()
    if command is None:
        raise EnvironmentFailure("consan audit builds host code, and needs a C++ compiler: install g++, or the Python package ziglang")
    return command


def _folders() -> tuple[str, ...]:
    return tuple(f"-I{folder}" for folder in (FOLDER, *find.include_dirs()))


def _own_options() -> list[str]:
    header = precompiled("consan_host.h", _PROGRAM, _folders())
    return [*_PROGRAM, *_folders(), "-include", str(header) if header else "consan_host.h"]


def _headers(folders: Sequence[str] = ("",)) -> list[str]:
    """The texts of our headers, for keys of the cache."""
    return [path.read_text() for folder in folders for path in sorted((FOLDER / folder).rglob("*.h"))]


# -- torch ----------------------------------------------------------------------------------------------------------------------


def _torch_folders() -> tuple[str, ...]:
    found = util.find_spec("torch")
    origin = found.origin if found is not None else None
    assert origin is not None, "the caller has imported torch"
    include = Path(origin).parent / "include"
    own = (FOLDER / "torch", FOLDER)
    api = include / "torch/csrc/api/include"
    return tuple(f"-I{each}" for each in (*own, include, api, sysconfig.get_paths()["include"], *find.include_dirs()))


def _torch_options() -> list[str]:
    header = precompiled_torch()
    return [*_torch_folders(), "-include", str(header) if header else "consan_torch.h", _EXTENSION]


def precompiled_torch() -> Path | None:
    """The header of extensions, with its compiled form next to it. None where the cache has no folder for it."""
    return precompiled("torch/consan_torch.h", (_EXTENSION,), _torch_folders())


@functools.lru_cache
def precompiled(name: str, options: tuple[str, ...], folders: tuple[str, ...]) -> Path | None:
    """One of our headers, with its compiled form next to it. None where the cache has no folder for it."""
    command = [*_compiler(), *_FIXED[:-2], *options, *folders]
    path = FOLDER / name
    folder = default_folder() / "precompiled" / key("audit precompiled", *command, path.read_text(), *_headers())[:24]
    header = folder / path.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not Path(f"{header}.gch").is_file():
                header.write_text(path.read_text())
                target = folder / "made"
                words = [*command, "-x", "c++-header", str(header), "-o", str(target)]
                done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
                if done.returncode:
                    raise EnvironmentFailure(f"consan audit: the headers of {path.name} do not compile: {first_error(done.stderr)}")
                target.rename(f"{header}.gch")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return header
