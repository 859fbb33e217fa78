"""A session on the virtual machine: filters, counts, what is kept between sessions, and how launches end."""

from __future__ import annotations

from typing import Any

import pipeline_kernels as kernels
import pytest

from consan import options
from consan._errors import NotSupported, UsageError
from consan.reports.model import Finding, Report
from consan.session import session as session_module
from consan.session.modules.prepared import Prepared
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

N = (64).to_bytes(4, "little")


def run(*entries: str, launches: int = 1, **given: Any) -> Report:
    """Launch kernels of the module in turn, each `launches` times."""
    session = Session(SessionOptions.of({"device": "cpu", **given}))
    prepared = session.prepare(kernels.MODULE, name="module.ptx")
    for entry in entries:
        for _ in range(launches):
            launch(session, prepared, entry)
    return session.report()


def launch(session: Session, prepared: Prepared, entry: str) -> None:
    takes_arguments = entry in ("clean", "racy")
    args = [session.backend.alloc(256).to_bytes(8, "little"), N] if takes_arguments else []
    session.launch(prepared, entry, (1, 1, 1), (64, 1, 1), args)


def kinds(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings}


def test_a_clean_launch() -> None:
    report = run("clean")
    assert (report.verdict, report.findings, report.device) == ("clean", (), "cpu")
    (kernel,) = [kernel for kernel in report.kernels if kernel.launches]
    assert (kernel.name, kernel.launches, kernel.memory_sites, kernel.sync_sites) == ("clean", 1, 2, 1)


def test_a_racy_launch() -> None:
    report = run("racy")
    (finding,) = [finding for finding in report.findings if finding.kind == "data-race"]
    assert report.verdict == "violations"
    assert finding.kernel == "racy"
    assert {access.ptx_line for access in finding.accesses} == {line("st.shared", "racy"), line("ld.shared", "racy")}


def line(text: str, entry: str) -> int:
    """The line of the module that an instruction of a kernel stands on."""
    lines = kernels.MODULE.splitlines()
    start = next(i for i, each in enumerate(lines) if f".entry {entry}(" in each)
    return next(i for i, each in enumerate(lines) if i > start and text in each) + 1


def test_a_session_begins_empty_on_the_same_device() -> None:
    assert run("racy").verdict == "violations"
    second = run("clean")
    assert (second.verdict, second.findings) == ("clean", ())
    assert [(kernel.name, kernel.launches) for kernel in second.kernels if kernel.launches] == [("clean", 1)]


def counted(report: Report) -> dict[str, tuple[int, int]]:
    """Launches of each kernel that had any, and how often it was found racy."""
    found = {finding.kernel: finding.count for finding in report.findings if finding.kind == "data-race"}
    return {kernel.name: (kernel.launches, found.get(kernel.name, 0)) for kernel in report.kernels if kernel.launches}


def test_sessions_nest() -> None:
    outer, inner = Session(SessionOptions(device="cpu")), Session(SessionOptions(device="cpu"))
    launch(outer, outer.prepare(kernels.MODULE), "racy")
    once = counted(outer.report())
    with inner.turn():
        launch(inner, inner.prepare(kernels.MODULE), "clean")
        launch(inner, inner.prepare(kernels.MODULE), "racy")
    assert counted(inner.report()) == {"clean": (1, 0), **once}
    launch(outer, outer.prepare(kernels.MODULE), "racy")
    (launches, count) = once["racy"]
    assert launches == 1
    assert counted(outer.report()) == counted(outer.report()) == {"racy": (2, 2 * count)}
    assert counted(inner.report()) == {"clean": (1, 0), **once}


def test_turns_without_an_end_nest_too() -> None:
    """`consan.launch` in a program under `consan run`: the program's launches are not lost."""
    outer = Session(SessionOptions(device="cpu"))
    launch(outer, outer.prepare(kernels.MODULE), "racy")
    before = counted(outer.report())
    assert run("clean").verdict == "clean"
    assert counted(outer.report()) == before


def test_taking_begins_anew() -> None:
    session = Session(SessionOptions(device="cpu"))
    assert session.take() is None
    prepared = session.prepare(kernels.MODULE)
    launch(session, prepared, "racy")
    session.note("something to know")
    first = session.take()
    assert first is not None
    assert (first.verdict, first.notes, [kernel.name for kernel in first.kernels]) == ("violations", ("something to know",), ["racy"])
    assert session.take() is None
    launch(session, prepared, "clean")
    second = session.take()
    assert second is not None
    assert (second.verdict, second.findings, second.notes, counted(second)) == ("clean", (), (), {"clean": (1, 0)})
    session.uninstrumented("gemm")
    third = session.take()
    assert third is not None
    assert (third.verdict, third.incomplete) == ("incomplete", ("no instrumented kernel was launched",))


def test_text_is_prepared_once() -> None:
    first, second = Session(SessionOptions(device="cpu")), Session(SessionOptions(device="cpu"))
    assert first.prepare(kernels.MODULE) is second.prepare(kernels.MODULE)
    assert first.prepare(kernels.MODULE) is not first.prepare(kernels.MODULE + "\n// another text\n")


def test_findings_count_launches_and_ctas() -> None:
    once, thrice = run("racy"), run("racy", launches=3)
    assert [finding.kind for finding in thrice.findings] == [finding.kind for finding in once.findings]
    assert [finding.count for finding in thrice.findings] == [3 * finding.count for finding in once.findings]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"launch_skip": 1}, "--launch-skip 1 leaves out every launch (of racy)"),
        ({"launch_skip": 1, "launches": 2}, ""),
        ({"launch_count": 1}, ""),
        ({"kernel_name": options.read_kernel_filter("kns=racy")}, ""),
        ({"kernel_name": options.read_kernel_filter("regex=^cl")}, "--kernel-name regex=^cl matches none of the kernels that ran: racy"),
        (
            {"kernel_name": options.read_kernel_filter("kns=rcay")},
            "--kernel-name kns=rcay matches none of the kernels that ran: racy (did you mean kns=racy?)",
        ),
    ],
)
def test_filters(given: dict[str, Any], why: str) -> None:
    report = run("racy", **given)
    assert report.verdict == ("incomplete" if why else "violations")
    if why:
        assert report.incomplete == (f"no instrumented kernel was launched: {why}",)
        assert [(each.name, each.launches, each.reason) for each in report.uninstrumented] == [("racy", 1, "left out by a filter")]


def test_a_filter_that_leaves_one_kernel_out_checks_the_other() -> None:
    report = run("racy", "clean", kernel_name=options.read_kernel_filter("kns=clean"))
    assert (report.verdict, kinds(report)) == ("clean", set())
    assert [each.name for each in report.uninstrumented] == ["racy"]


def test_kernels_as_machine_code_are_listed() -> None:
    session = Session(SessionOptions(device="cpu"))
    launch(session, session.prepare(kernels.MODULE), "clean")
    session.uninstrumented("gemm")
    session.uninstrumented("gemm", 2)
    session.note("something to know")
    session.note("something to know")
    report = session.report()
    assert report.verdict == "clean"
    assert [(each.name, each.launches) for each in report.uninstrumented] == [("gemm", 3)]
    assert report.notes == ("something to know",)


def test_kernels_that_were_compiled_and_not_launched_are_named() -> None:
    session = Session(SessionOptions(device="cpu"))
    prepared = session.prepare(kernels.MODULE)
    (reason,) = session.report().incomplete
    assert reason.startswith("no instrumented kernel was launched: these were compiled only: ")
    assert set(prepared.entries[:8]) == set(reason.rpartition(": ")[2].partition(" and ")[0].split(", "))
    launch(session, prepared, "clean")
    assert session.report().incomplete == ()


def test_nothing_launched_is_not_clean() -> None:
    report = Session(SessionOptions(device="cpu")).report()
    assert (report.verdict, report.incomplete) == ("incomplete", ("no instrumented kernel was launched",))


def test_what_is_not_modelled_is_named_with_its_line() -> None:
    report = run("unmodelled")
    assert report.verdict == "incomplete"
    opcode = "fence.proxy.alias"
    number = line(opcode, "unmodelled")
    assert report.incomplete == (f"unmodelled contains {opcode}, which is not modelled (1 time, PTX line {number})",)


def test_what_the_machine_does_not_execute_is_named_with_its_line() -> None:
    with pytest.raises(NotSupported) as caught:
        run("not_executed")
    number = line("suq", "not_executed")
    assert f"does not execute 'suq.width.b32 %r1, [%rd1];' (line {number} of the PTX)" in str(caught.value)


def test_a_deadlock_names_who_waits_where() -> None:
    report = run("deadlock")
    (finding,) = report.findings
    assert (report.verdict, finding.kind, finding.kernel) == ("violations", "deadlock", "deadlock")
    assert {(waiter["warp"], waiter["barrier"]) for waiter in finding.waiters} == {(0, 1), (1, 2)}
    assert {waiter["ptx_line"] for waiter in finding.waiters} == {line("bar.sync 1", "deadlock"), line("bar.sync 2", "deadlock")}


def test_a_deadlock_at_an_mbarrier_says_what_is_missing() -> None:
    (finding,) = [finding for finding in run("starved").findings if finding.kind == "deadlock"]
    state = {"phase": 0, "parity": 0, "pending": 1, "expected": 2, "tx": 64}
    assert finding.barrier == {"offset": 8, "name": "bars[1]", **state}
    assert finding.message.startswith("threads wait for phase 0 of the mbarrier bars[1] (shared offset 8), and none")
    assert finding.missing == "1 of 2 arrivals and 64 bytes (the mbarrier bars[1] (shared offset 8), phase 0)"
    assert all(waiter.items() >= {"mbarrier": 8, "why": "mbarrier", **state}.items() for waiter in finding.waiters)
    assert {waiter["ptx_line"] for waiter in finding.waiters} == {line("try_wait", "starved")}


@pytest.mark.parametrize(("engine", "others"), [("record", "waits elsewhere"), ("inline", "went past it")])
def test_an_aligned_barrier_that_a_warp_reaches_in_parts(engine: str, others: str) -> None:
    """The record tells that the other lanes stand at a barrier of their own; a hook sees only that they are behind this one."""
    report = run("divergent", engine=engine)
    (finding,) = report.findings
    assert (report.verdict, finding.kind) == ("violations", "barrier-misuse")
    assert finding.message.startswith("lanes 0 to 15 of warp 0 of CTA (0,0,0) reach ")
    assert finding.accesses[0].ptx_line == line("@%p1 bar", "divergent")
    assert [(waiter["lanes"], waiter["why"]) for waiter in finding.waiters] == [(0xFFFF, "came"), (0xFFFF0000, others)]


def test_a_barrier_that_is_not_aligned_may_be_reached_in_parts() -> None:
    assert run("in_parts").verdict == "clean"


def test_a_launch_that_takes_too_long_is_stopped() -> None:
    report = run("spin", timeout=0.5)
    assert (report.verdict, report.findings) == ("incomplete", ())
    (reason,) = report.incomplete
    assert reason.startswith("spin did not run to its end: stopped after 0.5 s (--timeout SECONDS); where its threads were: ")
    first = line("mov.u32 %r1, %clock", "spin")
    assert any(f"at PTX line {number}, " in reason for number in range(first, first + 4)), reason


def test_the_device_works_after_a_stopped_launch() -> None:
    run("spin", timeout=0.3)
    assert run("clean").verdict == "clean"


def test_broken_ptx() -> None:
    with pytest.raises(UsageError) as caught:
        Session(SessionOptions(device="cpu")).prepare(kernels.HEAD + ".visible .entry k()\n{\n  ret\n}\n", name="broken.ptx")
    assert str(caught.value).startswith("broken.ptx:")
    assert str(caught.value).split(":")[1].isdecimal()
    assert str(caught.value).split(":")[2].isdecimal()


def test_an_entry_that_is_not_there() -> None:
    session = Session(SessionOptions(device="cpu"))
    with pytest.raises(UsageError, match="no_such"):
        session.launch(session.prepare(kernels.MODULE), "no_such", (1, 1, 1), (1, 1, 1), [])


@pytest.mark.parametrize("args", [[], [b"1234"], [bytes(8), bytes(8)], [bytes(8), bytes(4), bytes(4)]])
def test_wrong_parameters(args: list[bytes]) -> None:
    session = Session(SessionOptions(device="cpu"))
    with pytest.raises(UsageError, match="clean takes parameters of 8, 4 bytes, but got"):
        session.launch(session.prepare(kernels.MODULE), "clean", (1, 1, 1), (64, 1, 1), args)


def test_a_shadow_that_is_too_small_says_so() -> None:
    report = run("clean", shadow_memory=1 << 12, engine="inline", global_memory="off")
    assert report.verdict == "incomplete"
    assert any("the shadow memory was full" in reason for reason in report.incomplete)


def test_shadow_memory_is_capped_and_sessions_of_one_cap_share_a_device() -> None:
    hooks = {"device": "cpu", "engine": "inline", "global_memory": "off"}
    small, large = (Session(SessionOptions.of({"shadow_memory": size, **hooks})) for size in (1 << 12, 16 << 20))
    assert Session(SessionOptions(device="cpu", shadow_memory=16 << 20)).shadow is large.shadow
    assert (small.shadow.arena_bytes, large.shadow.arena_bytes) == (1 << 12, 16 << 20)
    for session, verdict in ((small, "incomplete"), (large, "clean")):
        prepared = session.prepare(kernels.MODULE)
        session.launch(prepared, "clean", (1, 1, 1), (64, 1, 1), [session.backend.alloc(256).to_bytes(8, "little"), N])
        assert session.report().verdict == verdict


@pytest.mark.parametrize("size", [0, -1, "2G"])
def test_a_cap_that_is_none(size: Any) -> None:
    with pytest.raises(UsageError, match="expected a number of bytes above zero"):
        Session(SessionOptions(device="cpu", shadow_memory=size))


def test_an_assembly_that_is_none() -> None:
    with pytest.raises(UsageError, match="assembly='quick': expected 'best' or 'fast'"):
        Session(SessionOptions(device="cpu", assembly="quick"))


def test_watching_some_ctas_only() -> None:
    session = Session(SessionOptions(device="cpu"), cta_limit=1)
    prepared = session.prepare(kernels.MODULE)
    args = [session.backend.alloc(256).to_bytes(8, "little"), N]
    session.launch(prepared, "racy", (4, 1, 1), (64, 1, 1), args)
    races: list[Finding] = [finding for finding in session.report().findings if finding.kind == "data-race"]
    assert races
    assert {access.block for finding in races for access in finding.accesses} == {(0, 0, 0)}
    assert {finding.ctas for finding in races} == {1}


def test_a_report_of_own_launches_does_not_follow_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Following it begins with a call that waits for kernels, and so would never come back from one that hangs."""
    monkeypatch.setattr(session_module, "follow", None)
    session = Session(SessionOptions(device="cpu"))
    launch(session, session.prepare(kernels.MODULE, name="module.ptx"), "racy")
    assert session.report().verdict == "violations"
    assert session.take() is not None
