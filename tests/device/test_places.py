"""Lines of the instrumented text lead back to the original: `Edits.line_map`, `Instrumented.original`, and what
consan/session/executing/endings.py says of a launch that ended badly.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from device_support import Bench, compiled, markers

from consan.backends.cpu import Fault, LaunchStats
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import Edits, parse
from consan.reports.model import Report
from consan.session.executing import endings as faults
from consan.session.modules.runtime import library_for

SOURCE = """
__device__ __noinline__ void called(unsigned* p, unsigned v) { *p = v; }                    /*@callee*/
__device__ __forceinline__ unsigned inlined(const unsigned* p) { return *p * 3; }           /*@inlined*/
extern "C" __global__ void wild(int how, unsigned* out, unsigned* small) {
    __shared__ unsigned tile[64];
    const unsigned t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[63 - t];
    if (how == 1 && t == 35) small[1 << 20] = 1;                                            /*@store*/
    if (how == 2 && t == 36) out[t] = small[(1 << 20) + t];                                 /*@load*/
    if (how == 3 && t == 37) called(small + (1 << 20), t);
    if (how == 4 && t == 38) out[t] = inlined(small + (1 << 20));                           /*@call*/
    if (how == 5 && t == 39) *(unsigned*)((char*)out + 2) = 1;                              /*@misaligned*/
    if (how == 6 && t == 40) atomicAdd(small + (1 << 20), 1);                               /*@atomic*/
    if (how == 7 && t == 41) asm volatile("trap;");                                         /*@trap*/
    if (how == 8) { while (((volatile unsigned*)out)[0] != 12345) {} }                      /*@spin*/
    if (how == 9 && t < 32) __syncthreads();                                                /*@half*/
    if (how == 9 && t >= 32) asm volatile("bar.sync 1, 64;" ::: "memory");                  /*@other_half*/
}
"""


# -- line_map ---------------------------------------------------------------------------------------------------------------------


def test_line_map_of_an_untouched_module() -> None:
    text = compiled(SOURCE)
    assert Edits(parse(text)).line_map() == list(range(1, text.count("\n") + 2))


@pytest.mark.parametrize("seed", range(20))
def test_line_map_after_random_edits(seed: int) -> None:
    """Every line that an edit did not touch must be found again, with its own text, where the map says."""
    text = compiled(SOURCE)
    module, pick = parse(text), random.Random(seed)
    edits, touched = Edits(module), set[int]()
    instructions = [i for f in module.functions if f.body for i in f.body.instructions()]
    for node in pick.sample(instructions, 12):
        word = "\n".join("// added" for _ in range(pick.randrange(4))) + pick.choice(["", "\n"])
        pick.choice([edits.insert_before, edits.insert_after, edits.replace])(node, word)
        touched |= set(range(node.line, node.line + text.count("\n", node.start, node.end) + 1))
    result, lines = edits.apply().split("\n"), text.split("\n")
    places = edits.line_map()
    assert len(places) == len(result)
    assert places == sorted(places)
    kept = {place for place, line in zip(places, result, strict=True) if lines[place - 1] == line}
    assert kept >= set(range(1, len(lines) + 1)) - touched - {line + 1 for line in touched}


def test_every_original_instruction_is_placed_after_instrumentation() -> None:
    """Each statement of the original that stands whole on a line of the instrumented text maps to a line with that very text."""
    text = compiled(SOURCE)
    done = instrument(text, library=library_for)
    original, seen = text.split("\n"), set[int]()
    for number, line in enumerate(done.ptx.split("\n"), 1):
        place = done.lines[number - 1]
        if line.strip() and original[place - 1] == line:
            seen.add(place)
    instructions = [i for f in parse(text).functions if f.body for i in f.body.instructions()]
    rewritten = {"ret", "exit", "bra"}  # hooks stand on their lines
    missing = [i.line for i in instructions if i.line not in seen and i.parts[0] not in rewritten]
    # What a hook precedes on the same line begins with the hook's text.
    assert all(done.original(done.lines.index(line) + 1) is not None for line in missing)
    assert len(missing) < len(instructions) / 2


def test_lines_outside_the_text_have_no_place() -> None:
    done = instrument(compiled(SOURCE), library=library_for)
    assert done.original(0) is None
    assert done.original(len(done.lines) + 1) is None


# -- faults -----------------------------------------------------------------------------------------------------------------------


def run(how: int, timeout: float | None = None) -> Report:
    bench = Bench("cpu", SOURCE, timeout=timeout)
    bench.launch("wild", 2, 64, how, bench.zeros(64), bench.zeros(4))
    return bench.report()


CASES = {1: ("store", 35, "write", "st.global.u32"), 2: ("load", 36, "read", "ld.global"), 3: ("callee", 37, "write", "st."),
         4: ("inlined", 38, "read", "ld.global"), 5: ("misaligned", 39, "write", "st."), 6: ("atomic", 40, "", "")}  # fmt: skip


@pytest.mark.parametrize("how", sorted(CASES))
def test_a_wild_access_names_the_line_and_the_thread(how: int) -> None:
    """On the virtual machine it is a finding with its place; in CTA 0, which ran first, or in CTA 1."""
    marker, thread, role, opcode = CASES[how]
    report = run(how)
    assert report.verdict == "violations"
    (finding,) = report.findings
    (access,) = finding.accesses
    assert (finding.kind, finding.kernel, access.thread) == ("out-of-bounds", "wild", (thread, 0, 0))
    assert markers(SOURCE)[access.line] == marker
    assert access.file.endswith("kernel.cu")
    assert role in access.role
    assert access.op.startswith(opcode)
    assert access.ptx in " ".join(compiled(SOURCE).split("\n")[access.ptx_line - 1].split())
    assert ("misaligned" in finding.message or "multiple" in finding.message) == (how == 5)


@pytest.mark.parametrize("distance", [4, 1000, 1 << 18, 1 << 24, 1 << 28, 1 << 32])
def test_no_distance_leads_into_the_shadow_unseen(distance: int) -> None:
    """Tables and cells lie far from the kernel's buffers: running over one of them is a finding, however far."""
    source = 'extern "C" __global__ void far(unsigned* p, long long at) { p[at] = 1; }'
    bench = Bench("cpu", source)
    bench.launch("far", 1, 1, bench.zeros(4), distance)
    assert [finding.kind for finding in bench.report().findings] == ["out-of-bounds"]


def test_an_inlined_access_names_the_call_as_well() -> None:
    (finding,) = run(4).findings
    assert [markers(SOURCE).get(frame.line) for frame in finding.accesses[0].inlined] == ["call"]


def test_a_trap_is_a_finding_and_names_its_line() -> None:
    report = run(7)
    (line,) = [line for line, name in markers(SOURCE).items() if name == "trap"]
    (finding,) = report.findings
    (access,) = finding.accesses
    assert (report.verdict, finding.kind, access.line, access.thread) == ("violations", "fault", line, (41, 0, 0))
    assert any("trap" in reason and f"kernel.cu:{line}" in reason and "(41, 0, 0)" in reason for reason in report.incomplete)


def test_a_loop_that_never_ends_is_named() -> None:
    (finding,) = run(8).findings
    assert finding.kind == "deadlock"
    assert {markers(SOURCE).get(waiter["line"]) for waiter in finding.waiters} == {"spin"}


def test_a_deadlock_names_both_barriers() -> None:
    findings = [finding for finding in run(9).findings if finding.kind == "deadlock"]
    assert {markers(SOURCE).get(waiter["line"]) for finding in findings for waiter in finding.waiters} == {"half", "other_half"}


def _prepared() -> Any:
    bench = Bench("cpu", SOURCE)
    assert bench.prepared is not None
    return bench.prepared


@pytest.mark.parametrize("line", [0, 10**9])
def test_a_fault_without_a_place_is_still_reported(line: int) -> None:
    fault = Fault("out-of-bounds", "ld.global.u32", line, (1, 0, 0), (2, 0, 0), address=4096, nbytes=4, space="global", access="read")
    (finding,) = faults.findings_of(LaunchStats(faults=[fault]), _prepared(), "wild")
    (access,) = finding.accesses
    assert (access.block, access.thread, access.bytes, access.line) == ((1, 0, 0), (2, 0, 0), (4096, 4100), 0)
    trap = Fault("trap", "trap", line, (0, 0, 0), (0, 0, 0))
    (ending,) = faults.endings_of(LaunchStats(faults=[trap]), _prepared(), "wild", None)
    assert "executed trap" in ending


def test_a_launch_that_ended_well_has_nothing_to_say() -> None:
    assert faults.findings_of(LaunchStats(), _prepared(), "wild") == []
    assert faults.endings_of(LaunchStats(), _prepared(), "wild", 5.0) == []
