"""The lines of a Helion program in the PTX of a kernel that Helion has made.

Helion writes Triton into a file of its own and puts above each statement `# src[program.py:24]: ...`, with the file's name alone. In the
PTX the place of such a statement becomes the line of the program, if exactly one file of the program has that name. Read against 1.5.

Without a GPU nothing is tuned: a kernel without a configuration runs with Helion's default. Persistent kernels have the processors of the
virtual machine.

Not handled: what no comment stands above (the place in the generated file stays).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from consan.adapters import sources
from consan.adapters.base import SessionLike
from consan.adapters.seam import Seam

_FILE: Final = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"\n]+)".*$', re.M)
_LOC: Final = re.compile(r"((?:^[ \t]*\.loc|\binlined_at)[ \t]+)(\d+)[ \t]+(\d+)[ \t]+(\d+)", re.M)
_COMMENT: Final = re.compile(r"^\s*# src\[([^\]:]+):(\d+)(?:-\d+)?\]")
_MARK: Final = "helion.runtime"


class HelionUntuned(Seam):
    """Kernels of Helion, which are Triton's, without its tuner."""

    name = "helion"
    title = "Helion"
    package = "helion"
    distribution = "helion"
    covers = "its kernels are Triton's; without a GPU they run with the configuration of the program, or Helion's default"

    def install(self, session: SessionLike) -> None:
        """Helion reads its settings when a kernel is defined."""
        super().install(session)
        if self.available():
            self._set(HELION_AUTOTUNE_EFFORT="none")
            self._when("helion.runtime", lambda runtime: self._wrap(runtime, "get_num_sm", self._processors))

    def _begin(self, helion: ModuleType) -> None:
        """All is done where its runtime is imported."""

    def _processors(self, original: Callable[..., int], device: Any, *, reserved_sms: int = 0) -> int:
        """`get_num_sm`, by which persistent kernels and barriers of the grid choose it; tensors lie on the CPU here."""
        if device.type != "cpu":
            return original(device, reserved_sms=reserved_sms)
        return max(1, int(self._open.backend.sm_count) - reserved_sms)


def with_lines(ptx: str) -> str:
    """The PTX with places of the program, where they are known."""
    files = _FILE.findall(ptx)
    known = {number: found for number, name in files if (found := _statements(name))}
    if not known:
        return ptx
    next_number = max(int(number) for number, _ in files) + 1
    programs = {
        name: str(next_number + at) for at, name in enumerate(dict.fromkeys(file for each in known.values() for _, file, _ in each))
    }

    def there(place: re.Match[str]) -> str:
        statements = known.get(place[2], ())
        at = bisect.bisect_right(statements, int(place[3]), key=lambda each: each[0]) - 1
        return f"{place[1]}{programs[statements[at][1]]} {statements[at][2]} 1" if statements and at >= 0 else place[0]

    declared = "".join(f'\n\t.file\t{number} "{name}"' for name, number in programs.items())
    return _FILE.sub(lambda line: line[0] + declared if line[1] == files[-1][0] else line[0], _LOC.sub(there, ptx))


@lru_cache(maxsize=64)
def _statements(generated: str) -> tuple[tuple[int, str, int], ...]:
    """The commented statements of a file that Helion has made: its line, the file of the program, the line there."""
    try:
        lines = Path(generated).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    if not any(_MARK in line for line in lines[:20]):
        return ()
    found = [(number, comment[1], int(comment[2])) for number, line in enumerate(lines, 1) if (comment := _COMMENT.match(line))]
    files = {name: sources.user_file(name) for _, name, _ in found}
    return tuple((number, file, line) for number, name, line in found if (file := files[name]))
