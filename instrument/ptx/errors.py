"""The one error of the reader: where the text stops being PTX, as a 1-based line and column, with one clear reason."""

from __future__ import annotations

from consan._errors import UsageError


class PtxSyntaxError(UsageError):
    """Text that is not PTX, with its 1-based line and column and the reason."""

    def __init__(self, line: int, column: int, message: str, name: str = "<ptx>") -> None:
        super().__init__(f"{name}:{line}:{column}: {message}")
        self.line = line
        self.column = column
        self.message = message
        self.name = name
