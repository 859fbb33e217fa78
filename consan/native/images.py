"""The PTX of the images that a program loads.

An image is PTX, or fat binaries that hold some. A program may also have machine code linked at run time (`cuLinkComplete`, nvJitLink),
compiled for that (NVRTC with `-dc`), or assembled (`ptxas`, as a process of its own), and load the result: it is known by its bytes, and
stands for the images that it was made from. So does machine code that a compiler has left in a folder, beside its PTX.

Not handled: link-time optimisation (LTO-IR is no PTX), and what a library within the program assembles with hidden functions (nvPTXCompiler
has no shared form).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from consan._errors import ConsanError, NotSupported
from consan.libcuda.texts.places import KernelPlaces, with_places
from consan.libcuda.texts.united import unite
from consan.toolchain.fatbin import MAGIC, ChosenPtx, choose_ptx, embedded, fat_binaries, runs_on

_DEPTH: Final = 8  # machine code that was linked from machine code that was linked, and so on
_ELF: Final = b"\x7fELF"
_ARCHIVE: Final = b"!<arch>\n"


class Links:
    """The images that each machine code was linked from, in all processes of a program."""

    def __init__(self) -> None:
        self._inputs: dict[tuple[int, int], list[bytes]] = {}  # process, linker -> images so far
        self._made: dict[bytes, tuple[bytes, ...]] = {}  # digest of machine code -> images
        self._sizes: set[int] = set()  # of that machine code
        self.kept: Path | None = None  # a folder in which compilers leave NAME.ptx beside NAME.cubin
        self._read: dict[Path, int] = {}  # files of it, and when they were written
        self._places: dict[str, KernelPlaces] = {}  # of kernels whose PTX has no lines: NAME.places of that folder

    def add(self, pid: int, linker: int, image: bytes) -> None:
        """A linker gets an image."""
        self._inputs.setdefault((pid, linker), []).append(image)

    def make(self, pid: int, linker: int, code: bytes) -> None:
        """A linker has made machine code; without any, it has gone."""
        if code:
            self._learn(code, tuple(self._inputs.get((pid, linker), ())))
        else:
            self._inputs.pop((pid, linker), None)

    def may_know(self, image: bytes) -> bool:
        """Whether it is worth a look: machine code that nothing is known of is not."""
        self._read_kept()
        return not image.startswith(_ELF) or _digest(image) in self._made

    def _read_kept(self) -> None:
        """Learn what compilers have left since the last look."""
        for code in self.kept.glob("*.cubin") if self.kept is not None else ():
            with contextlib.suppress(OSError):  # the program may take it away
                written, text = code.stat().st_mtime_ns, code.with_suffix(".ptx")
                if self._read.get(code) != written and text.exists():
                    self._learn(code.read_bytes(), (text.read_bytes(),))
                    self._read[code] = written
        for file in self.kept.glob("*.places") if self.kept is not None else ():
            self._places.setdefault(file.stem, KernelPlaces.stored(file.read_text()))

    def _learn(self, code: bytes, inputs: tuple[bytes, ...]) -> None:
        self._made[_digest(code)] = inputs
        self._sizes.add(len(code))

    def ptx_of(self, image: bytes, architecture: str) -> tuple[str, str] | None:
        """The name and the text of the PTX that an image holds, or was made from. None for machine code. Raises NotSupported."""
        found = self._found(image, architecture)
        if found is None:
            return None
        if len(found.texts) == 1 and not found.gaps:
            return found.name, with_places(found.texts[0], self._places)
        text, missing = unite(found.texts)
        if missing and found.gaps:
            raise NotSupported(f"it is linked with machine code that has no PTX, for {', '.join(sorted(missing)[:3])}")
        return found.name, text

    def _found(self, image: bytes, architecture: str, depth: int = 0) -> ChosenPtx | None:
        if image.startswith(MAGIC):
            return choose_ptx(image, architecture) or self._assembled(image, architecture, depth)
        if not image.startswith(_ELF):
            return ChosenPtx("", (text_of(image),))
        inputs = self._made.get(_digest(image)) if depth < _DEPTH else None
        return None if inputs is None else self._joined(inputs, architecture, depth)

    def _assembled(self, image: bytes, architecture: str, depth: int) -> ChosenPtx | None:
        """The PTX that the newest machine code of a fat binary was made from."""
        (binary, *others) = fat_binaries(image)
        code = [entry for entry in binary if not entry.ptx and not others and entry.size in self._sizes and runs_on(entry, architecture)]
        for entry in sorted(code, key=lambda each: each.architecture, reverse=True):
            inputs = self._made.get(_digest(entry.data())) if depth < _DEPTH else None
            if inputs is not None:
                return self._joined(inputs, architecture, depth)
        return None

    def _joined(self, inputs: Sequence[bytes], architecture: str, depth: int) -> ChosenPtx:
        parts = [self._part(each, architecture, depth + 1) for image in inputs for each in _within(image)]
        found = [part for part in parts if part is not None]
        if not found:
            raise NotSupported("it is linked from code that is no PTX")
        gaps = len(found) < len(parts) or any(part.gaps for part in found)
        return ChosenPtx(found[0].name, tuple(text for part in found for text in part.texts), gaps=gaps)

    def _part(self, image: bytes, architecture: str, depth: int) -> ChosenPtx | None:
        try:
            return self._found(image, architecture, depth)
        except ConsanError:  # damaged, or no PTX: the program's linker has taken it
            return None


def text_of(image: bytes) -> str:
    """The PTX that an image is. Raises NotSupported."""
    text = image.split(b"\0", 1)[0].decode(errors="replace")
    if ".version" not in text:
        raise NotSupported("it holds no PTX")
    return text


def _within(image: bytes) -> list[bytes]:
    """The image, or the fat binaries within an object file or a library of the host."""
    host = image.startswith(_ARCHIVE) or (image.startswith(_ELF) and MAGIC in image)
    return list(embedded(image)) if host else [image]


def _digest(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=16).digest()
