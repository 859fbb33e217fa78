"""Effects of instructions on memory or order: one typed record for each (kinds.py), its row in a template, and its C++ structure."""

from consan.instrument.effects.kinds import *  # noqa: F403 - all kinds are public
from consan.instrument.effects.model import (
    ALL_THREADS as ALL_THREADS,
    LANES as LANES,
    NO_WORD as NO_WORD,
    Effect as Effect,
    WordValue as WordValue,
)
