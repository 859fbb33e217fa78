"""Verdicts on many runs of one kernel; most are the same but for what does not matter (oracle_order.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracle_order import Order
from oracle_passes import alone, check, exact, holds_for_covered, order_of
from oracle_trace import Trace
from oracle_verdict import Verdict


@dataclass
class Judge:
    """Verdicts on the CTAs of launches of one kernel, by their orders."""

    known: dict[int, list[tuple[Order, Verdict]]] = field(default_factory=dict)
    judged: int = 0  # that no order known before covers

    def verdict(self, trace: Trace) -> Verdict:
        """On a launch."""
        verdict = Verdict()
        for one in alone(trace):
            verdict.merge(self._of_one(one))
        return verdict

    def _of_one(self, trace: Trace) -> Verdict:
        order = order_of(trace)
        before = [] if order is None else self.known.setdefault(order.number, [])
        for other, verdict in before:
            if other.covers(order):
                return verdict
        self.judged += 1
        if order is None or not holds_for_covered(found := exact(trace)):
            return check(trace, merged=False)
        before[:] = [one for one in before if not order.covers(one[0])] + [(order, found)]
        return found
