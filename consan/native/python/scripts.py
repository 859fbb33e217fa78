"""Scripts that import a framework which launches by itself: on a GPU they run as programs that are not Python.

How their kernels are seen: consan/native/python/frameworks.py.

Not handled: scripts that import it by way of another module of theirs (`consan run /path/to/python script.py`), -m and -c.
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path
from typing import Final

from consan import late
from consan.native.program import NativeProgram

# Packages, and the framework that launches for them.
PACKAGES: Final = {
    **dict.fromkeys(("cutlass", "quack", "flash_attn.cute"), "CuTe DSL"),
    "tilelang": "tilelang",
    "warp": "Warp",
    "jax": "JAX",
}
_NOTE: Final = "{} loads and launches its kernels itself: the program ran as one that is not Python"


def find_framework_program(args: argparse.Namespace) -> NativeProgram | None:
    """The script of a command, if it imports such a framework and there is a GPU."""
    words = args.program
    if args.module is not None or args.code is not None or args.device == "cpu" or not words or not words[0].endswith(".py"):
        return None
    title = framework_of(Path(words[0]))
    if not title or not late.native_run.has_gpu():
        return None
    return NativeProgram(sys.executable, (sys.executable, *words), _NOTE.format(title), words[0])


def framework_of(script: Path) -> str:
    """The framework that a script imports; empty if it imports none."""
    try:
        source = script.read_bytes()
        tree = ast.parse(source) if any(name.partition(".")[0].encode() in source for name in PACKAGES) else None
    except (OSError, SyntaxError, ValueError):  # said where the script is run
        return ""
    packages = map(_package, _imported(tree) if tree is not None else [])
    return next((PACKAGES[each] for each in packages if each), "")


def _imported(tree: ast.Module) -> list[str]:
    plain = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    given = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level)
    return plain + [f"{node.module}.{alias.name}" for node in given for alias in node.names]


def _package(name: str) -> str:
    return next((each for each in PACKAGES if f"{name}.".startswith(f"{each}.")), "")
