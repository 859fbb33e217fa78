"""The order and scope of an operation as one number of a template (consan/checker/source/order/flags.hpp reads it), and its reach."""

from __future__ import annotations

from typing import TypedDict

from consan.instrument.isa import InstructionEvent, MemoryAccess
from consan.instrument.rewriting.context import Work, operand_of
from consan.instrument.rewriting.emit import is_ranked

_SCOPES = {"none": 0, "cta": 0, "cluster": 1, "gpu": 2, "sys": 3}
_ORDERS = {"acquire": 1, "release": 2, "sc": 4}


def order_of(event: InstructionEvent) -> int:
    """A bit for each that it orders, and the scope in bits 4 and 5."""
    return sum(_ORDERS[word] for word in event.orders if word in _ORDERS) | _SCOPES.get(event.scope, 0) << 4


class AccessReach(TypedDict):
    """Whether an address names a CTA of the cluster, and whether a strong access or an operation on an mbarrier is of .cta scope."""

    ranked: bool
    narrow: bool


def reach_of(work: Work, access: MemoryAccess) -> AccessReach:
    """The reach of an access."""
    mbarrier = operand_of(work, "mbar")
    places = (access, *(each for each in work.event.accesses if mbarrier is not None and each.address is mbarrier))
    return {"ranked": any(map(is_ranked, places)), "narrow": access.is_strong and work.event.is_of_cta}
