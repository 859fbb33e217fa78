"""Shared by adapters of programs on the stand-in driver: it is put in front once, and goes with their folder when they are removed."""

from __future__ import annotations

from pathlib import Path

from consan.adapters.seam import Seam
from consan.libcuda import library
from consan.temporary import RunFolder


class DrivenSeam(Seam):
    """An adapter that puts the stand-in driver in front of a program."""

    def __init__(self) -> None:
        super().__init__()
        self._entered = False
        self._folder: RunFolder | None = None

    def remove(self) -> None:
        """Restore everything."""
        if self._entered:
            library.leave()
            self._entered = False
        super().remove()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _enter(self) -> None:
        """Let calls of the driver go to the session."""
        if not self._entered:
            library.enter(self._open)
            self._entered = True

    def _own_folder(self) -> Path:
        """A folder for as long as the adapter is installed."""
        if self._folder is None:
            self._folder = RunFolder(self.name)
        return self._folder.path
