"""The long text of each kind: what it means, what the PTX ISA says, a racy and a fixed example, how to fix it. A file for each kind.

`consan explain KIND` prints these as pages (pages.py). The examples are whole kernels. Tests run both: the first must give the
finding, the second none. Section numbers are those of PTX ISA 9.1.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import resources
from pathlib import Path

from consan.dataclass import dataclass

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Explanation:
    """One page. `launch` holds the `consan check` options of the examples."""

    about: str
    isa: str
    sections: tuple[str, ...]
    racy: str
    fixed: str
    repair: str
    launch: str


@cache
def explanations() -> dict[str, Explanation]:
    """The page of each kind."""
    files = {path.stem: path for path in Path(str(resources.files(__package__))).rglob("*.toml")}
    return {kind: Explanation(**tomllib.loads(files[kind].read_text(encoding="utf-8"))) for kind in sorted(files)}
