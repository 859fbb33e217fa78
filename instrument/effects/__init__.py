"""What an instruction can do to memory or order: one typed record for each (kinds.py), its row in a template, and its C++ structure."""

from consan.instrument.effects.kinds import *  # noqa: F403 - all kinds are public
from consan.instrument.effects.model import ALL_THREADS as ALL_THREADS
from consan.instrument.effects.model import LANES as LANES
from consan.instrument.effects.model import NO_WORD as NO_WORD
from consan.instrument.effects.model import Effect as Effect
from consan.instrument.effects.model import WordValue as WordValue
