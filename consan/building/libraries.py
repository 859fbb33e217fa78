"""The libraries that are built with the package."""

from __future__ import annotations

import sys
from pathlib import Path

from consan.backends.call_filter import FILTER
from consan.checker.compiled.build import CHECKER
from consan.libcuda.build import DRIVER, MANAGEMENT, RUNTIMES
from consan.native.build import INTERPOSER
from consan.toolchain.host_library import FOLDER

# The others talk to the driver as Linux has it.
LIBRARIES = (CHECKER, INTERPOSER, FILTER, DRIVER, MANAGEMENT, *RUNTIMES.values()) if sys.platform == "linux" else (CHECKER,)


def has_compilers() -> bool:
    """Whether the machine has the compilers for all of them."""
    return all(library.language.compiler() for library in LIBRARIES)


def build(package: Path) -> None:
    """Put the libraries into the folder of the package. Raises EnvironmentFailure."""
    for library in LIBRARIES:
        library.build(package / FOLDER)


if __name__ == "__main__":  # writes the headers that are made from tables to the sources in a folder, for tools that read them there
    for _library in LIBRARIES:
        for _name, _text in _library.generated().items():
            Path(sys.argv[1], *_library.package.split("."), "source", _name).write_text(_text)
