"""Python looks for cycles seldom while consan works, and as usual while the program runs."""

from __future__ import annotations

import gc
import subprocess
import sys

from consan.process.collector import collecting_as_given

ASKS = "import gc; print(gc.get_threshold(), gc.get_freeze_count() > 10_000)"


def _said(*words: str) -> str:
    return subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True).stdout.splitlines()[0]


def test_a_program_has_the_thresholds_of_python() -> None:
    usual = _said("-c", ASKS).partition(" False")[0]
    assert _said("-m", "consan", "run", "--device", "cpu", "-c", ASKS) == f"{usual} True", "and what was there before it is left out"


def test_nothing_changes_in_a_process_that_is_not_consans() -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    with collecting_as_given():
        assert (gc.get_threshold(), gc.get_freeze_count()) == before
