"""Kernels with instructions whose order called hooks do not know: what the hooks found there is left out
(reports/verdict/speaking/selection.py).

Such an instruction completes on an mbarrier (tcgen05.commit, clusterlaunchcontrol.try_cancel) or is one that only the recording engine
takes. Hooks that do not see it take accesses for unordered that it orders, and bytes for unwritten that it has written. Faults and
deadlocks of the virtual machine stay: they are facts.
"""

from __future__ import annotations

from collections.abc import Iterable

from consan.instrument.isa import ROWS, lookup, spares_shared
from consan.instrument.ptx import parse
from consan.session.modules.prepared import Prepared

_RECORDED = frozenset(row.name.partition(".")[0] for row in ROWS if row.status == "recorded")


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


def only_recorded(ptx: str) -> bool:
    """Whether PTX has an instruction that called hooks do not know."""
    if not any(family in ptx for family in _RECORDED):  # most PTX need not be parsed for this
        return False
    rows = (lookup(each.parts) for function in parse(ptx).functions for each in function.instructions())
    return any(row is not None and row.status == "recorded" for row in rows)


def _may_order(opcode: str) -> bool:
    parts = tuple(opcode.split("."))
    row = lookup(parts)
    orders = row is not None and (row.status == "recorded" or row.completion == "mbarrier" or bool(row.ordering))
    return orders and not spares_shared(parts)
