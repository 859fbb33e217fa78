"""The build backend (PEP 517, 660) that pyproject.toml names: setuptools', which also asks for a compiler where the machine has none."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

# The sources that are built are those of this tree, whatever consan is installed.
_ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(_ROOT))
importlib.import_module("consan").__path__.append(str(_ROOT))  # instrument/ and reports/ stand beside consan/
from consan.building.libraries import has_compilers  # noqa: E402

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Requirements of the build beside pyproject.toml: the compiler of the ziglang wheel, where the machine has none for C++ and C."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compilers()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The same for an editable installation."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compilers()]


def _compilers() -> list[str]:
    return [] if has_compilers() else ["ziglang"]
