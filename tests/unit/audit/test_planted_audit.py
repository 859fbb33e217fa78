"""Faults planted in what the audit makes of errors that come of its own sizes, or of launches that were not made in full."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import pytest
from audit_events import events_of, launch, rows_of
from planted import plant

from consan.audit import confirming, partial, rows
from consan.audit.child import endings
from consan.audit.confirming import Confirmation, ResultConfirmation
from consan.audit.host import branches, building, makefile, program, sizes, sources
from consan.audit.host.building import FOLDER
from consan.audit.partial import LaunchRepeats
from consan.audit.rows import FileEvents
from consan.toolchain import nvrtc

if TYPE_CHECKING:
    from consan.audit.host.program import HostProgram

_TWO_SIDES = "#ifdef __CUDA_ARCH__\nint device;\n#else\nint host;\n#endif\n"
_UNKNOWN = "#if FAST\nint fast;\n#elif 1\nint one;\n#else\nint other;\n#endif\n"
LOOP = "int main() { for (int bs = 64; bs <= 1024; bs *= 2) k<<<n / bs, bs>>>(); }"


def _found(events: FileEvents) -> Any:
    """The verdicts of launches, and what the rows say."""
    each_launch = [each["verdict"] for launches in events.launches.values() for each in launches]
    return each_launch, [
        (row.kernel, row.verdict, row.note, row.launches, [(each.severity, each.confirmed) for each in row.findings])
        for row in rows_of(events).values()
    ]


def _confirmed(kind: str = "data-race", *again: Any, ended: bool = True) -> Callable[[], Any]:
    """An error at smaller sizes, and a run with the published ones."""

    def found() -> Any:
        events = events_of(launch("first", kind), "smaller", "done")
        confirmation = Confirmation(events)
        confirmation.take(events_of(*again), ended=ended)
        confirmation.apply()
        return _found(events)

    return found


def _wrong(value: float) -> Callable[[], Any]:
    """A wrong result at smaller sizes, and one at the published ones."""

    def found() -> Any:
        made = [{"event": "error", "value": each, "why": "they differ" if each else ""} for each in (1.0, value)]
        events, again = (events_of(launch("first"), "smaller", each, "done") for each in made)
        confirmation = ResultConfirmation(events)
        confirmation.take(again)
        confirmation.apply()
        return _found(events)

    return found


def _doubted(*sent: Any) -> Callable[[], Any]:
    """Launches, some of them behind one that was not made in full."""

    def found() -> Any:
        events = events_of(*sent)
        partial.doubt(events)
        return _found(events)

    return found


def _repeated(first: Any, *again: Any, stopped: bool = False) -> Callable[[], Any]:
    """A launch, and one of few CTAs."""

    def found() -> Any:
        events = events_of(first)
        repeats = LaunchRepeats(events, stopped=stopped)
        repeats.take(events_of(*again))
        repeats.apply()
        return _found(events)

    return found


STOPPED, RACY = launch("first", stopped=True), launch("second", "global-race")
# The function that changes, what is replaced by what in it, and what shows it.
FAULTS: dict[str, tuple[ModuleType, str, str, str, Callable[[], Any]]] = {
    "a stopped run refutes": (
        *(confirming, "Confirmation.take", "not ended or not again.done or again.failures", "again.failures"),
        _confirmed("data-race", launch("first"), ended=False),
    ),
    "a launch of a part refutes": (
        *(confirming, "Confirmation.take", " and place[0] not in partly", ""),
        _confirmed("data-race", STOPPED, "done"),
    ),
    "nothing refutes": (
        *(confirming, "Confirmation.take", "self.states[place] = NOT_THERE", "pass"),
        _confirmed("data-race", launch("first"), "done"),
    ),
    "nothing confirms": (
        *(confirming, "Confirmation.take", "self._take(again)\n        if not ended", "if not ended"),
        _confirmed("data-race", launch("first", "data-race"), "done"),
    ),
    "a wrong result is not confirmed": (
        confirming,
        "ResultConfirmation.take",
        "CONFIRMED if again.wrong",
        "NOT_IN_TIME if again.wrong",
        _wrong(2.0),
    ),
    "a wrong result is not refuted": (confirming, "ResultConfirmation.take", "else NOT_THERE", "else NOT_IN_TIME", _wrong(0.0)),
    "a stopped launch leaves no doubt": (
        *(rows, "FileEvents.take", 'self.partial or event.get("stopped", False)', "self.partial"),
        _doubted(STOPPED, RACY),
    ),
    "a launch that is left out leaves no doubt": (
        *(rows, "FileEvents.take", 'what == "left out"', "False"),
        _doubted(launch("first"), "left out", RACY),
    ),
    "doubt lasts for all runs": (rows, "FileEvents.take", 'what == "left out"', "True", _doubted(STOPPED, "begins", RACY)),
    "a launch before the stopped one counts for nothing": (
        *(partial, "doubt", 'if not launch["behind"]', "if False"),
        _doubted(RACY, STOPPED, launch("second", "global-race")),
    ),
    "every race is doubted": (
        *(partial, "_follows", '(finding["kind"], finding["hazard"]) == ("data-race", "WAW")', 'finding["kind"] == "data-race"'),
        _doubted(STOPPED, launch("second", "data-race", hazard="WAR")),
    ),
    "two writes are not doubted": (
        *(partial, "_follows", '(finding["kind"], finding["hazard"]) == ("data-race", "WAW")', "False"),
        _doubted(STOPPED, launch("second", "data-race", hazard="WAW")),
    ),
    "incomplete launches are not repeated": (
        *(partial, "_is_open", "return partly and", "return False and"),
        _repeated(STOPPED, launch("first", "data-race", stopped=True)),
    ),
    "kernels behind the end of the time are not reached": (
        *(partial, "LaunchRepeats.__init__", "if stopped:", "if False:"),
        _repeated(launch("first"), launch("second", "data-race"), stopped=True),
    ),
    "what few CTAs show is not confirmed": (
        *(partial, "LaunchRepeats.apply", 'CONFIRMED if each["severity"] == "error" else ""', '""'),
        _repeated(STOPPED, launch("first", "data-race", stopped=True)),
    ),
    "a repeated launch is not doubted": (
        *(partial, "LaunchRepeats.take", "doubt(again)", "pass"),
        _repeated(STOPPED, STOPPED, RACY, stopped=True),
    ),
    "a block is a batch": (sizes, "_with_smaller", "kept = launched or ", "kept = ", lambda: sizes.shrunk_text(LOOP)),
    "a power of two chooses a kernel": (sizes, "is_measure", ", _POWER", "", lambda: sizes.is_measure("ishift")),
    "a reason stays behind the heading": (
        *(building, "first_error", "lines[heading]", "lines[0]"),
        lambda: building.first_error("k.cu does not compile:\nthe reason\n"),
    ),
    "all arguments are files": (
        endings,
        "inputs_without_file",
        "_OF_A_FILE.fullmatch(each) and ",
        "",
        lambda: endings.inputs_without_file(["8"]),
    ),
    "a call that is not there is a line of the program": (
        *(endings, "ending", "if unserved is not None", "if False"),
        lambda: endings.ending(127, "python: symbol lookup error: p.so: undefined symbol: cudaMallocArray\n", cast("HostProgram", None)),
    ),
    "a name is to blame for its source": (
        *(nvrtc, "_failure", " and len(_NAME_MAP.findall(text)) == len(_ERROR.findall(text))", ""),
        lambda: type(nvrtc._failure(6, 'k.cu(3): error: no "X"\n__nv_name_map(2): error: no "k"\n', "k.cu", "sm_90a")).__name__,
    ),
    "what is behind a header is of the first source": (
        *(sources, "_expanded", "{file or name}", "{name}"),
        lambda: sources.whole(str(FOLDER / "m.py"), '#line 7 "k.cu"\n#include "cublasLt.h"\nint k;\n').text,
    ),
    "what only the device sees is known": (
        *(branches, "_value", "for arch in (0, _DEVICE)", "for arch in (_DEVICE,)"),
        lambda: branches.for_this_compiler(_TWO_SIDES, _TWO_SIDES),
    ),
    "a branch behind one that may be taken goes": (
        *(branches, "_next_branch", "chain.taken = None", "pass"),
        lambda: branches.for_this_compiler(_UNKNOWN, _UNKNOWN),
    ),
    "an instance keeps its type": (
        *(program, "_templates_by_name", "whole[begin:stop]}", "whole}"),
        lambda: program.expression("_Z1kIXadL_Z1fIiET_S1_EEEvv"),
    ),
    "objects name no sources": (
        *(makefile, "_sources", '_CODE if _OBJECTS.match(name) and file.suffix == ".o" else ()', "()"),
        lambda: list(makefile._sources(FOLDER, {"obj": "runtime.o"})),
    ),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, old, new, found = FAULTS[rule]
    right = found()
    plant(monkeypatch, module, old, new, name)
    assert found() != right
