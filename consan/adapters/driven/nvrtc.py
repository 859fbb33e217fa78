"""The texts that a program compiles by the NVRTC of cuda.bindings, on consan's stand-in driver.

NVRTC gets the text with a line that says where it can be read, and the option for lines. The session keeps the text beside its PTX, to
compare launches with those of the text without optimisation. `nvrtcGetCUBIN` gives PTX, which the driver takes in place of machine code.

Not handled: a program that asks for `-G` itself is not compared; a text that is not UTF-8 is compiled as it is. Packages with an adapter
of their own use NVRTC as they do without consan.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from consan._errors import UsageError
from consan.adapters import sources
from consan.adapters.cuda_core import OWN_ADAPTER, caller, text_of
from consan.dataclass import dataclass
from consan.session.without_optimisation import CudaText

_CUBIN: Final = ("nvrtcGetCUBIN", "nvrtcGetCUBINSize")
_OTHERS: Final = (*OWN_ADAPTER, "tilelang")
_LINES: Final = frozenset((b"-lineinfo", b"--generate-line-info"))
_DEBUG: Final = frozenset((b"-G", b"--device-debug"))

Place = Callable[[str, str], sources.SourceStart | None]
"""Gives the place where the text of a program can be read, by the text and the name that it was given."""


@dataclass
class _Program:
    """A program that was created. `create`: makes one of another text, with the same headers."""

    at: sources.SourceStart
    code: str
    create: Callable[[str], Any]
    names: list[Any] = field(default_factory=list)  # expressions whose symbols are wanted


class Nvrtc:
    """The functions of `cuda.bindings.nvrtc` that are replaced. `made`: is given each PTX and its text."""

    def __init__(self, nvrtc: ModuleType, place: Place, made: Callable[[str, CudaText], None]) -> None:
        self._place, self._made = place, made
        self._programs: dict[int, _Program] = {}  # by their handles
        own = (self._create, self._add_name, self._compile, self._destroy)
        names = ("nvrtcCreateProgram", "nvrtcAddNameExpression", "nvrtcCompileProgram", "nvrtcDestroyProgram")
        self._plain = {name: getattr(nvrtc, name) for name in (*names, "nvrtcGetPTX", "nvrtcGetPTXSize")}
        self._plain |= {name: getattr(nvrtc, name) for name in ("nvrtcGetProgramLog", "nvrtcGetProgramLogSize")}
        self.replaced: dict[str, Any] = {name: getattr(nvrtc, name.replace("CUBIN", "PTX")) for name in _CUBIN}
        self.replaced |= zip(names, own, strict=True)

    def _create(self, src: Any, name: Any, numHeaders: int, headers: Any, includeNames: Any) -> Any:  # noqa: N803 - as its callers say
        def create(text: bytes) -> Any:
            return self._plain["nvrtcCreateProgram"](text, name, numHeaders, headers, includeNames)

        at, code = None, _decoded(src)
        if code and caller() not in _OTHERS:
            at = self._place(code, (name or b"").decode(errors="replace"))
        if at is None or code is None:
            return create(src)
        start, code = at.directive(), at.spread(code)
        answer = create((start + code).encode())
        if not int(answer[0]):
            self._programs[int(answer[1])] = _Program(at, code, lambda text: self._ok(create((start + text).encode())))
        return answer

    def _add_name(self, prog: Any, name_expression: Any) -> Any:
        if (program := self._programs.get(int(prog))) is not None:
            program.names.append(name_expression)
        return self._plain["nvrtcAddNameExpression"](prog, name_expression)

    def _destroy(self, prog: Any) -> Any:
        self._programs.pop(int(prog), None)
        return self._plain["nvrtcDestroyProgram"](prog)

    def _compile(self, prog: Any, numOptions: int, options: Any) -> Any:  # noqa: N803 - as its callers say
        program, given = self._programs.get(int(prog)), list(options or ())
        if program is None or not _DEBUG.isdisjoint(given):
            return self._plain["nvrtcCompileProgram"](prog, numOptions, options)
        more = [b"-lineinfo"] if _LINES.isdisjoint(given) else []
        began = time.process_time()
        answer = self._plain["nvrtcCompileProgram"](prog, numOptions + len(more), [*more, *given])
        took = time.process_time() - began
        ptx = "" if int(answer[0]) else self._text(prog, "PTX")
        if ptx:  # there is none for a linker's intermediate code
            compiled = functools.partial(self._compiled, program, tuple(program.names), [*more, *given[:numOptions]])
            self._made(ptx, CudaText(program.at.path, program.at.line, program.code, compiled, took))
        return answer

    def _compiled(self, program: _Program, names: Sequence[Any], options: list[bytes], text: str, optimised: bool) -> str:
        """PTX of a text in the place of a program's."""
        prog = program.create(text)
        try:
            for each in names:
                self._ok(self._plain["nvrtcAddNameExpression"](prog, each))
            given = options if optimised else [*options, b"-G"]
            if int(self._plain["nvrtcCompileProgram"](prog, len(given), given)[0]):
                raise UsageError(self._text(prog, "ProgramLog"))
            return self._text(prog, "PTX")
        finally:
            self._plain["nvrtcDestroyProgram"](prog)

    def _text(self, prog: Any, what: str) -> str:
        """`PTX` or `ProgramLog` of a program; empty if it has none."""
        status, size = self._plain[f"nvrtcGet{what}Size"](prog)
        buffer = bytearray(0 if int(status) else size)
        return text_of(buffer) if buffer and not int(self._plain[f"nvrtcGet{what}"](prog, buffer)[0]) else ""

    @staticmethod
    def _ok(answer: Any) -> Any:
        if int(answer[0]):
            raise UsageError(f"NVRTC: {answer[0]}")
        return answer[1] if len(answer) > 1 else None


def place(code: str, name: str, folder: Path) -> sources.SourceStart:
    """The file of this name where it has the text; else where `sources.place` finds it."""
    path = Path(name).absolute()
    return sources.SourceStart(str(path), 1) if name and sources.holds(path, code) else sources.place(code, folder)


def _decoded(src: Any) -> str | None:
    try:
        return bytes(src).decode().rstrip("\0")
    except (UnicodeDecodeError, TypeError):
        return None
