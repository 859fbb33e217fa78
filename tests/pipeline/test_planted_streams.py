"""Faults planted in the order of a program's streams change what is found in the programs of stream_programs.py."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import stream_programs as programs
from planted import plant

from consan.adapters.standin import array, streams as standin
from consan.instrument.effects.makes import Makes
from consan.instrument.record.families.global_memory import GlobalRecorder
from consan.instrument.rewriting.context import Work
from consan.session.comparing import array_rows, freed_memory, program_streams, streams

# The function that changes, what is replaced by what in it, the program that shows it, and whether its streams are blocking.
FAULTS: dict[str, tuple[ModuleType, str, str, str, Callable[[programs.Program], None], bool]] = {
    "events": (standin, "Stream.wait_event", "self.order.wait(event.reached)", "pass", programs.event, False),
    "when an event was recorded": (standin, "Stream.record", "event.record(self)", "event.record(Stream(True))", programs.event, False),
    "host and stream": (standin, "Stream.synchronize", "host_waits(self.order)", "pass", programs.host_waits_for_the_stream, False),
    "host and event": (
        *(standin, "Event.synchronize", "current().session.streams.host_waits_for(self.reached)", "pass"),
        *(programs.host_waits_for_the_event, False),
    ),
    "host and device": (
        *(program_streams, "ProgramStreams.synchronize", "self._host_knows(", "str("),
        *(programs.host_waits_for_the_device, False),
    ),
    "a question": (streams, "LaunchOrder.is_over", "new, self.asked =", "new, self.asked = NONE, NONE  #", programs.host_asks_once, False),
    "the stream of a block": (standin, "Stream.use", "use_stream(self.order)", "pass", programs.current_stream_of_a_block, False),
    "the end of a block": (*(standin, "Stream.__exit__", "use_stream(self._outside.pop())", "pass", programs.current_stream_left, False),),
    "the default stream waits": (
        *(program_streams, "ProgramStream._begins", "if not others <= self._over:", "if False:"),
        *(programs.default_stream_last, True),
    ),
    "the default stream is waited for": (
        *(program_streams, "ProgramStream._ends", "self._reached[self.kind] = self._over", "pass"),
        *(programs.default_stream_first, True),
    ),
    "non-blocking streams": (
        *(program_streams, "ProgramStreams.make", "else Blocking.NO", "else Blocking.YES"),
        *(programs.default_stream_first, False),
    ),
    "copies to the host wait": (array, "ndarray.get", "host_waits(order_of)", "pass", programs.copy_to_the_host, False),
    "copies to the host read": (
        *(array, "ndarray.get", 'operated("a copy to the host", [self._host], stream=order_of)', "pass"),
        *(programs.copy_to_the_host_in_another_stream, False),
    ),
    "operations write": (
        array,
        "_tell",
        "named.values()]), written)",
        "named.values()]), [])",
        programs.operation_in_another_stream,
        False,
    ),
    "methods read": (array, "_tell", "_arrays([*of, ", "_arrays([", programs.method_in_another_stream, False),
    "new arrays are written": (
        *(array, "full", 'operated("a new array", writes=[result])', "pass", programs.new_array_of_another_stream, False),
    ),
    "freed memory": (
        *(program_streams, "ProgramStreams.freed", "self.memory.freed.append((address, nbytes, stream))", "pass"),
        *(programs.freed_memory, False),
    ),
    "memory given again": (freed_memory, "FreedMemory.given", "self.concurrent.attach(done)", "pass", programs.memory_given_again, False),
    "the stream of memory": (
        *(freed_memory, "FreedMemory.look", "setdefault((stream,", "setdefault((self.concurrent,"),
        *(programs.memory_given_again, False),
    ),
    "the size of memory": (
        *(freed_memory, "FreedMemory.look", "-(-nbytes // _UNIT)", "4"),
        *(programs.memory_of_another_size, False),
    ),
    "columns": (array_rows, "runs", "dimensions[0][0] == nbytes", "True", programs.column_beside_a_column, False),
    "streams are apart": (
        *(
            streams,
            "Stream.place",
            "StreamPlace(self._over, self._over | self._waited if self._waited else self._over)",
            "StreamPlace(timeline.everything, timeline.everything)",
            programs.no_edge,
            False,
        ),
    ),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, old, new, program, blocking = FAULTS[rule]
    right = programs.findings(programs.ran(program, blocking=blocking))
    plant(monkeypatch, module, old, new, name)
    assert programs.findings(programs.ran(program, blocking=blocking)) != right


def test_loads_of_constants_that_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    access = GlobalRecorder.access

    def without_constants(self: GlobalRecorder, work: Work, made: Makes) -> None:
        if not work.event.first.in_constants:
            access(self, work, made)

    monkeypatch.setattr(GlobalRecorder, "access", without_constants)
    monkeypatch.setattr(programs, "SOURCE", f"{programs.SOURCE}__device__ int planted;\n")  # the right form of the kernels may be known
    assert programs.findings(programs.ran(programs.constants_written_in_another_stream)) == []
