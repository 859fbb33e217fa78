"""The mbarrier of tcgen05.commit (PTX ISA, "tcgen05.commit").

Without .shared::cluster the operand is a generic address. Triton 3.6 passes a 32-bit shared address with zeros above instead. The ISA does
not allow that; kernels rely on it, so the chip must take the low half of the address, and so does this machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.address import GenericLocator, Located, Locator
from consan.backends.cpu.decode.operands import DecodeContext
from consan.backends.cpu.state.memory import SHARED_WINDOW
from consan.instrument.ptx import Operand

from .mbarrier_steps import barrier_locator

_HALF = np.uint64(32)


class NearLocator(GenericLocator):
    """Generic addresses of shared memory; the upper half may be missing."""

    def resolve(self, addresses: npt.NDArray[Any], sel: Any) -> Located:  # noqa: D102 - as in Locator
        return super().resolve(np.where(addresses >> _HALF, addresses, addresses + np.uint64(SHARED_WINDOW)), sel)


def commit_locator(context: DecodeContext, address: Operand) -> Locator:
    """A function that finds the mbarrier."""
    if "ss" in context.modifiers:
        return barrier_locator(context, address)
    place = context.place(address)
    found = NearLocator(context.wave, place.base, place.offset, 8, context.site, "rmw")
    context.function.plan.locators.append(found)
    return found
