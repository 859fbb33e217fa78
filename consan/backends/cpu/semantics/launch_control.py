"""Cluster launch control (PTX ISA, "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel").

A request takes a cluster from the launch's queue (state/queue.py) when it is issued; its response of 16 bytes lands later, as a
bulk copy does, with a complete-tx of 16 bytes. With .multicast::cluster::all each CTA's copy lands by itself, on its own mbarrier.
A response is opaque in the ISA; here it is x, y, z and a word whose highest bit says that a cluster was cancelled. All other bits of a
refusal are ones, so that get_first_ctaid of a refusal, undefined in the ISA, gives no CTA of the grid.

Not judged here: requests after an observed refusal, multicast after a CTA has exited (both undefined in the ISA).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext, Steps
from consan.backends.cpu.decode.steps import Step, selective
from consan.backends.cpu.state.copies import BulkOperation
from consan.backends.cpu.state.faults import Dim3
from consan.instrument.ptx.operands import flatten

from .bulk import Range
from .lanes import halves
from .mbarrier_steps import barrier_locator, local_units_of

Array = npt.NDArray[Any]
NBYTES = 16
_CANCELLED = np.uint64(1 << 63)
_AXES = {"x": 0, "y": 1, "z": 2}


def response(ctaid: Dim3 | None) -> npt.NDArray[np.uint8]:
    """The 16 bytes for a cancelled cluster, by its first CTA, or for a refusal."""
    if ctaid is None:
        words = np.full(2, np.iinfo(np.uint64).max)
        words[1] ^= _CANCELLED
    else:
        words = np.array([ctaid[0] | ctaid[1] << 32, ctaid[2] | int(_CANCELLED)], np.uint64)
    return words.view(np.uint8)


def decode_try_cancel(context: DecodeContext) -> Step:
    """clusterlaunchcontrol.try_cancel: each thread that executes it is a request."""
    plan, wave = context.function.plan, context.wave
    address, mbar = context.instruction.operands
    to = Range(context, context.modifiers.get("ss", "generic"), address, "write")
    found, size = barrier_locator(context, mbar), np.full(1, NBYTES)
    everyone = "multicast::cluster::all" in context.words

    def request(lane: npt.NDArray[np.intp]) -> None:
        target, unit = int(to.part(lane, size)[0]), int(local_units_of(found, lane, "remote-init")[0])
        data, rank = response(plan.queue.take()), int(wave.rank[lane[0]])
        for receiver in range(wave.cluster_size) if everyone else (rank,):
            shift = (receiver - rank) * wave.windows.stride
            into, signal = wave.arena.raw[target + shift : target + shift + NBYTES], unit + (shift >> 3)
            complete, receives = plan.mbarriers.completion(signal, NBYTES), wave.windows.cta_at(target + shift) if everyone else None
            signals, site = frozenset((signal,)), context.site
            plan.copies.issue(BulkOperation(lane, lambda: data, _writer(into), complete, signals=signals, site=site, receiver=receives))

    def part(sel: Any) -> None:
        lanes = wave.ids[sel]
        for k in range(len(lanes)):
            request(lanes[k : k + 1])

    return selective(part)


def _writer(into: Array) -> Any:
    return lambda data: np.copyto(into, data)


def _low(word: Array) -> Array:
    return np.asarray(word.astype(np.uint32))


def _high(word: Array) -> Array:
    return np.asarray((word >> np.uint64(32)).astype(np.uint32))


def decode_query(context: DecodeContext) -> Step:
    """clusterlaunchcontrol.query_cancel."""
    destination, source = context.instruction.operands
    low, high = halves(context, source)
    parts = ((_low, low), (_high, low), (_low, high), (_high, high))  # x, y, z, and the word that says whether it is a refusal
    if "is_canceled" in context.modifiers:
        predicate = context.target(destination, "pred")
        return selective(lambda sel: predicate.write(sel, high[sel] >= _CANCELLED))
    axis = context.modifiers.get("first", "").partition("::")[2]
    chosen = (parts[_AXES[axis]],) if axis else parts
    targets = [context.target(each, "b32") for each in flatten(destination)]
    if len(targets) != len(chosen):
        raise context.unsupported(f"{len(targets)} destinations")

    def part(sel: Any) -> None:
        values = [half(word[sel]) for half, word in chosen]
        for target, value in zip(targets, values, strict=True):
            target.write(sel, value)

    return selective(part)


STEPS: Steps = {"clusterlaunchcontrol.try_cancel": decode_try_cancel, "clusterlaunchcontrol.query_cancel": decode_query}
