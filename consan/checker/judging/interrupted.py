"""The user interrupted a check before a log was read: the findings in the first lines of the logs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from consan.checker.compiled.patience import Patience
from consan.checker.judging.checked import Checked
from consan.checker.judging.collected import Collected, LaunchedKernel
from consan.checker.judging.recorder import INTERRUPTED, LONGEST_INTERRUPTED, check
from consan.checker.judging.tally import Tally
from consan.checker.logs.launch import Launch
from consan.instrument.record import Recorded
from consan.instrument.record.families.global_memory import Mode

_CUT_SHORT: Final = "were not checked, but for the beginning of the first: it was interrupted"
_BEGINNING: Final = 1 << 16  # lines of logs that are read then: 8 MiB


def unchecked(launched: LaunchedKernel) -> Checked:
    """Nothing of it."""
    ctas = math.prod(launched.grid)
    return Checked(Collected(launched), Tally(1, ctas), {INTERRUPTED: ctas})


def begun(launch: Launch, recorded: Recorded, launched: LaunchedKernel) -> Checked:
    """The findings of the first lines of the first cluster. They are not read where other CTAs may order its threads."""
    none = unchecked(launched)
    if recorded.kernels[launched.entry].mode is Mode.SYNCED or launch.expander is not None or launch.silent:
        return none
    launch.most_read = max(1, _BEGINNING // (launch.clusters.shape[1] * launch.warps))
    found = check(launch, recorded, launched, {}, limit=1, patience=Patience(LONGEST_INTERRUPTED, interrupted=True))
    return replace(none, collected=found.collected, gaps={_CUT_SHORT: math.prod(launched.grid)}, unended=found.unended)
