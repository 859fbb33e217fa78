"""How launches are made, decided from texts and options alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from consan.checker.logs.pieces import NoRoom
from consan.instrument.ptx import parse
from consan.instrument.record import Recorded, record
from consan.reports.model import AllLaunchesProof
from consan.session.modules.prepared import KnownLogs
from consan.session.planning import launch_sizes
from consan.session.planning.options import SessionOptions
from consan.session.planning.plan import SLOW_SAMPLE, Gap, LaunchPlan, PlannedKernel, PlannedLaunch, Unasked, plan

TEXT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
LAUNCH = PlannedLaunch((4, 1, 1), (64, 1, 1))
DEFAULTS = SessionOptions()


@dataclass
class Form:
    """A form of the module, without a device."""

    number: int
    recorded: Recorded | None
    logs: KnownLogs = field(default_factory=KnownLogs)

    def number_of(self, entry: str) -> int:
        return ["k"].index(entry)


@functools.cache
def _recorded(*, global_races: bool, leaves: bool = False) -> Recorded:
    return record(parse(TEXT), global_races=global_races, leaves=leaves)


def _kernel(proven: int = 0, *, refused: str = "", light_refused: str = "", leaves: bool = False) -> PlannedKernel[Form]:
    def form(number: int, outer: bool, why: str) -> Form:
        return Form(number, replace(_recorded(global_races=outer, leaves=leaves), prunes=outer, refused={"k": why} if why else {}))

    light = form(1, False, light_refused)
    return PlannedKernel(form(0, True, refused), "k", lambda: light, lambda: proven)


def _told(made: LaunchPlan[Form]) -> list[tuple[Gap, int, str]]:
    return [(gap, form.number, str(why)) for gap, form, why in made.gaps]


def test_a_kernel_is_recorded_with_its_global_memory() -> None:
    made = plan(_kernel(), LAUNCH, DEFAULTS)
    assert (made.form.number, made.gaps, made.proven.accesses) == (0, (), 0)
    assert made.log is not None
    assert (made.log.grid, made.log.block, made.log.cluster, made.log.sample) == (LAUNCH.grid, LAUNCH.block, (1, 1, 1), 0)


def test_a_module_with_hooks_keeps_them() -> None:
    kernel = replace(_kernel(), form=Form(2, None))
    assert plan(kernel, LAUNCH, SessionOptions(engine="inline")) == LaunchPlan(kernel.form)


@pytest.mark.parametrize("wanted", [False, True])
def test_what_is_proven_is_not_logged_unless_its_accesses_are_asked_for(wanted: bool) -> None:
    made = plan(_kernel(proven=7), replace(LAUNCH, wanted=wanted), DEFAULTS)
    assert (made.form.number, made.proven.accesses, made.gaps) == ((0, 0, ()) if wanted else (1, 7, ()))


def test_a_proof_does_not_serve_where_the_light_form_is_refused() -> None:
    made = plan(_kernel(proven=7, light_refused="no"), LAUNCH, DEFAULTS)
    assert (made.form.number, made.proven.accesses) == (0, 0)


@pytest.mark.parametrize(
    ("light", "form", "gaps"),
    [("", 1, [(Gap.GLOBAL, 1, "a texture")]), ("a jump", 1, [(Gap.RECORD, 1, "a texture")])],
)
def test_a_refused_kernel_loses_global_memory_or_all(light: str, form: int, gaps: list[Any]) -> None:
    made = plan(_kernel(refused="a texture", light_refused=light), LAUNCH, DEFAULTS)
    assert (made.form.number, _told(made), made.log is None) == (form, gaps, bool(light))


def test_a_launch_that_no_log_can_follow_runs_as_it_is() -> None:
    made = plan(_kernel(), replace(LAUNCH, unfollowed="a graph"), DEFAULTS)
    assert (_told(made), made.log) == ([(Gap.RECORD, 0, "a graph")], None)


def test_without_room_first_global_memory_goes_then_the_record() -> None:
    full, both = ({number: NoRoom("log is full") for number in range(count)} for count in (1, 2))
    made = plan(_kernel(), replace(LAUNCH, no_room=full), DEFAULTS)
    assert (made.form.number, _told(made), made.log is None) == (1, [(Gap.ROOM, 1, "log is full")], False)
    made = plan(_kernel(), replace(LAUNCH, no_room=both), DEFAULTS)
    assert (made.log, [gap for gap, *_ in made.gaps]) == (None, [Gap.ROOM, Gap.ROOM, Gap.RECORD])


@pytest.mark.parametrize("asked", ["auto", "on"])
def test_a_launch_that_is_too_large_loses_global_memory_unless_it_is_asked_for(asked: str) -> None:
    large = PlannedLaunch((launch_sizes.MOST_WARPS + 1, 1, 1), (32, 1, 1))
    made = plan(_kernel(leaves=True), large, SessionOptions(global_memory=asked))
    assert [(gap, form, isinstance(why, Unasked)) for gap, form, why in made.gaps] == (
        [] if asked == "on" else [(Gap.ROOM, made.form, True)]
    )
    assert made.form.number == (0 if asked == "on" else 1)


@pytest.mark.parametrize(
    ("options", "sample", "hurried"), [({}, SLOW_SAMPLE, True), ({"sample": 3}, 3, False), ({"exhaustive": True}, 0, False)]
)
def test_later_launches_of_slow_replays_are_sampled_unless_the_user_says_how_much(options: Any, sample: int, hurried: bool) -> None:
    kernel = _kernel(leaves=True)
    light = replace(kernel.light(), logs=KnownLogs(slow=True))
    made = plan(replace(kernel, form=light), LAUNCH, SessionOptions.of(options))
    assert made.log is not None
    assert (made.log.sample, made.log.hurried, made.log.slow) == (sample, hurried, hurried)


def test_a_grid_that_is_no_multiple_of_its_cluster_is_replayed_by_ctas() -> None:
    made = plan(_kernel(), replace(LAUNCH, cluster=(3, 1, 1)), DEFAULTS)
    assert made.log is not None
    assert made.log.cluster == (1, 1, 1)


def test_a_plan_is_the_same_each_time_and_changes_nothing() -> None:
    kernel = _kernel(proven=3)
    before = replace(kernel.form), replace(kernel.light())
    assert plan(kernel, LAUNCH, DEFAULTS) == plan(kernel, LAUNCH, DEFAULTS)
    assert (kernel.form, kernel.light()) == before


ALWAYS = AllLaunchesProof((64, 1, 1), (), whole=True)


def _always(kernel: PlannedKernel[Form], *, shown: bool = True) -> PlannedKernel[Form]:
    return replace(kernel, always=lambda: ALWAYS, shown=lambda: shown)


@pytest.mark.parametrize(("judged", "shown"), [(False, True), (True, False), (True, True)])
def test_a_launch_that_none_has_shown_is_recorded_though_no_launch_has_a_race(judged: bool, shown: bool) -> None:
    made = plan(_always(_kernel(), shown=shown), replace(LAUNCH, judged=judged), DEFAULTS)
    assert (made.form.number, made.proven.always, made.gaps) == (1, ALWAYS, ())
    assert (made.log is None) == (judged and shown)


@pytest.mark.parametrize("options", [DEFAULTS, replace(DEFAULTS, keep_histories=True)])
def test_a_log_that_is_wanted_is_made_though_no_launch_has_a_race(options: SessionOptions) -> None:
    launch = replace(LAUNCH, judged=True, wanted=not options.keep_histories)
    made = plan(_always(_kernel()), launch, options)
    assert (made.form.number, made.proven.always, made.log is None) == (0, None, False)


def test_a_kernel_that_is_not_recorded_without_global_memory_is_recorded_in_full() -> None:
    made = plan(_always(_kernel(light_refused="no")), replace(LAUNCH, judged=True), DEFAULTS)
    assert (made.form.number, made.proven.always) == (0, None)
