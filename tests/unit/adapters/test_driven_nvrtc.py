"""The NVRTC of cuda.bindings on the stand-in driver, against a miniature whose PTX says how it was made.

pipeline/test_driver_programs.py runs programs with the real one, where it is installed.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from consan._errors import UsageError
from consan.adapters.driven import nvrtc
from consan.adapters.sources import SourceStart
from consan.session.without_optimisation import CudaText

CODE = "template <int N> __global__ void " + "k(int *x) {}"  # in two parts: not found verbatim in this file


class Miniature(ModuleType):
    """Programs are numbers. Text with "error" does not compile."""

    def __init__(self) -> None:
        super().__init__("cuda.bindings.nvrtc")
        self.programs: dict[int, list[Any]] = {}
        self.numbers = itertools.count(1)

    def nvrtcCreateProgram(self, src: bytes, name: bytes, count: int, headers: Any, includes: Any) -> tuple[int, int]:
        number = next(self.numbers)
        self.programs[number] = [src, name, headers, []]
        return 0, number

    def nvrtcAddNameExpression(self, prog: int, name: bytes) -> tuple[int]:
        self.programs[prog][3].append(name)
        return (0,)

    def nvrtcCompileProgram(self, prog: int, count: int, options: list[bytes]) -> tuple[int]:
        assert count == len(options)
        self.programs[prog].append(options)
        return (6 if b"error" in self.programs[prog][0] else 0,)

    def nvrtcDestroyProgram(self, prog: int) -> tuple[int]:
        del self.programs[prog]
        return (0,)

    def nvrtcGetPTXSize(self, prog: int) -> tuple[int, int]:
        return (0, len(self._ptx(prog))) if b"-dlto" not in self.programs[prog][4] else (7, 0)

    def nvrtcGetPTX(self, prog: int, code: bytearray) -> tuple[int]:
        code[:] = self._ptx(prog)
        return (0,)

    def nvrtcGetProgramLogSize(self, prog: int) -> tuple[int, int]:
        return 0, 4

    def nvrtcGetProgramLog(self, prog: int, log: bytearray) -> tuple[int]:
        log[:] = b"bad\0"
        return (0,)

    def _ptx(self, prog: int) -> bytes:
        return repr(self.programs[prog]).encode() + b"\0"


@pytest.fixture
def mini() -> Miniature:
    return Miniature()


@pytest.fixture
def known(mini: Miniature) -> dict[str, CudaText]:
    """The texts of what is compiled by the functions that the miniature has afterwards."""
    known: dict[str, CudaText] = {}
    replaced = nvrtc.Nvrtc(mini, lambda code, name: SourceStart("a.py", 5), known.__setitem__).replaced
    vars(mini).update(replaced)
    return known


def compiled(mini: Miniature, code: str, *options: bytes) -> Any:
    _, prog = mini.nvrtcCreateProgram(code.encode(), b"k.cu", 1, [b"int a;"], [b"a.h"])
    mini.nvrtcAddNameExpression(prog, b"k<3>")
    mini.nvrtcCompileProgram(prog, len(options), list(options))
    return prog


def test_a_text_is_compiled_again_as_the_program_has_done(mini: Miniature, known: dict[str, CudaText]) -> None:
    compiled(mini, CODE, b"-DX")
    ((ptx, text),) = known.items()
    assert (text.file, text.line, text.code) == ("a.py", 5, CODE)
    assert text.compiled(CODE, True) == ptx
    assert ptx == repr([f'#line 5 "a.py"\n{CODE}'.encode(), b"k.cu", [b"int a;"], [b"k<3>"], [b"-lineinfo", b"-DX"]])
    assert text.compiled(CODE, False) == ptx.replace("b'-DX'", "b'-DX', b'-G'")
    assert len(mini.programs) == 1, "those of its own are destroyed"
    with pytest.raises(UsageError, match="bad"):
        text.compiled("error", False)
    assert (len(mini.programs), len(known)) == (1, 1)


@pytest.mark.parametrize(("code", "option"), [(CODE, b"-G"), (CODE, b"-dlto"), ("error", b"-DX"), ("", b"-DX")])
def test_what_is_not_to_be_compared(mini: Miniature, known: dict[str, CudaText], code: str, option: bytes) -> None:
    compiled(mini, code, option)
    assert not known


def test_packages_with_an_adapter_compile_as_they_do(mini: Miniature, known: dict[str, CudaText], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "caller", lambda: "tilelang")
    prog = compiled(mini, CODE, b"-DX")
    assert mini.programs[prog] == [CODE.encode(), b"k.cu", [b"int a;"], [b"k<3>"], [b"-DX"]]
    assert not known


def test_a_destroyed_program_is_forgotten(mini: Miniature, known: dict[str, CudaText]) -> None:
    mini.nvrtcDestroyProgram(compiled(mini, CODE))
    mini.programs[1] = [b"another", b"", [], []]  # NVRTC gives a handle again
    mini.nvrtcCompileProgram(1, 0, [])
    assert len(known) == 1
    assert mini.programs[1][4] == []


@pytest.mark.parametrize("same", [True, False])
def test_a_program_named_as_the_file_that_holds_it(tmp_path: Path, same: bool) -> None:
    """Its findings name that file, if it has the text."""
    path = tmp_path / "sub" / "k.cu"
    path.parent.mkdir()
    path.write_text(CODE if same else "other")
    assert (nvrtc.place(CODE, str(path), tmp_path / "copies") == SourceStart(str(path), 1)) == same
