"""The libraries that are built with the package."""

from __future__ import annotations

import sys
from pathlib import Path

from consan.backends.call_filter import FILTER
from consan.checker.compiled.build import CHECKER
from consan.libcuda.build import DRIVER, RUNTIMES
from consan.native.build import INTERPOSER
from consan.toolchain.host_library import FOLDER

# The others talk to the driver as Linux has it.
LIBRARIES = (CHECKER, INTERPOSER, FILTER, DRIVER, *RUNTIMES.values()) if sys.platform == "linux" else (CHECKER,)


def has_compilers() -> bool:
    """Whether the machine has the compilers for all of them."""
    return all(library.language.compiler() for library in LIBRARIES)


def build(package: Path) -> None:
    """Put the libraries into the folder of the package. Raises EnvironmentFailure."""
    for library in LIBRARIES:
        library.build(package / FOLDER)
