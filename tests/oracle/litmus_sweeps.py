"""Litmus tests with each scope and each strength of one part at a time, within a CTA, a cluster and the device."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from litmus import GLOBAL, RACE, SCOPE, Litmus

NEEDED = {"cta": 0, "cluster": 1, "gpu": 2, "sys": 2}
PAIRS = {"a CTA": ("0.0", "0.32", 0), "a cluster": ("0.0", "1.0", 1), "the device": ("0.0", "2.0", 2)}
FOURS = {
    "a CTA": (("0.0", "0.32", "0.64", "0.96"), 1, 0),
    "a cluster": (("0.0", "1.0", "2.0", "3.0"), 4, 1),
    "the device": (("0.0", "2.0", "4.0", "6.0"), 2, 2),
}
STORES = ("st", "st.volatile", *(f"st.relaxed.{scope}" for scope in NEEDED))
LOADS = ("ld", "ld.volatile", *(f"ld.{order}.{scope}" for order in ("relaxed", "acquire") for scope in NEEDED))
FENCES = tuple(f"fence.sc.{scope}" for scope in NEEDED)
PLACES = tuple(PAIRS)


def _is_narrow(operation: str, needed: int) -> bool:
    """Whether the scope of a strong operation does not reach as far as is needed. `volatile` has that of the system (8.4.2)."""
    return NEEDED.get(operation.rpartition(".")[2], 2) < needed


def message_passing(place: str) -> Iterator[Litmus]:
    """The scopes of two fences and of the flag's store and load, one at a time: 8.9.4, both pairs must be morally strong."""
    writer, reader, needed = PAIRS[place]
    for part, scope in itertools.product(range(4), NEEDED):
        fence, store, load, fence_ = (scope if k == part else "sys" for k in range(4))
        threads = {
            writer: f"W d; fence.acq_rel.{fence}; st.relaxed.{store} f 1",
            reader: f"spin ld.relaxed.{load} f 1; fence.acq_rel.{fence_}; R d",
        }
        races = {} if not _is_narrow(scope, needed) else {"d": SCOPE} if part in (0, 3) else {"d": SCOPE, "f": SCOPE}
        yield Litmus(f"mp {part} {scope}", "R-GM3", threads, races, cluster=2)


def store_buffering(place: str) -> Iterator[Litmus]:
    """Each strength and scope of one store, and of the load of the other thread: 8.7.1. No fence orders them (D19)."""
    first, second, needed = PAIRS[place]
    for (store, load), fence in zip(itertools.product(STORES, LOADS), itertools.cycle(FENCES)):
        threads = {first: f"{store} x 1; {fence}; ld.relaxed.sys y", second: f"st.relaxed.sys y 1; {fence}; {load} x"}
        weak, narrow = store == "st" or load == "ld", _is_narrow(store, needed) or _is_narrow(load, needed)
        kind = (GLOBAL if needed else RACE) if weak else SCOPE if narrow else ""
        yield Litmus(f"sb {store} {load}", "R-GM7", threads, {"x": kind} if kind else {}, cluster=2)


def independent_reads(place: str) -> Iterator[Litmus]:
    """IRIW: of two stores and four loads each strength and scope. A reader without an edge from a writer races with it (8.9.5)."""
    (*writers, one, other), cluster, needed = FOURS[place]
    for part, weakened, scope in itertools.product(range(6), (False, True), NEEDED):
        orders = [("release" if k < 2 else "acquire", "sys") for k in range(6)]
        orders[part] = ("relaxed" if weakened else orders[part][0], scope)
        f, g, one_f, one_g, other_g, other_f = (".".join(order) for order in orders)
        threads = {
            writers[0]: f"W d; st.{f} f 1",
            writers[1]: f"W e; st.{g} g 1",
            one: f"spin ld.{one_f} f 1; spin ld.{one_g} g 1; R d; R e",
            other: f"spin ld.{other_g} g 1; spin ld.{other_f} f 1; R e; R d",
        }
        flag, data = ("f", "d") if part in (0, 2, 5) else ("g", "e")
        narrow = _is_narrow(scope, needed)
        races = {data: (GLOBAL if needed else RACE) if weakened else SCOPE} if weakened or narrow else {}
        yield Litmus(f"iriw {part} {f} {g}", "R-GM5", threads, races | ({flag: SCOPE} if narrow else {}), cluster)


SWEEPS = (message_passing, store_buffering, independent_reads)
