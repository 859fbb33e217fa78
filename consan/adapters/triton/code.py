"""The PTX of a compiled kernel, with corrected source lines.

Triton writes most memory and synchronisation instructions as multi-line inline assembly from one line of Python. The LLVM of
Triton 3.9 counts lines within such a block: its second line is attributed to the next line of Python, and so on. The first `.loc`
of a block is right, and is copied to the others. Line numbers of the PTX do not change.

Triton's cache knows a kernel by its text, not by its folder. PTX from a checkout that has moved names files that are gone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from consan._errors import NotSupported
from consan.adapters.triton import helion
from consan.reports.words.frameworks import GLUON, HELION, TRITON

_BLOCK = re.compile(r"// begin inline asm\n.*?// end inline asm", re.S)
_LOC = re.compile(r"^[ \t]*\.loc[ \t].*$", re.M)
_FILE = re.compile(r"^([ \t]*\.file[ \t]+\d+[ \t]+)\"([^\"\n]+)\"", re.M)
_HELIONS = "_helion_"  # how the names of functions begin that Helion writes


def ptx_of(kernel: Any) -> str:
    """The PTX of a `CompiledKernel`. NotSupported if Triton was set to keep none."""
    ptx = kernel.asm.get("ptx")
    if ptx is None:
        raise NotSupported(f"{kernel.name} comes without its PTX: unset TRITON_STORE_BINARY_ONLY and empty Triton's cache")
    return helion.with_lines(moved(settled(ptx), _file_of(kernel)))


def _file_of(kernel: Any) -> str:
    """The Python file of a `CompiledKernel`; empty if it was not compiled from Python."""
    function = getattr(getattr(getattr(kernel, "src", None), "fn", None), "fn", None)
    return getattr(getattr(function, "__code__", None), "co_filename", "")


def framework_of_source(source: Any) -> str:
    """Gluon by the class of what was compiled (`triton.experimental.gluon._runtime.GluonASTSource`), Helion by the names that it gives."""
    if "gluon" in type(source).__module__:
        return GLUON
    return HELION if getattr(source, "name", "").startswith(_HELIONS) else TRITON


def settled(ptx: str) -> str:
    """The PTX with one source line for each block of inline assembly."""
    return _BLOCK.sub(lambda block: _same_place(block[0]), ptx)


def moved(ptx: str, file: str) -> str:
    """The PTX with the folders of today: files that are gone are looked for where the kernel's own file is now."""
    recorded = {path for _, path in _FILE.findall(ptx)}
    own = next((path for path in sorted(recorded) if Path(path).name == Path(file).name and not Path(path).exists()), None)
    if own is None or not Path(file).exists():
        return ptx
    old, new = _without_common_end(Path(own), Path(file))

    def there(line: re.Match[str]) -> str:
        path = Path(line[2])
        target = new / path.relative_to(old) if path.is_relative_to(old) else path
        return f'{line[1]}"{target if not path.exists() and target.exists() else path}"'

    return _FILE.sub(there, ptx)


def _without_common_end(one: Path, other: Path) -> tuple[Path, Path]:
    """The folders of two files, without the last folders that have the same names in both."""
    one, other = one.parent, other.parent
    while one.name and one.name == other.name:
        one, other = one.parent, other.parent
    return one, other


def _same_place(block: str) -> str:
    first = _LOC.search(block)
    return block if first is None else _LOC.sub(lambda _: first[0], block)
