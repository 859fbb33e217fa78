"""Memory that a process shares with others, whenever it was opened or exported: who reaches it is not compared with the other side."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from consan.backends import contexts
from consan.backends.armed import armed_functions
from consan.reports.model import Report
from consan.session import frameworks
from consan.session.comparing import driver_calls, peers
from consan.session.framework_launch import FrameworkLaunch
from consan.session.repeated_launch import NOT_REPEATED

sys.path.append(str(Path(__file__).parents[2] / "record"))
from framework_support import FakeCalls, Framework
from planted import plant

BYTES = 4 * 512
HANDLE = 0x900
FOLLOWS = """
extern "C" __global__ void follows(unsigned** out, unsigned* from, int) { out[0][blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
"""


class OneGpu:
    """The process sees one GPU: it may share the memory of that one."""

    own, device, refusal, alone, several = 1, 0, "", True, False

    def other(self) -> int:
        return 0

    def holder(self, address: int) -> str:
        return ""


@functools.cache
def first_address() -> int:
    """The address of the output, which is the same in each machine."""
    return Framework(calls=FakeCalls()).out


class Program(Framework):
    """`early`: what it has called before anything was followed, with the address of its output, which others may have made."""

    def __init__(self, early: Callable[[FakeCalls, int], None] | None = None, source: str = "") -> None:
        calls = FakeCalls()
        place = first_address()
        calls.allocations[place] = BYTES
        if early is not None:
            early(calls, place)
        super().__init__(*(source,) * bool(source), calls=calls)
        self.backend.contexts = OneGpu()  # type: ignore[assignment]
        if not source:
            assert self.out == place


def launched(early: Callable[[FakeCalls, int], None] | None = None, *, out: int = 0) -> Report:
    program = Program(early)
    program.launch(out=out)
    return program.report()


def imported_handle(calls: FakeCalls, out: int) -> None:
    calls.call("cuMemImportFromShareableHandle", HANDLE)
    calls.call("cuMemMap", out, BYTES, 0, HANDLE)


def exported_handle(calls: FakeCalls, out: int) -> None:
    calls.call("cuMemCreate", HANDLE)
    calls.call("cuMemMap", out, BYTES, 0, HANDLE)
    calls.call("cuMemExportToShareableHandle", 1, HANDLE)


def retained_handle(calls: FakeCalls, out: int) -> None:
    """The program asks for a handle of what it has mapped, and exports that."""
    calls.call("cuMemCreate", HANDLE)
    calls.call("cuMemMap", out, BYTES, 0, HANDLE)
    calls.call("cuMemRetainAllocationHandle", HANDLE + 1, out + 8)
    calls.call("cuMemExportToShareableHandle", 1, HANDLE + 1)


def bound(calls: FakeCalls, out: int, *places: int) -> None:
    """A multicast object reaches it. Version 2 of the call names a device before the offset."""
    calls.call("cuMemCreate", HANDLE)
    calls.call("cuMemMap", out, BYTES, 0, HANDLE)
    calls.call("cuMulticastCreate", HANDLE + 1)
    calls.call("cuMulticastBindMem", HANDLE + 1, 0, *(places or (HANDLE, 0)))


def bound_by_address(calls: FakeCalls, out: int) -> None:
    calls.call("cuMulticastCreate", HANDLE)
    calls.call("cuMulticastBindAddr", HANDLE, 0, out, BYTES)


def handle_again(calls: FakeCalls, out: int) -> None:
    """Its number is that of the next allocation; what was mapped stays shared."""
    imported_handle(calls, out)
    calls.call("cuMemCreate", HANDLE)


SHARED: dict[str, tuple[Callable[[FakeCalls, int], None], str]] = {
    "opened": (lambda calls, out: calls.call("cuIpcOpenMemHandle", out), "memory of another process"),
    "exported": (lambda calls, out: calls.call("cuIpcGetMemHandle", 1, out + 8), "memory that another process may have opened"),
    "opened of a pool": (lambda calls, out: calls.call("cuMemPoolImportPointer", out), "memory of another process"),
    "exported of a pool": (lambda calls, out: calls.call("cuMemPoolExportPointer", 1, out), "memory that another process may have opened"),
    "an imported handle": (imported_handle, "memory of another process"),
    "an exported handle": (exported_handle, "memory that another process may have opened"),
    "a retained handle": (retained_handle, "memory that another process may have opened"),
    "bound to a multicast object": (bound, "memory that another process may have opened"),
    "bound to one by version 2": (lambda calls, out: bound(calls, out, 0, HANDLE), "memory that another process may have opened"),
    "bound by its address": (bound_by_address, "memory that another process may have opened"),
    "a handle of a range": (
        lambda calls, out: calls.call("cuMemGetHandleForAddressRange", 1, out),
        "memory that another process may have opened",
    ),
    "a handle whose number is given again": (handle_again, "memory of another process"),
}


def closed(calls: FakeCalls, out: int) -> None:
    calls.call("cuIpcOpenMemHandle", out)
    calls.call("cuIpcCloseMemHandle", out)


def freed(calls: FakeCalls, out: int) -> None:
    calls.call("cuIpcGetMemHandle", 1, out + 8)
    calls.call("cuMemFree", out)


def unmapped(calls: FakeCalls, out: int) -> None:
    imported_handle(calls, out)
    calls.call("cuMemUnmap", out, BYTES)


def own_handle(calls: FakeCalls, out: int) -> None:
    """One that was imported is of another allocation."""
    calls.call("cuMemImportFromShareableHandle", HANDLE)
    calls.call("cuMemCreate", HANDLE)
    calls.call("cuMemMap", out, BYTES, 0, HANDLE)


def other_bound(calls: FakeCalls, out: int) -> None:
    bound(calls, out, HANDLE + 2, 0)


def other_retained(calls: FakeCalls, out: int) -> None:
    """A handle of this memory is not exported; one whose number was its own before is of another allocation."""
    calls.call("cuMemCreate", HANDLE)
    calls.call("cuMemMap", out, BYTES, 0, HANDLE)
    calls.call("cuMemRetainAllocationHandle", HANDLE + 1, out)
    calls.call("cuMemCreate", HANDLE + 1)
    calls.call("cuMemExportToShareableHandle", 1, HANDLE + 1)


OWN: dict[str, Callable[[FakeCalls, int], None]] = {
    "other memory is bound": other_bound,
    "a retained handle whose number is given again": other_retained,
    "nothing": lambda calls, out: None,
    "closed": closed,
    "freed": freed,
    "unmapped": unmapped,
    "an own handle": own_handle,
    "other memory": lambda calls, out: calls.call("cuIpcOpenMemHandle", 1 << 50),
}


@pytest.mark.parametrize("how", SHARED)
def test_a_launch_that_reaches_shared_memory_is_incomplete(how: str) -> None:
    early, what = SHARED[how]
    report = launched(early)
    assert report.verdict == "incomplete"
    assert any(f"parameter 0 points to {what}" in why and "what other processes do there is not known" in why for why in report.incomplete)


@pytest.mark.parametrize("how", OWN)
def test_own_memory_is_clean(how: str) -> None:
    report = launched(OWN[how])
    assert (report.verdict, report.incomplete) == ("clean", ())


def test_memory_that_is_opened_later() -> None:
    program = Program()
    program.launch()
    program.calls.call("cuIpcOpenMemHandle", program.out)
    assert program.report().verdict == "clean"
    program.launch()
    assert program.report().verdict == "incomplete"


def repeated_with(at: int) -> Report:
    """A launch like those before it, behind a call that opens memory `at` bytes behind that of the launch."""
    program = Program()
    other = program.backend.alloc(BYTES)
    program.calls.allocations[other + at] = BYTES
    program.launch()
    launch = FrameworkLaunch("fills", (2, 1, 1), (64, 1, 1), (1, 1, 1), 0, program.module)
    repeated = program.session.frameworks.repeated(program.prepared, launch)
    assert repeated is not None
    program.calls.call("cuIpcOpenMemHandle", other + at)
    values = (other.to_bytes(8, "little"), program.source.to_bytes(8, "little"), bytes(4))
    for _ in range(3):
        if repeated.make(lambda: values, lambda: None, ()) is NOT_REPEATED:
            program.launch(out=other - program.out)
    return program.report()


@pytest.mark.parametrize(("at", "verdict"), [(0, "incomplete"), (1 << 40, "clean")], ids=["shared", "own"])
def test_launches_that_repeat_are_looked_at(at: int, verdict: str) -> None:
    report = repeated_with(at)
    assert report.verdict == verdict, report.incomplete
    assert sum(kernel.launches for kernel in report.kernels) == 4


@pytest.mark.parametrize(("at", "verdict"), [(0, "incomplete"), (1 << 40, "clean")], ids=["shared", "own"])
def test_the_accesses_of_a_pointer_that_is_loaded(at: int, verdict: str) -> None:
    """The launch may reach shared memory. Whether it does, its record says."""
    program = Program(source=FOLLOWS)
    program.launch("follows")  # the record is wanted from the second launch on
    target = program.backend.alloc(BYTES)
    program.backend.write(program.out, target.to_bytes(8, "little"))
    program.calls.allocations[target + at] = BYTES
    program.calls.call("cuIpcOpenMemHandle", target + at)
    program.launch("follows")
    report = program.report()
    assert report.verdict == verdict, report.incomplete


def opened_behind_another() -> Report:
    """Other memory was opened before, and the launch made once since."""
    program = Program()
    program.launch()
    launch = FrameworkLaunch("fills", (2, 1, 1), (64, 1, 1), (1, 1, 1), 0, program.module)
    repeated = program.session.frameworks.repeated(program.prepared, launch)
    assert repeated is not None
    values = (program.out.to_bytes(8, "little"), program.source.to_bytes(8, "little"), bytes(4))
    for address in (1 << 50, program.out):
        program.calls.call("cuIpcOpenMemHandle", address)
        if repeated.make(lambda: values, lambda: None, ()) is NOT_REPEATED:
            program.launch()
    return program.report()


def test_memory_that_is_opened_behind_other_memory() -> None:
    assert opened_behind_another().verdict == "incomplete"


FAULTS: dict[str, tuple[ModuleType, str, str, str, Callable[[], Report], str]] = {
    "one GPU": (
        peers,
        "PeerMemory.reached",
        " and not self.streams.with_processes.shared",
        "",
        lambda: launched(SHARED["opened"][0]),
        "clean",
    ),
    "the allocation": (
        *(contexts, "ProcessMemory._span", "return self._spans[address]", "return address, address + 1"),
        *(lambda: launched(SHARED["opened"][0], out=8), "clean"),
    ),
    "a handle that was retained": (
        *(contexts, "ProcessMemory._retained", "self._same[handle] = mapped", "pass"),
        *(lambda: launched(retained_handle), "clean"),
    ),
    "a multicast object that reaches memory": (
        *(contexts, "ProcessMemory._bound", "self._exported_handle(0, each)", "pass"),
        *(lambda: launched(bound), "clean"),
    ),
    "a mapped handle": (
        *(contexts, "ProcessMemory._maps", "begin + nbytes, self._same.get(handle, handle)", "begin + nbytes, 0"),
        *(lambda: launched(imported_handle), "clean"),
    ),
    "a number that is given again": (
        *(contexts, "ProcessMemory._new_handle", "old if of == handle else of", "of"),
        *(lambda: launched(handle_again), "clean"),
    ),
    "a number that was given before": (
        *(contexts, "ProcessMemory._new_handle", "self._handles.pop(handle, None)", "None"),
        *(lambda: launched(own_handle), "incomplete"),
    ),
    "launches that repeat": (
        *(frameworks, "Frameworks.looks_where", "self.peers.of_process or self.peers.shares", "self.peers.of_process"),
        *(lambda: repeated_with(0), "clean"),
    ),
    "what reaches none is kept": (
        *(peers, "PeerMemory.reached", "self._state != self._changes or", "False or"),
        *(opened_behind_another, "clean"),
    ),
    "what is freed": (contexts, "ProcessMemory._freed", "del self._opened[each]", "pass", lambda: launched(freed), "incomplete"),
    "what is unmapped": (
        *(contexts, "ProcessMemory._unmaps", "if not begin <= first < begin + nbytes", ""),
        *(lambda: launched(unmapped), "incomplete"),
    ),
    "accesses": (
        *(peers, "PeerMemory._knows_others", "self.streams.with_processes.touched(addresses, nbytes) or ", ""),
        *(lambda: launched(SHARED["opened"][0]), "clean"),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, old, new, run, verdict = FAULTS[name]
    plant(monkeypatch, module, old, new, function)
    assert run().verdict == verdict


def test_peer_access_that_was_enabled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = FakeCalls()
    calls.call("cuCtxEnablePeerAccess")
    assert Framework(calls=calls).session.followed.several
    monkeypatch.setattr(driver_calls.FollowedStreams, "reaches_others", lambda streams: None)
    assert not Framework(calls=calls).session.followed.several


def test_c_makes_no_launches_once_memory_is_shared() -> None:
    functions = armed_functions()
    assert functions is not None
    calls, before = FakeCalls(), functions.shares()
    calls.call("cuMemCreate", HANDLE)
    assert functions.shares() == before
    calls.call("cuIpcOpenMemHandle", 1 << 50)
    calls.call("cuIpcOpenMemHandle", 1 << 51)
    assert functions.shares() == before + 1
