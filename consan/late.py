"""The modules that are imported at their first use, so that commands start quickly and need only what they do.

`from consan import late` at the top of a file, and `late.nvrtc.compile_ptx(...)` where it is used. HOMES has them all: packages that take
long to import, parts of consan that a command or a device may not need, and packages that may not be installed. Type checkers read the
imports below; tests/unit/house/test_imports.py holds both alike. All other imports are at the top of files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib import metadata

    from pygments import lexers

    from consan import adapters, config, suppressions
    from consan.adapters import on_cpu as cpu_adapters, on_gpu as gpu_adapters
    from consan.adapters.standin import context as standin_context
    from consan.audit import runner as audit_runner
    from consan.audit.host import program as audit_program
    from consan.backends import second_context, virtual as virtual_backend
    from consan.backends.cpu.decode import patience
    from consan.backends.cpu.state import faults as machine_faults, memory as machine_memory
    from consan.commands.parts import all_launches
    from consan.instrument import between, ptx
    from consan.instrument.isa import features as isa_features, table as isa_table
    from consan.launching import arguments
    from consan.native import run as native_run
    from consan.plugin import (
        fixture as plugin_fixture,
        ledger as plugin_ledger,
        markers as plugin_markers,
        mutate as plugin_mutate,
        watch as plugin_watch,
    )
    from consan.ranges import pointed
    from consan.reports import timeline
    from consan.reports.decoding import decode, static as static_report
    from consan.reports.formats import html as html_report, text as text_report
    from consan.reports.source import names
    from consan.reports.timeline import text as drawing
    from consan.reports.verdict.speaking import merging, precedence
    from consan.session import session
    from consan.session.asking import advice, reruns, timing
    from consan.session.comparing import processes
    from consan.session.executing import recording, repairs
    from consan.session.modules import device, hooks, layouts
    from consan.session.planning import crossings, exploration, launch_proofs, schedules
    from consan.toolchain import assemble, cache, find, nvrtc
    from consan.triage import again, campaign, executors, minimise, outcome, schedule_file, show, subject
else:

    def __getattr__(name: str):
        """The module of a name. Names are not kept here: `sys.modules` has what is imported."""
        if name in HOMES:
            return import_module(HOMES[name])
        raise AttributeError(f"module 'consan.late' has no attribute '{name}'")


HOMES: Final = {
    "metadata": "importlib.metadata",
    "lexers": "pygments.lexers",
    "adapters": "consan.adapters",
    "cpu_adapters": "consan.adapters.on_cpu",
    "gpu_adapters": "consan.adapters.on_gpu",
    "standin_context": "consan.adapters.standin.context",
    "all_launches": "consan.commands.parts.all_launches",
    "patience": "consan.backends.cpu.decode.patience",
    "machine_faults": "consan.backends.cpu.state.faults",
    "machine_memory": "consan.backends.cpu.state.memory",
    "audit_program": "consan.audit.host.program",
    "audit_runner": "consan.audit.runner",
    "second_context": "consan.backends.second_context",
    "virtual_backend": "consan.backends.virtual",
    "config": "consan.config",
    "isa_features": "consan.instrument.isa.features",
    "isa_table": "consan.instrument.isa.table",
    "between": "consan.instrument.between",
    "ptx": "consan.instrument.ptx",
    "arguments": "consan.launching.arguments",
    "native_run": "consan.native.run",
    "plugin_fixture": "consan.plugin.fixture",
    "plugin_ledger": "consan.plugin.ledger",
    "plugin_markers": "consan.plugin.markers",
    "plugin_mutate": "consan.plugin.mutate",
    "plugin_watch": "consan.plugin.watch",
    "html_report": "consan.reports.formats.html",
    "timeline": "consan.reports.timeline",
    "drawing": "consan.reports.timeline.text",
    "names": "consan.reports.source.names",
    "pointed": "consan.ranges.pointed",
    "decode": "consan.reports.decoding.decode",
    "static_report": "consan.reports.decoding.static",
    "text_report": "consan.reports.formats.text",
    "merging": "consan.reports.verdict.speaking.merging",
    "precedence": "consan.reports.verdict.speaking.precedence",
    "advice": "consan.session.asking.advice",
    "reruns": "consan.session.asking.reruns",
    "timing": "consan.session.asking.timing",
    "processes": "consan.session.comparing.processes",
    "repairs": "consan.session.executing.repairs",
    "recording": "consan.session.executing.recording",
    "device": "consan.session.modules.device",
    "hooks": "consan.session.modules.hooks",
    "crossings": "consan.session.planning.crossings",
    "exploration": "consan.session.planning.exploration",
    "launch_proofs": "consan.session.planning.launch_proofs",
    "layouts": "consan.session.modules.layouts",
    "schedules": "consan.session.planning.schedules",
    "session": "consan.session.session",
    "suppressions": "consan.suppressions",
    "assemble": "consan.toolchain.assemble",
    "cache": "consan.toolchain.cache",
    "find": "consan.toolchain.find",
    "nvrtc": "consan.toolchain.nvrtc",
    "again": "consan.triage.again",
    "campaign": "consan.triage.campaign",
    "executors": "consan.triage.executors",
    "minimise": "consan.triage.minimise",
    "outcome": "consan.triage.outcome",
    "schedule_file": "consan.triage.schedule_file",
    "show": "consan.triage.show",
    "subject": "consan.triage.subject",
}
