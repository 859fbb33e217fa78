"""A program that is not Python, as the command line names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NativeProgram:
    """A program to run: the file, and its words, of which the first is its name."""

    file: str
    words: tuple[str, ...]
    note: str = ""  # for the report

    @property
    def label(self) -> str:
        """For the name of the stored run."""
        return self.file
