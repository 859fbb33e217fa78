"""Kernels with instructions whose order called hooks do not know: what the hooks found there is left out
(reports/verdict/speaking/selection.py).

Such an instruction completes on an mbarrier (tcgen05.commit, clusterlaunchcontrol.try_cancel) or is one that only the recording engine
takes. Hooks that do not see it take accesses for unordered that it orders, and bytes for unwritten that it has written. Faults and
deadlocks of the virtual machine stay: they are facts.
"""

from __future__ import annotations

from collections.abc import Iterable

from consan.instrument.isa import lookup, spares_shared
from consan.session.modules.prepared import Prepared


def unknown_order(used: Iterable[Prepared]) -> dict[str, str]:
    """Kernel with called hooks -> the first opcode that they do not know and that may order accesses."""
    found = {}
    for prepared in (prepared for prepared in used if prepared.recorded is None):
        for name in prepared.entries:
            reached = prepared.instrumented.reachable(name)
            opcodes = (each.opcode for function in reached for each in function.unmodelled)
            first = next(filter(_may_order, opcodes), None)
            if first is not None:
                found[name] = first
    return found


def _may_order(opcode: str) -> bool:
    parts = tuple(opcode.split("."))
    row = lookup(parts)
    orders = row is not None and (row.status == "recorded" or row.completion == "mbarrier" or bool(row.ordering))
    return orders and not spares_shared(parts)
