"""The commands of setuptools that are not its own (pyproject.toml, `tool.setuptools.cmdclass`)."""

from __future__ import annotations

from pathlib import Path

from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

from consan.building.libraries import build


class BuildWithLibraries(build_py):
    """The Python files, and the libraries: beside the sources for an editable installation."""

    def run(self) -> None:
        """Build all of them."""
        super().run()
        build(Path("consan") if self.editable_mode else Path(self.build_lib, "consan"))


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and any Python: the libraries are loaded by ctypes."""

    def finalize_options(self) -> None:
        """Not only Python: the files go where a platform's do."""
        self.distribution.has_ext_modules = lambda: True
        super().finalize_options()

    def get_tag(self) -> tuple[str, str, str]:
        """Python, ABI and platform."""
        return ("py3", "none", super().get_tag()[2])
