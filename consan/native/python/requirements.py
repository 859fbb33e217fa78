"""Installed packages that cannot do without a framework that launches by itself: by what their distributions require.

A program may import such a package only, and no framework. Requirements of extras do not count.

Not handled: packages that are installed without metadata, and frameworks that a package imports but does not require.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from consan import late

# Distributions, and the framework that launches for them.
DISTRIBUTIONS: Final = {
    **dict.fromkeys(("nvidia-cutlass-dsl", "quack-kernels", "flash-attn-4"), "CuTe DSL"),
    "tilelang": "tilelang",
    "warp-lang": "Warp",
    "jax": "JAX",
    "numba-cuda-mlir": "numba-cuda-mlir",
}
_HEAD: Final = re.compile(r"^(Name|Requires-Dist):[ \t]*([\w.-]+)([^\n]*)", re.MULTILINE)
_EXTRA: Final = re.compile(r"\bextra\s*==")


def framework_required(packages: Iterable[str]) -> str:
    """The framework that one of the packages (by the names of their imports) requires; empty if none does."""
    named = set(packages)
    if not named or not any(map(_is_of_framework, _installed())):
        return ""
    known = [each for each in map(_requirements, late.metadata.distributions()) if each is not None]
    titles = dict(DISTRIBUTIONS)
    while more := {name: titles[need] for name, needs, _ in known if name not in titles for need in needs if need in titles}:
        titles.update(more)
    found = (titles[name] for name, _, each in known if name in titles and name not in DISTRIBUTIONS and named & _imports(each))
    return next(found, "")


def _installed() -> Iterable[str]:
    """The files and folders beside installed packages."""
    for folder in sys.path:
        with contextlib.suppress(OSError):
            yield from os.listdir(folder or ".")


def _is_of_framework(entry: str) -> bool:
    return entry.endswith(".dist-info") and _normal(entry.partition("-")[0]) in DISTRIBUTIONS


def _requirements(distribution: Any) -> tuple[str, list[str], Any] | None:
    """A distribution's name and what it requires; None: it has no metadata."""
    lines = _HEAD.findall((distribution.read_text("METADATA") or "").partition("\n\n")[0])
    names = [_normal(word) for key, word, _ in lines if key == "Name"]
    needs = [_normal(word) for key, word, rest in lines if key == "Requires-Dist" and not _EXTRA.search(rest)]
    return (names[0], needs, distribution) if names else None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imports(distribution: Any) -> set[str]:
    """The names by which a distribution's packages are imported."""
    return {file.parts[0].removesuffix(".py") for file in distribution.files or () if file.suffix == ".py"}
