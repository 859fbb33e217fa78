"""What was checked of each kernel, what that makes of the verdict, and what a report says it does not look for, in every format."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import report_samples as samples

from consan.instrument.functions.analyse import plan_functions
from consan.instrument.ptx import parse
from consan.reports import render
from consan.reports.formats import json_format
from consan.reports.model import KernelSummary, Report, Uninstrumented, Unmodelled
from consan.reports.verdict.combination import combine
from consan.reports.verdict.conclusion import assemble
from consan.reports.verdict.coverage import by_kernel, coverage, rows

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b64 %rd<4>; .reg .b32 %r<4>; .shared .align 4 .b8 tile[16];
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd1], %r1;
    st.global.v2.u32 [%rd1], {%r1, %r1};
    atom.global.add.u32 %r2, [%rd1], 1;
    red.relaxed.gpu.global.add.u32 [%rd1], 1;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;
    cp.async.ca.shared.global [%r1], [%rd1], 4;
    st.shared.u32 [tile], %r1;
    atom.shared.add.u32 %r2, [tile], 1;
    st.u32 [%rd1], %r1;
    atom.add.u32 %r2, [%rd1], 1;
    ret;
}
"""
LEFT_OUT = ("global-memory",)
RAN = KernelSummary("k", 2, global_stores=3, global_atomics=2, excluded=LEFT_OUT)
LOOKED = KernelSummary("k", 2, global_stores=3, global_checked=2)
ONE = "global-memory: races are not looked for (3 store and 2 atomic instructions in 1 kernel)"


def report(*kernels: KernelSummary, **others: object) -> Report:
    return assemble(device="cpu", kernels=kernels, checked=("shared-memory",), **others)  # type: ignore[arg-type]


def test_writes_of_global_memory_are_counted_by_what_they_are() -> None:
    writes = plan_functions(parse(PTX, "k.ptx"))["k"].stats.writes
    assert (writes.stores, writes.atomics, writes.generic) == (3, 2, 2)


def test_a_kernel_that_may_run_beside_another_launch_is_named() -> None:
    text = PTX.replace("    ret;", "    griddepcontrol.wait;\n    griddepcontrol.launch_dependents;\n    ret;")
    count = plan_functions(parse(text, "k.ptx"))["k"].stats.grid_controls
    assert (count, plan_functions(parse(PTX, "k.ptx"))["k"].stats.grid_controls) == (2, 0)
    (outer, launches) = report(replace(RAN, grid_controls=count), KernelSummary("other", 1)).not_checked
    assert outer.startswith("global-memory: ")
    assert launches == "launches: races between k and a kernel that runs beside it (griddepcontrol) are not looked for"


def test_it_names_global_memory_with_what_was_seen_and_leaves_the_verdict_alone() -> None:
    assert (report(RAN).verdict, report(RAN).not_checked) == ("clean", (ONE,))


WHY = ("why not",)


@pytest.mark.parametrize(
    ("kernels", "states", "verdict"),
    [
        ([LOOKED], ["checked"], "clean"),
        ([replace(LOOKED, global_accesses=9, global_proven=9)], ["proven"], "clean"),
        ([replace(LOOKED, launches=5, global_gaps=WHY)], ["sampled"], "clean"),
        ([replace(LOOKED, global_checked=0, global_gaps=WHY)], ["not checked"], "incomplete"),
        ([replace(LOOKED, global_checked=0)], ["not checked"], "incomplete"),
        ([KernelSummary("k", 1, generic_writes=1)], ["not checked"], "incomplete"),
        ([KernelSummary("k", 1, global_gaps=WHY)], ["checked"], "clean"),
        ([RAN], ["excluded by the user"], "clean"),
        ([LOOKED, replace(LOOKED, name="b", global_checked=0)], ["checked", "not checked"], "incomplete"),
        ([LOOKED, replace(LOOKED, engine="inline", launches=7, global_checked=0, global_gaps=WHY)], ["sampled"], "clean"),
        ([LOOKED, replace(LOOKED, launches=0, name="never", global_checked=0)], ["checked"], "clean"),
        ([replace(LOOKED, launches=5, global_shapes=("a",))], ["sampled"], "clean"),
        ([replace(LOOKED, launches=5, global_shapes=("a",), global_missed=("b",))], ["not checked"], "incomplete"),
        ([replace(LOOKED, global_shapes=("a",), global_missed=("b",)), replace(LOOKED, global_shapes=("b",))], ["checked"], "clean"),
    ],
)
def test_the_verdict_follows_from_what_was_checked_of_each_kernel(kernels: list[KernelSummary], states: list[str], verdict: str) -> None:
    made = report(*kernels)
    assert ([row.state for row in rows(made)], made.verdict) == (states, verdict)
    assert bool(made.incomplete) == (verdict == "incomplete")
    assert report(*kernels, findings=[samples.RACE]).verdict == "violations"


GAP = Unmodelled("wmma.load", 7, 2)


@pytest.mark.parametrize(
    ("kernel", "left_out", "states", "verdict"),
    [
        (LOOKED, 0, {}, "clean"),
        (replace(LOOKED, launches=5, global_gaps=WHY), 0, {"global-memory": "sampled (2 of 5)"}, "clean"),
        (replace(LOOKED, ctas=64, global_ctas=3, global_gaps=WHY), 0, {"global-memory": "sampled (3 of 64)"}, "clean"),
        (replace(LOOKED, launches=5, ctas=64, global_ctas=3, global_gaps=WHY), 0, {"global-memory": "sampled (2 of 5)"}, "clean"),
        (replace(LOOKED, excluded=("shared-memory",)), 0, {"shared-memory": "excluded by the user"}, "clean"),
        (replace(LOOKED, launches=3), 1, {"shared-memory": "sampled (2 of 3)", "global-memory": "sampled (2 of 3)"}, "clean"),
        (replace(LOOKED, unchecked=1), 0, {"shared-memory": "not checked (1 launch of k ran unchecked)"}, "incomplete"),
        (replace(LOOKED, missing=("shared-memory: why not",)), 0, {"shared-memory": "not checked (why not)"}, "incomplete"),
        (
            replace(LOOKED, missing=("global-memory: why not",)),
            0,
            {"global-memory": "not checked (global memory was not checked in full in k: why not)"},
            "incomplete",
        ),
        (
            replace(LOOKED, unmodelled=(GAP,)),
            0,
            {"instructions": "not checked (k contains wmma.load, which is not modelled (2 times, PTX line 7))"},
            "incomplete",
        ),
    ],
)
def test_each_area_of_a_kernel_has_a_state(kernel: KernelSummary, left_out: int, states: dict[str, str], verdict: str) -> None:
    made = report(kernel, uninstrumented=[Uninstrumented("k", left_out)] if left_out else [])
    whole = dict.fromkeys(("instructions", "global-memory", "shared-memory"), "checked")
    assert (by_kernel(made), made.verdict) == ({"k": whole | states}, verdict)
    assert {row.area for row in coverage(made) if row.kernel == "k"} == whole.keys()
    (stored,) = json.loads(json_format.dumps(made))["kernels"]
    assert stored["coverage"] == whole | states
    assert made.incomplete == tuple(state[len("not checked (") : -1] for state in states.values() if state.startswith("not checked"))


def test_a_kernel_that_a_filter_leaves_out_was_excluded() -> None:
    made = report(LOOKED, replace(LOOKED, name="b"), uninstrumented=[Uninstrumented("b", 2)])
    assert (by_kernel(made)["b"]["shared-memory"], made.verdict) == ("excluded by the user", "clean")


def test_what_was_not_checked_of_a_kernel_is_read_back() -> None:
    made = report(replace(LOOKED, missing=("matrix-registers: k is a debug build",)))
    again = json_format.loads(json_format.dumps(made))
    assert by_kernel(again) == by_kernel(made) != {}
    assert combine([again, again]).incomplete == ("k is a debug build",)


def test_a_gap_says_why() -> None:
    made = report(replace(LOOKED, global_checked=0, global_gaps=WHY))
    assert made.incomplete == ("global memory was not checked in full in k: why not",)


def test_a_shape_of_which_no_launch_was_looked_at_is_named() -> None:
    some = replace(LOOKED, launches=9, global_shapes=("a",), global_missed=("b", "c"), global_gaps=WHY)
    (sentence,) = report(some).incomplete
    assert sentence == "global memory was not checked in full in k: none of the launches of 2 shapes (b, c) was compared in full: why not"
    (sentence,) = report(replace(some, global_missed=tuple("bcdef"), global_gaps=())).incomplete
    assert sentence.endswith("none of the launches of 5 shapes (b, c, d and 2 more) was compared in full")


def test_what_one_of_two_reports_has_looked_at_is_no_gap_of_the_whole() -> None:
    gap = report(replace(LOOKED, global_checked=0, global_gaps=WHY))
    assert combine([gap, report(LOOKED)]).verdict == "clean"
    assert combine([gap, gap]).incomplete == gap.incomplete


def test_a_report_without_a_kernel_does_not_say_that_the_others_checked_less() -> None:
    whole = replace(report(LOOKED), checked=("shared-memory", "global-memory"), not_checked=())
    both = combine([report(), whole])
    assert (both.checked, both.not_checked) == (whole.checked, ())
    assert combine([whole, report(RAN)]).checked == ("shared-memory",)


@pytest.mark.parametrize(
    ("kernels", "text"),
    [
        ([RAN, KernelSummary("never", 0, global_stores=9)], "3 store and 2 atomic instructions in 1 kernel"),
        ([RAN, KernelSummary("left_out", 1, global_stores=9)], "3 store and 2 atomic instructions in 1 kernel"),
        ([RAN, KernelSummary("b", 1, global_atomics=1, generic_writes=4, excluded=LEFT_OUT)],
         "3 store and 3 atomic instructions in 2 kernels, and 4 stores or atomics with generic addresses"),
        ([KernelSummary("k", 1, global_atomics=1)], "0 store and 1 atomic instruction in 1 kernel"),
        ([], "no kernel was checked"),
    ],
)  # fmt: skip
def test_only_what_ran_with_hooks_counts(kernels: list[KernelSummary], text: str) -> None:
    (told,) = report(*kernels, uninstrumented=[Uninstrumented("left_out", 1)]).not_checked
    assert told == f"global-memory: races are not looked for ({text})"


def test_an_area_that_is_checked_is_not_in_the_list() -> None:
    assert assemble(device="cpu", kernels=[RAN], checked=("global-memory",)).not_checked == ()


def test_reports_of_one_kernel_are_not_summed_and_those_of_two_are() -> None:
    assert combine([report(RAN), report(RAN)]).not_checked == (ONE,)
    both = combine([report(RAN), report(replace(RAN, name="b"))])
    assert both.not_checked == ("global-memory: races are not looked for (6 store and 4 atomic instructions in 2 kernels)",)


def test_an_area_that_one_of_two_reports_lacks_stays_in_the_list() -> None:
    whole = replace(report(RAN), checked=("shared-memory", "global-memory"), not_checked=())
    assert combine([whole, report(RAN)]).not_checked == (ONE,)


@pytest.mark.parametrize("sample", [samples.clean, samples.violations, samples.incomplete])
def test_every_format_says_it(sample: object) -> None:
    made: Report = sample()  # type: ignore[operator]
    (told,) = made.not_checked
    assert re.search(r"not checked: +global-memory: races are not looked for \(", render(made, "text"))
    assert json.loads(render(made, "json"))["not_checked"] == [told]
    assert json.loads(render(made, "sarif"))["runs"][0]["properties"]["not_checked"] == [told]
    assert f"<dt>not checked</dt><dd>{told}</dd>" in render(made, "html")


def test_the_report_says_which_consan_made_it_and_how() -> None:
    data = json.loads(render(report(RAN), "json"))
    assert data["consan"] == report(RAN).version != ""
    assert [kernel["engine"] for kernel in data["kernels"]] == ["inline"]


NOTHING = "no instrumented kernel was launched"


def test_that_nothing_ran_is_said_of_the_whole_only_if_it_holds_for_the_whole() -> None:
    nothing, named, ran = report(), report(why_nothing="--kernel-name kns=x matches none"), report(RAN)
    assert (nothing.incomplete, named.incomplete) == ((NOTHING,), (f"{NOTHING}: --kernel-name kns=x matches none",))
    assert combine([nothing, nothing]).incomplete == (NOTHING,)
    assert combine([nothing, named]).incomplete == named.incomplete
    assert (combine([nothing, ran, named]).incomplete, combine([nothing, ran]).verdict) == ((), "clean")
    assert combine([report(unchecked=["a gap"]), ran]).incomplete == ("a gap",)
