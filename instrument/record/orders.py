"""The order that an operation makes, and its scope, as one number of a template (consan/checker/source/flags.hpp reads it)."""

from __future__ import annotations

from consan.instrument.isa import InstructionEvent

_SCOPES = {"none": 0, "cta": 0, "cluster": 1, "gpu": 2, "sys": 3}
_ORDERS = {"acquire": 1, "release": 2, "sc": 4}


def order_of(event: InstructionEvent) -> int:
    """A bit for each that it orders, and the scope in bits 4 and 5."""
    return sum(_ORDERS[word] for word in event.orders if word in _ORDERS) | _SCOPES.get(event.scope, 0) << 4
