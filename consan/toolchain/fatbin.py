"""Fat binaries: the entries of one, and the PTX among them that a GPU would run.

A fat binary is what nvcc puts into a program for one source file: a head, then entries, each a cubin or PTX for one architecture, stored
plain or compressed with LZ4 or Zstandard. Several may follow each other. The layout is not documented; it was read off those of nvcc 13.0
(`cuobjdump` shows the same entries). Lengths are checked: a fat binary is data of a program.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import struct
from collections.abc import Iterator
from typing import Any, Final

from consan._errors import EnvironmentFailure, UsageError
from consan.dataclass import dataclass
from consan.toolchain.extras import install

MAGIC: Final = b"\x50\xed\x55\xba"
_HEAD: Final = struct.Struct("<4sHHQ")  # magic, version, bytes of this head, bytes of the entries
_ENTRY: Final = struct.Struct("<HHIQII4xIIIQQQ")
_PTX, _CUBIN = 1, 2
_LZ4, _ZSTD = 0x2000, 0x8000
_LARGEST: Final = 1 << 28  # bytes of an entry without compression
_TARGET: Final = re.compile(rb"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)


@dataclass(frozen=True)
class FatbinEntry:
    """One entry. `architecture` is 90 for sm_90 and sm_90a."""

    ptx: bool
    architecture: int
    name: str
    flags: int
    stored: bytes
    size: int  # bytes without compression

    def data(self) -> bytes:
        """The contents. PTX ends in zero bytes, which are left out."""
        data = _decompressed(self)
        return data.split(b"\0", 1)[0].lstrip() if self.ptx else data


@dataclass(frozen=True)
class ChosenPtx:
    """The PTX of an image: several modules where they are to be linked. `gaps`: machine code without PTX may be among them."""

    name: str
    texts: tuple[str, ...]
    gaps: bool = False


def fat_binaries(data: bytes) -> list[list[FatbinEntry]]:
    """The entries of each of the fat binaries that follow each other. Raises UsageError where the data are none."""
    found, at = list[list[FatbinEntry]](), 0
    while data[at : at + len(MAGIC)] == MAGIC:
        _, _, head, size = _unpack(_HEAD, data, at)
        end = at + head + size
        if head < _HEAD.size or end > len(data):
            raise UsageError("this fat binary is cut off")
        found.append(list(_entries(data, at + head, end)))
        at = -(-end // 8) * 8  # a linker puts the next one at a multiple of eight
    if not at:
        raise UsageError("this is no fat binary")
    return found


def embedded(data: bytes) -> Iterator[bytes]:
    """The fat binaries that lie anywhere in a file, such as an object file."""
    at = data.find(MAGIC)
    while at >= 0:
        _, _, head, size = _unpack(_HEAD, data.ljust(at + _HEAD.size, b"\0"), at)
        end = at + head + size
        if head >= _HEAD.size and end <= len(data):
            yield data[at:end]
            at = end - 1
        at = data.find(MAGIC, at + 1)


def entries(data: bytes) -> list[FatbinEntry]:
    """The entries of all of them."""
    return [entry for each in fat_binaries(data) for entry in each]


def _entries(data: bytes, at: int, end: int) -> Iterator[FatbinEntry]:
    while at < end:
        if data[at : at + len(MAGIC)] == MAGIC:  # one within another: an entry's head would begin with its kind
            yield from entries(data[at:end])
            return
        kind, _, head, size, packed, _, architecture, name_at, name_size, flags, _, whole = _unpack(_ENTRY, data, at)
        if head < _ENTRY.size or at + head + size > end:
            raise UsageError("an entry of this fat binary is cut off")
        name = data[at + name_at : at + name_at + name_size] if name_at and name_at + name_size <= head else b""
        body = data[at + head : at + head + size]
        if kind in (_PTX, _CUBIN):
            stored = body[:packed] if flags & (_LZ4 | _ZSTD) else body
            yield FatbinEntry(kind == _PTX, architecture, name.rstrip(b"\0").decode(errors="replace"), flags, stored, whole or len(body))
        at += head + size


def _unpack(form: struct.Struct, data: bytes, at: int) -> tuple[Any, ...]:
    if at + form.size > len(data):
        raise UsageError("this fat binary is cut off")
    return form.unpack_from(data, at)


def _decompressed(entry: FatbinEntry) -> bytes:
    """Raises UsageError for broken data, EnvironmentFailure without a library for it."""
    if entry.size > _LARGEST:
        raise UsageError(f"an entry of this fat binary claims {entry.size:,} bytes")
    if entry.flags & _ZSTD:
        return _unzstd(entry)
    if entry.flags & _LZ4:
        return _unlz4(entry)
    return entry.stored


def _unzstd(entry: FatbinEntry) -> bytes:
    package = _package("zstandard")
    if package is None:
        target, library = ctypes.create_string_buffer(entry.size), _system("libzstd.so.1", "Zstandard")
        library.ZSTD_decompress.restype = ctypes.c_size_t
        size, packed = ctypes.c_size_t(entry.size), ctypes.c_size_t(len(entry.stored))
        return _whole(target, library.ZSTD_decompress(target, size, entry.stored, packed))
    try:
        if package.frame_content_size(entry.stored) > _LARGEST:
            raise UsageError("an entry of this fat binary is damaged: it claims too many bytes")
        return bytes(package.ZstdDecompressor().decompress(entry.stored, max_output_size=entry.size, allow_extra_data=True))
    except package.ZstdError as error:
        raise UsageError(f"an entry of this fat binary is damaged: {error}") from None


def _unlz4(entry: FatbinEntry) -> bytes:
    package = _package("lz4.block")
    if package is None:
        target, library = ctypes.create_string_buffer(entry.size), _system("liblz4.so.1", "LZ4")
        return _whole(target, library.LZ4_decompress_safe(entry.stored, target, len(entry.stored), entry.size))
    try:
        return bytes(package.decompress(entry.stored, uncompressed_size=entry.size))
    except package.LZ4BlockError as error:
        raise UsageError(f"an entry of this fat binary is damaged: {error}") from None


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _system(name: str, title: str) -> ctypes.CDLL:
    """The system's library, where the Python package is missing."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise EnvironmentFailure(
            f"this fat binary is compressed with {title}, and there is no library for that: {install('native')}"
        ) from None


def _whole(target: ctypes.Array[ctypes.c_char], size: int) -> bytes:
    if size != len(target):
        raise UsageError("an entry of this fat binary is damaged")
    return target.raw


def choose_ptx(data: bytes, architecture: str) -> ChosenPtx | None:
    """The newest PTX that fits an architecture such as "sm_90a", of each fat binary. None if there is none.

    Machine code for a newer architecture than the PTX's is what the GPU runs: such a fat binary is a library's, and is left alone.
    """
    own, found, newest, gaps = _number(architecture), list[tuple[str, str]](), 0, False
    binaries = fat_binaries(data)
    for binary in binaries:
        older = [(entry, entry.data()) for entry in binary if entry.ptx and entry.architecture <= own]
        fitting = [(_rank(text), entry.name.strip(), text) for entry, text in older if _fits(text, architecture)]
        best = max((rank for rank, _, _ in fitting), default=(0, ""))
        newest, gaps = max(newest, best[0]), gaps or not fitting
        found += [(name, text.decode(errors="replace")) for rank, name, text in fitting if rank == best]
    code = max((entry.architecture for binary in binaries for entry in binary if not entry.ptx and runs_on(entry, architecture)), default=0)
    if not newest or newest < code:
        return None
    return ChosenPtx(found[0][0], tuple(text for _, text in found), gaps=gaps)


def runs_on(code: FatbinEntry, architecture: str) -> bool:
    """Whether machine code runs on an architecture: on that of its number, and on later ones of its generation."""
    own = _number(architecture)
    return code.architecture <= own and code.architecture // 10 == own // 10


def _rank(ptx: bytes) -> tuple[int, str]:
    """The order of targets. A file that is compiled for sm_90 and sm_90a is one module: the GPU takes that with more features."""
    target = _TARGET.search(ptx)
    return (int(target[1]), {b"": "", b"f": "a", b"a": "b"}[target[2]]) if target else (0, "")


def _fits(ptx: bytes, architecture: str) -> bool:
    """Whether the target's features are there: sm_90a runs on that architecture only, sm_100f on those of its family."""
    target = _TARGET.search(ptx)
    if target is None:
        return False
    number, suffix, own = int(target[1]), target[2], _number(architecture)
    return {b"": number <= own, b"a": number == own, b"f": number <= own and number // 10 == own // 10}[suffix]


def _number(architecture: str) -> int:
    return int("".join(filter(str.isdigit, architecture)))
