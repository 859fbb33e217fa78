"""Recorded launches that are kept in a file (`--keep-histories`), and checked again from one (`consan replay`).

The file holds what the report needs beside the logs: each module's PTX and the sources that it names, where the kernels' shared variables
lay, and the buffers of the launches. The module is rewritten again from its PTX, and its templates must be those of the run.

Not handled: what a run found without a log (faults, kernels that hang). The file names it, and its replay is `incomplete`.
"""

from __future__ import annotations

import functools
import itertools
import os
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from consan._errors import UsageError
from consan.backends.base import Dim3
from consan.checker.judging.collected import LaunchedKernel
from consan.checker.judging.tally import ProvenLaunches
from consan.checker.logs.retained import Archive, RetainedLaunch, Watched, fingerprint, read
from consan.checker.logs.stops import Stop
from consan.dataclass import dataclass
from consan.files import stored_name, write_file
from consan.instrument.rewriting.ranked import ranks_of
from consan.reports.counts import plural
from consan.reports.decoding.launch_race import BETWEEN_LAUNCHES
from consan.reports.model import Report
from consan.reports.source.variables import Argument
from consan.reports.verdict.coverage import AREAS, GLOBAL_MEMORY
from consan.session.executing.launch_check import LaunchCheck, LaunchEnding, ReplayChoice
from consan.session.executing.recording import Recording
from consan.session.modules.layouts import NamedBuffers, PointedBuffers, layout_with, offsets_of, sources_of

if TYPE_CHECKING:
    from consan.session.modules.device import Device
    from consan.session.modules.prepared import Prepared
    from consan.session.session import Session

SUFFIX = ".histories"
_numbers = itertools.count(1)  # of the files of this process


@dataclass(frozen=True)
class _Module:
    """A module of the file: its place there, and its description as JSON."""

    place: int
    prepared: Prepared
    about: dict[str, Any]


@dataclass
class Keeper:
    """Collects a session's launches, and writes them with each report. Each report after a `forget` has a file of its own."""

    device: Device
    recording: Recording
    _archive: Archive = field(default_factory=Archive)
    _modules: dict[int, _Module] = field(default_factory=dict)  # by number
    _number: int = 0  # of the file, once it is written
    _process: int = field(default_factory=os.getpid)

    def add(self, prepared: Prepared, entry: str, started: LaunchCheck) -> None:
        """Keep a launch that was checked."""
        if not isinstance(started.launch, Watched):
            return
        self._leave_parent()
        module = self._modules.get(prepared.number) or self._new_module(prepared)
        if entry not in module.about["offsets"]:
            module.about["offsets"][entry] = offsets_of(self.device, prepared, entry)
        about = {"module": module.place, "entry": entry, "buffers": _buffers(prepared)}
        choice, fault = started.choice, started.ending.fault
        about |= {"exhaustive": choice.exhaustive, "sample": choice.sample, "together": choice.together}
        about["rank_memory"] = started.launched.rank_memory
        about |= {"stop": [fault.cluster, *fault.opened] if fault else None}
        self._archive.add(started.launch, {**about, **_shape(started.launched)})

    def written(self, report: Report) -> Report:
        """Write the file, and name it in the report's notes. A file that cannot be written is a note too."""
        self._leave_parent()
        if not self._archive:
            return report
        self._number = self._number or next(_numbers)
        name = stored_name(f"{self._process}-{self._number}{SUFFIX}")
        try:
            write_file(name, self._archive.contents(self._about(report)))
        except UsageError as error:
            note = f"the histories were not kept: {error}"
        else:
            note = f"the histories were kept: consan replay {name}"
        return replace(report, notes=(*report.notes, note))

    def forget(self) -> None:
        """Start anew, for the next report."""
        self._archive, self._modules, self._number = Archive(), {}, 0

    def _leave_parent(self) -> None:
        """A forked process starts anew: the launches before the fork belong to its parent."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self.forget()

    def _new_module(self, prepared: Prepared) -> _Module:
        module = self._modules[prepared.number] = _Module(len(self._modules), prepared, _described(prepared))
        return module

    def _about(self, report: Report) -> dict[str, Any]:
        run: dict[str, Any] = {"consan": report.version, "device": report.device, "seed": report.seed, "policy": report.policy}
        run["wanted"] = sorted({area for area in AREAS for each in report.kernels if area not in each.excluded})
        run["required"] = self.recording.options.global_required
        modules = [{**module.about, "kernels": self._kernels(module)} for module in self._modules.values()]
        return {**run, "modules": modules, "elsewhere": [*_elsewhere(report), *report.incomplete]}

    def _kernels(self, module: _Module) -> dict[str, Any]:
        """Answers about global memory without a log, by kernel: launches with proofs, and shapes."""
        prepared, recording = module.prepared, self.recording
        entries = module.about["offsets"]
        return {
            entry: {
                "proofs": recording.kernels.of(prepared, entry).proofs,
                "shapes": recording.kernels.shapes.known(prepared.plain, entry),
            }
            for entry in entries
        }


def _shape(launched: LaunchedKernel) -> dict[str, Dim3]:
    return {"grid": launched.grid, "block": launched.block, "cluster": launched.cluster}


def _described(prepared: Prepared) -> dict[str, Any]:
    assert prepared.recorded is not None
    return {
        "name": prepared.name,
        "ptx": prepared.plain,
        "framework": prepared.framework,
        "global": prepared.recorded.global_races,
        "templates": fingerprint(prepared.recorded.blocks.tables),
        "sources": sources_of(prepared),
        "offsets": {},
    }


def _buffers(prepared: Prepared) -> list[dict[str, Any]]:
    """The buffers of the launch that was just checked."""
    names = prepared.address_name
    return [vars(each) for each in names.buffers] if isinstance(names, NamedBuffers | PointedBuffers) else []


def _elsewhere(report: Report) -> list[str]:
    """The findings of the run that no history has, in words."""
    between = sum(finding.situation in BETWEEN_LAUNCHES for finding in report.findings)
    return [f"{plural(between, 'race')} between launches: a replay looks at each launch alone"] if between else []


def replay(session: Session, name: str, data: bytes) -> tuple[Report, dict[str, str]]:
    """Check the launches of a file in a fresh session. The report, and the texts of its sources by name.

    UsageError if the file does not fit this version.
    """
    contents = read(name, data)
    about = contents.about
    try:
        recording, wanted = session.recording, GLOBAL_MEMORY in about["wanted"]
        global_memory = "off" if not wanted else "on" if about["required"] else "auto"
        session.options = recording.options = replace(session.options, policy=about["policy"], global_memory=global_memory)
        modules = [_prepared(session, name, about["consan"], module) for module in about["modules"]]
        launches = [_launch(session, modules[launch.about["module"]], launch) for launch in contents.launches]
        reasons = [*about["elsewhere"], *_left_out(about["left_out"])]
        settings = {"device": about["device"], "seed": about["seed"], "policy": about["policy"]}
        texts = {file: text for module in about["modules"] for file, text in module["sources"].items()}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(f"{name} is not a valid file of recorded histories: {type(error).__name__}: {error}") from None
    for launch in launches:
        session.replayed(*launch)
    for prepared, module in zip(modules, about["modules"], strict=True):
        _tell_kernels(recording, prepared, module["kernels"])
    session.watch.reasons |= dict.fromkeys(reasons)
    session.note(f"checked again from {name}, recorded by consan {about['consan']} on {about['device']}")
    return replace(session.report(), **settings), texts


def _tell_kernels(recording: Recording, prepared: Prepared, kernels: dict[str, Any]) -> None:
    """The run's answers about global memory without a log."""
    for entry, known in kernels.items():
        recording.kernels.adds_proofs(prepared, entry, ProvenLaunches(*known["proofs"]))
        for grid, block, looked in known["shapes"]:
            recording.kernels.shapes.ran(prepared.plain, entry, _dim3(grid), _dim3(block), looked=bool(looked))


def _left_out(launches: int) -> list[str]:
    return [f"{plural(launches, 'launch', 'launches')} had no room in the file"] if launches else []


def _prepared(session: Session, name: str, version: str, module: dict[str, Any]) -> Prepared:
    """A module of the file, rewritten as in the run."""
    prepared = session.instrument(module["ptx"], name=module["name"], global_races=bool(module["global"]))
    if prepared.recorded is None or fingerprint(prepared.recorded.blocks.tables) != module["templates"]:
        raise UsageError(f"{name}: consan {version} recorded {module['name']} in another way than this version: record it again")
    prepared.framework = module["framework"]
    offsets, sources = module["offsets"], module["sources"]
    prepared.layout = functools.cache(lambda entry: layout_with(prepared, entry, offsets.get(entry, {}), sources))
    return prepared


def _launch(session: Session, prepared: Prepared, launch: RetainedLaunch) -> tuple[Prepared, str, LaunchCheck, NamedBuffers]:
    """The arguments of `Session.replayed`."""
    about = launch.about
    grid, block, cluster = (_dim3(about[name]) for name in ("grid", "block", "cluster"))
    ranked = ranks_of(prepared.plain), tuple(about.get("rank_memory", (0, 0)))
    launched = LaunchedKernel(prepared.number, prepared.number_of(about["entry"]), grid, block, cluster, *ranked)
    assert prepared.recorded is not None
    choice = ReplayChoice(bool(about["exhaustive"]), int(about.get("sample", 0)), int(about["together"]))
    ending = LaunchEnding(Stop(*map(int, about["stop"])) if about.get("stop") else None)
    started = LaunchCheck(launch, launched, prepared.recorded, session.recording.histories, choice, ending)
    return prepared, about["entry"], started, NamedBuffers(tuple(Argument(**each) for each in about["buffers"]))


def _dim3(values: list[int]) -> Dim3:
    x, y, z = map(int, values)
    return x, y, z
