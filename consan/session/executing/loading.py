"""The modules of a session: instrumented, assembled where the device wants machine code, and loaded.

Instrumented text is cached by content, in the process and on disk: a kernel that is compiled twice is prepared once.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from consan import late
from consan._errors import UsageError
from consan.backends.base import Dim3, Handle
from consan.backends.driver import own_calls
from consan.checker.logs.prefetch import later, settle
from consan.instrument import CONTROL, SEED, Instrumented, cluster_tier
from consan.instrument.abi.geometry import class_bytes, slot_bytes
from consan.instrument.abi.variant import Variant
from consan.instrument.ptx import Module, PtxSyntaxError, parse
from consan.instrument.rewriting.lifted import lowered
from consan.instrument.rewriting.reserved import with_reserved
from consan.instrument.rewriting.vector_registers import with_scalars
from consan.instrument.stored import dump, fingerprint, restore
from consan.progress import SILENT, Progress
from consan.session.executing.recording import Recording
from consan.session.modules.device import Device
from consan.session.modules.layouts import layout_of
from consan.session.modules.prepared import Prepared
from consan.session.modules.producers import framework_of
from consan.session.modules.variables import bound, exported, unbindable
from consan.toolchain.assemble import assemble_cached
from consan.toolchain.cache import Cache, key
from consan.toolchain.registers import assemble_known, assemble_recorded

if TYPE_CHECKING:
    from consan.session.modules.shadow import Room


class Modules:
    """The modules that one session has prepared. The caller holds the device's lock, and the shadow records for the session."""

    def __init__(self, device: Device, base: Variant, recording: Recording, *, fast: bool) -> None:
        self.used: dict[int, Prepared] = {}  # by number
        self.inline = device.backend.assembles  # whether short hooks are pasted in: that makes machine code faster
        self.progress: Progress = SILENT
        self._device, self._base, self._fast, self._recording = device, base, fast, recording

    def instrument(self, ptx: str | Module, name: str, cluster: int = 1, *, global_races: bool = True, refusal: str = "") -> Prepared:
        """Instrument a module, and assemble it if the device needs that. It is not loaded yet.

        It is recorded, unless the user asks for called hooks. `global_races`: with global memory, if the session looks there.
        `refusal`: why no kernel may be recorded. `cluster`: of launches with called hooks.
        """
        return self._assembled(self._instrumented(ptx, name, cluster, global_races=global_races, refusal=refusal))

    def _instrumented(self, ptx: str | Module, name: str, cluster: int, *, global_races: bool = True, refusal: str = "") -> Prepared:
        """The same, but a recorded module may not be assembled yet."""
        plain, recorded = ptx if isinstance(ptx, str) else ptx.text, self.records
        base = replace(self._base, cluster=cluster_tier(cluster))
        global_races = global_races and recorded and self._recording.options.global_wanted
        wanted = (plain, base, self._fast, recorded, global_races, refusal)
        found = self._device.recall(wanted)
        if found is None:
            read = functools.cache(lambda: with_reserved(lowered(with_scalars(parse(ptx, name) if isinstance(ptx, str) else ptx))))
            made = self._recorded(plain, name, read, global_races, refusal) if recorded else self._instrument(plain, name, base, read)
            found = self._device.keep(wanted, made)
        self.used[found.number] = found
        return found

    def _instrument(self, ptx: str, name: str, base: Variant, read: Callable[[], Module]) -> Prepared:
        device = self._device
        with self.progress.module(name):
            delays = device.delay_seed is not None
            made_by = key("instrumented", ptx, repr(base), f"{self.inline} {delays}", fingerprint())
            done = self._rewritten(made_by, base, read, delays)
            prepared = self._prepared(ptx, name, done)
            words = sum(len(each.placed) for each in done.functions)
            prepared.counter = device.shadow.register(prepared.number, len(done.entries), words)
            prepared.code.delayed = delays
            if device.backend.assembles:
                prepared.code.cubin, prepared.code.notes = assemble_known(made_by, ptx, done, device.backend.arch, fast=self._fast)
            return prepared

    def _prepared(self, ptx: str, name: str, done: Instrumented) -> Prepared:
        prepared = Prepared(name, ptx, done, next(self._device.numbers), framework=framework_of(ptx))
        prepared.layout = functools.cache(functools.partial(layout_of, self._device, prepared))
        return prepared

    def _recorded(self, ptx: str, name: str, read: Callable[[], Module], global_races: bool, refusal: str) -> Prepared:
        """The module for the recording engine. The plain module is assembled meanwhile."""
        backend = self._device.backend
        with self.progress.module(name):
            plain = [later(functools.partial(assemble_cached, ptx, backend.arch))] if backend.assembles else []
            try:
                leaves, delays = not backend.simulates, self._device.delay_seed is not None  # the virtual machine ends launches by itself
                done = self._recording.rewritten(ptx, read, global_races=global_races, leaves=leaves, refusal=refusal, delays=delays)
            except PtxSyntaxError as error:
                raise UsageError(str(error)) from None
            prepared = self._prepared(ptx, name, done[0])
            prepared.recorded, prepared.code.delayed = done[1], delays
            if backend.assembles:
                settle(plain)
                prepared.code.assemble = lambda: assemble_recorded(ptx, done[0].ptx, backend.arch).cubin
            return prepared

    def _assembled(self, prepared: Prepared) -> Prepared:
        """A module with its machine code."""
        with self.progress.module(prepared.name) if prepared.code.assemble else contextlib.nullcontext():
            prepared.code.made()
        return prepared

    def _rewritten(self, made_by: str, base: Variant, read: Callable[[], Module], delays: bool) -> Instrumented:
        """The module with hooks: made once, cached on disk by the key of what it is made from."""
        made: list[Instrumented] = []

        def make() -> str:
            try:
                made.append(late.hooks.instrument(read(), base=base, library=late.hooks.library_for, inline=self.inline, delays=delays))
            except PtxSyntaxError as error:
                raise UsageError(str(error)) from None
            return dump(made[0])

        text = Cache().fetch_text(made_by, make)
        return made[0] if made else restore(text, read)

    def prepare(self, ptx: str | Module, name: str, cluster: int) -> Prepared:
        """Instrument a module, and load it: at once, or at its first use where its launches may take its form without global memory."""
        prepared = self._instrumented(ptx, name, cluster)
        if prepared.code.assemble is None or prepared.recorded is None or not prepared.recorded.global_races:
            return self.load(prepared)
        prepared.code.load_later = functools.partial(_load, self._device)
        return prepared

    def for_framework(self, ptx: str, name: str, unseen: str) -> Prepared:
        """Instrument a module that a framework loads and launches. `unseen`: why no log can be given to its launches.

        The form records global memory only if all of it is asked for: frameworks make many launches, of much memory (global_looks.py).
        """
        refusal = unseen or unbindable(ptx) if self.records else ""
        text = exported(ptx) if self.records and not refusal else ptx
        prepared = self.instrument(text, name, global_races=self._recording.options.global_required, refusal=refusal)
        prepared.unseen = unseen
        return prepared

    @property
    def records(self) -> bool:
        """Whether modules are recorded."""
        return self._recording.options.records

    def _other(self, prepared: Prepared) -> str | Module:
        """The text of another form of a module. Where a framework has loaded it, that form uses the variables there (variables.py)."""
        if prepared.unseen is None:
            return prepared.instrumented.module
        return bound(prepared.plain, lambda name: self._device.backend.symbol(prepared.handle, name)[0])

    def with_global_races(self, prepared: Prepared) -> Prepared:
        """A recorded module for global memory too, loaded."""
        whole = self.load(self.instrument(self._other(prepared), prepared.name))
        self._leave(whole)
        whole.framework = prepared.framework
        return whole

    def without_global_races(self, prepared: Prepared) -> Prepared:
        """A recorded module for shared memory only, loaded. Kernels that need global memory in their logs have it there."""
        self._leave(prepared)
        light = self.load(self.instrument(self._other(prepared), prepared.name, global_races=False))
        light.framework = prepared.framework
        return light

    def _leave(self, prepared: Prepared) -> None:
        """Forget a module that was not launched, because another form of it is."""
        if not prepared.launched:
            self.used.pop(prepared.number, None)

    def load(self, prepared: Prepared) -> Prepared:
        """Load a module, once."""
        return _load(self._device, self._assembled(prepared))

    def attach(self, prepared: Prepared, set_symbol: Callable[[str, bytes], None]) -> None:
        """Write the control block of a module that another library has loaded. A recorded one has none, but may have delays."""
        with own_calls():
            if prepared.code.delayed:
                set_symbol(SEED, self._device.delay_bytes())
            if prepared.recorded is None:
                set_symbol(CONTROL, self._device.shadow.control_block(prepared.number, prepared.counter))

    def for_cluster(self, prepared: Prepared, ctas: int) -> Prepared:
        """The module for launches with this cluster size. It is instrumented again if it was not made for it."""
        if prepared.recorded is not None or ctas <= max(1, prepared.instrumented.variant.cluster):
            return prepared
        self._leave(prepared)
        again = self.prepare(prepared.plain, prepared.name, ctas)
        again.framework = prepared.framework
        return again

    def notes(self) -> dict[str, None]:
        """The assembler's notes."""
        return {note: None for used in self.used.values() for note in used.code.notes}

    def plain(self, prepared: Prepared, module: Handle | None = None) -> Handle:
        """The module without hooks, loaded. `module`: as a framework has loaded it."""
        text = prepared.plain
        if module is not None and prepared.recorded is not None and prepared.recorded.refusal:
            return module  # its text is unchanged
        if module is not None:
            text = bound(text, lambda name: self._device.backend.symbol(module, name)[0])
        if text not in prepared.plain_loaded:
            prepared.plain_loaded[text] = self._device.backend.load(text, name=prepared.name)
            self._device.unload_with(prepared, prepared.plain_loaded[text])
        return prepared.plain_loaded[text]

    def room(self, prepared: Prepared, entry: str, block: Dim3, shared: int, cluster: Dim3) -> Room:
        """The shadow memory that one CTA or cluster of such a launch takes."""
        variant = self.for_cluster(prepared, math.prod(cluster)).instrumented.variant
        ctas = math.prod(cluster) if math.prod(cluster) > 1 else max(variant.cluster, 1)  # the module may fix the cluster size
        bytes_ = self._device.backend.resources(prepared.loaded, entry).static_shared + shared
        return late.hooks.Room(
            class_bytes(slot_bytes(variant, math.prod(block), bytes_, ctas)), ctas * bytes_, ctas, self._device.most_shadow
        )


def _load(device: Device, prepared: Prepared) -> Prepared:
    """Load a module, once."""
    if prepared.handle is None:
        backend, cubin = device.backend, prepared.code.made()
        handle = backend.load(prepared.instrumented.ptx, name=prepared.name) if cubin is None else backend.load_cubin(cubin)
        prepared.handle = handle
        device.unload_with(prepared, handle)
        device.plant(prepared)
    return prepared
