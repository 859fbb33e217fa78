"""Whom a release reaches: SEMANTICS 2, 3 and 6. A release and an acquire make an edge if the scope of each includes the other thread.

Between threads of one CTA any scope will do, between two CTAs of a cluster `.cluster` or wider on both sides. So what a location has been
given is kept by who may take it: threads of the releasing CTA, or of all (FAR) if the scope was wide, whose own scope must be wide then.
What an asynchronous operation gives with its completion is for every acquire (D5: ANYBODY).
"""

from __future__ import annotations

from oracle_clocks import Clocks, Snapshot, join

Past = dict[int, Snapshot]  # by CTA, FAR or ANYBODY
FAR, ANYBODY = -1, -2

# How much is taken for an edge. EXACT is the rule; the others say what a missing edge lacks: a scope on the side that waits, one on
# either side, or the release itself. In EXECUTION everything that makes a thread wait for another one counts.
EXACT, WAIT_SCOPES, SCOPES, EXECUTION = range(4)


def both(left: Past, right: Past) -> Past:
    """What either has."""
    found, done = dict(left), dict[tuple[int, int], Snapshot]()
    for key, snapshot in right.items():
        pair = id(left.get(key)), id(snapshot)  # a wide release gives its own CTA what it gives all
        if pair not in done:
            joined = join(left.get(key), snapshot)
            assert joined is not None
            done[pair] = joined
        found[key] = done[pair]
    return found


class Scopes:
    """Releases and acquires of the threads of a cluster."""

    def __init__(self, clocks: Clocks, level: int = EXACT) -> None:
        self.clocks, self.level = clocks, level
        self.fences: dict[int, Past] = {}  # by actor: what its release fences cover
        self.pending: dict[int, list[tuple[Past, bool]]] = {}  # by actor: what an acquire fence would acquire
        self.inits: dict[int, list[int]] = {}  # by actor: the initialisations of mbarriers it has made

    def release(self, actor: int, home: int, *, orders: bool, wide: bool) -> Past:
        """What a strong write of an actor in CTA `home` publishes, by itself or after a fence."""
        wide = wide or self.level >= SCOPES
        if orders or self.level == EXECUTION:
            mine = self.clocks.snapshot_of(actor)
            return {home: mine, FAR: mine} if wide else {home: mine}
        return {key: snapshot for key, snapshot in self.fences.get(actor, {}).items() if wide or key != FAR}

    def take(self, actor: int, home: int, past: Past, *, orders: bool, wide: bool) -> None:
        """A strong read of what has been published: an acquire, or what a fence makes one."""
        wide = wide or self.level >= WAIT_SCOPES
        if orders or self.level == EXECUTION:
            self._acquire(actor, home, past, wide)
        elif past:
            self.pending.setdefault(actor, []).append((past, wide))

    def _acquire(self, actor: int, home: int, past: Past, wide: bool) -> None:
        for key in (home, ANYBODY, FAR) if wide else (home, ANYBODY):
            if key in past:
                self.clocks.acquire_one(actor, past[key])

    def fence(self, actor: int, home: int, *, acquires: bool, releases: bool, wide: bool) -> None:
        """fence.acquire, release, acq_rel and sc."""
        if acquires:
            fence_wide = wide or self.level >= WAIT_SCOPES
            for past, read_wide in self.pending.get(actor, []):
                self._acquire(actor, home, past, fence_wide and read_wide)
            if fence_wide:
                self.pending.pop(actor, None)
        if releases:
            mine = self.clocks.snapshot_of(actor)
            self._publish(actor, {home: mine, FAR: mine} if wide or self.level >= SCOPES else {home: mine})

    def _publish(self, actor: int, past: Past) -> None:
        self.fences[actor] = both(self.fences.get(actor, {}), past)

    def initialise(self, actor: int) -> int:
        """An mbarrier.init: an actor of its own, since there is a fence for that alone."""
        (made,) = self.clocks.new_actors(1).tolist()
        self.clocks.observe(actor, [made])
        self.inits.setdefault(actor, []).append(made)
        return int(made)

    def fence_inits(self, actor: int, home: int) -> None:
        """fence.mbarrier_init.release.cluster covers the actor's initialisations and nothing else (SEMANTICS 7)."""
        only = self.clocks.only(self.inits.get(actor, []))
        self._publish(actor, {home: only, FAR: only})
