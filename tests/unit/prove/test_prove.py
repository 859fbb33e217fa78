"""The answers of `consan prove` for small kernels, and those for random ones against enumeration."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from affine_programs import BulkMaker, CopyMaker, DelayMaker, GridMaker, WarpMaker, wrong, wrong_as_launched
from arm_programs import wrong_arms
from proof_cases import ALIKE, HASHED, HEAD, PROVEN, RACES, UNKNOWN, answer, kernel
from ring_cases import PROVEN as PROVEN_RINGS, UNPROVEN as UNPROVEN_RINGS, proves
from ring_programs import ring_of_groups, wrong_rings
from row_programs import differing

from consan.prove.counterexample import launches
from consan.prove.proof import MEET
from consan.prove.solver import ask, until, z3
from consan.prove.step import NO_TIME
from consan.prove.values.by_many import ONE_VALUE


@pytest.mark.parametrize("body", PROVEN.values(), ids=PROVEN)
def test_what_is_free_of_races_is_proven(body: str) -> None:
    found = answer(body)
    assert (found.answer, found.reasons) == ("proven", [])


@pytest.mark.parametrize("body", RACES.values(), ids=RACES)
def test_what_may_race_is_not_proven(body: str) -> None:
    found = answer(body)
    assert found.answer == "unknown"
    assert {each.why for each in found.reasons} & {MEET, ONE_VALUE}
    assert found.open
    assert not found.conflicts or MEET in {each.why for each in found.reasons}


def test_stores_of_one_value_are_named() -> None:
    found = answer(ALIKE)
    assert ([each.why for each in found.reasons], found.conflicts) == ([ONE_VALUE], [])


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_modelled_is_not_proven(body: str) -> None:
    assert answer(body, seconds=2).answer == "unknown"


@pytest.mark.parametrize(("bits", "known"), [(28, MEET), pytest.param(24, "proven", marks=pytest.mark.slow)])
def test_a_product_that_wraps(bits: int, known: str) -> None:
    assert answer(HASHED.format(bits), seconds=2).answer in (known, "unknown")


def test_an_assumption_of_the_user_makes_a_proof() -> None:
    body = "mad.lo.s32 %r7, %r2, %r1, %r3;\nmul.wide.s32 %rd5, %r7, 4;\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], 1;"
    assert answer(body).answer == "unknown"
    assert answer(body, assume="gridDim.x <= n").answer == "proven"


@pytest.mark.parametrize("body", ["st.shared.u32 [%r4], %r2;", "st.global.u32 [%rd1], %r3;"])
def test_a_grid_has_whole_clusters(body: str) -> None:
    module = kernel(body, "4, 3")
    (launch,) = launches(answer(module).conflicts, module.functions[0], 1)
    assert [launch.grid[0] % 4, launch.grid[1] % 3, launch.grid[2]] == [0, 0, 1]


def test_a_cluster_has_ctas_that_do_the_same() -> None:
    """No CTA reads its number along y: there is one, unless the kernel's clusters have several."""
    assert answer("st.global.u32 [%rd4], %r3;").answer == "proven"
    assert answer(kernel("st.global.u32 [%rd4], %r3;", "1, 2")).answer == "unknown"


@pytest.mark.parametrize("assume", ["n == 64", "n <= 64 and 64 == n"])
def test_a_value_that_the_user_gives_is_a_mask(assume: str) -> None:
    body = "sub.s32 %r7, %r1, 1;\nand.b32 %r8, %r2, %r7;\nmad.lo.s32 %r9, %r8, 4, %r4;\nst.shared.u32 [%r9], %r2;"
    assert answer(body, assume=assume).answer == "proven"
    assert answer(body, assume=assume.replace("64", "32")).answer == "unknown"
    assert answer(body, assume=assume.replace("and", "or")).answer == ("unknown" if "and" in assume else "proven")


def test_code_that_the_user_rules_out_does_not_matter() -> None:
    body = "setp.gt.s32 %p1, %r1, 100;\n@%p1 st.global.u32 [%rd1], 1;\nst.global.u32 [%rd4+4], 1;"
    assert answer(body).answer != "proven"
    assert answer(body, assume="n <= 100").answer == "proven"


def test_assumptions_that_exclude_each_other_prove_nothing() -> None:
    found = answer("st.global.u32 [%rd2], 1;", assume="n < 0 and n > 0")
    assert found.answer == "unknown"


def test_where_calls_go_is_assumed() -> None:
    assert [answer(PROVEN[name]).calls for name in ("a call of a function that computes", "own elements")] == [True, False]


def test_an_overflow_that_is_assumed_away_is_named() -> None:
    found = answer(PROVEN["own elements"])
    assert found.overflows == [HEAD[: HEAD.index("mul.wide")].count("\n") + 1]


def test_a_question_ends_when_the_time_is_over() -> None:
    cubes = [each * each * each for each in z3.Ints("x y z")]
    start = time.monotonic()
    with until(start + 0.3):
        assert ask([cubes[0] + cubes[1] == cubes[2], *(each > 0 for each in cubes)], 60) is None
        assert time.monotonic() - start < 10
        assert ask([z3.BoolVal(False)], 60) is None
    assert ask([z3.BoolVal(False)], 60) is False


SQUARES = "mad.lo.s32 %r7, %r1, %r1, %r1;\n" + 9 * "mad.lo.s32 %r7, %r7, %r7, %r7;\n"
MIXED = "add.s32 %r7, %r2, %r1;\n" + 200 * "shr.s32 %r8, %r7, 1;\nxor.b32 %r9, %r8, %r7;\nmad.lo.s32 %r7, %r7, 3, %r9;\n"


@pytest.mark.parametrize(("body", "why"), [(SQUARES, ONE_VALUE), (MIXED, NO_TIME)], ids=["squares", "sums"])
def test_an_expression_of_many_parts_has_an_answer_in_time(body: str, why: str) -> None:
    start = time.monotonic()
    found = answer(body + "and.b32 %r8, %r7, 127;\nmad.lo.s32 %r8, %r8, 4, %r4;\nst.shared.u32 [%r8], 1;", seconds=1)
    assert [(each.why, len(each.lines)) for each in found.reasons] == [(why, 1)]
    assert time.monotonic() - start < 20  # squares of squares took 80 s, whatever the limit


def test_no_random_program_with_a_race_is_proven() -> None:
    found, proven = wrong((*range(4, 14), 1533, 5021, 5185))  # the last ones: iterations that were shared, and a first one left out
    assert found == []
    assert proven


def test_no_random_program_of_rows_of_ctas_that_races_is_proven() -> None:
    found, proven = wrong(range(16), GridMaker)
    assert found == []
    assert proven


def test_no_random_program_whose_copies_race_is_proven() -> None:
    found, proven = wrong(range(12), CopyMaker)
    assert found == []
    assert proven


def test_rows_of_matrices_are_those_of_their_lanes() -> None:
    found, proven = differing(range(12))
    assert found == []
    assert proven


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_rows_of_matrices_of_many_programs_are_those_of_their_lanes() -> None:
    found, proven = differing(range(12, 312))
    assert found == []
    assert proven > 15


def test_no_random_program_whose_warps_race_is_proven() -> None:
    found, proven = wrong(range(8), WarpMaker, 64)
    assert found == []
    assert proven


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_random_program_of_many_whose_warps_race_is_proven() -> None:
    found, proven = wrong(range(40, 640), WarpMaker, 64)
    assert found == []
    assert proven > 150


def test_no_random_program_of_two_warps_that_races_is_proven() -> None:
    found, proven = wrong_arms(range(24))
    assert found == []
    assert proven > 6


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("by_n", [False, True])
def test_no_random_program_of_many_of_two_warps_that_races_is_proven(by_n: bool) -> None:
    found, proven = wrong_arms(range(24, 824), by_n=by_n)
    assert found == []
    assert proven > 200


def test_no_random_program_whose_bulk_copies_race_is_proven() -> None:
    found, proven = wrong((4, 5, 6, 7, 67, 81), BulkMaker)
    assert found == []
    assert proven


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_random_program_of_many_whose_bulk_copies_race_is_proven() -> None:
    found, proven = wrong(range(60, 700), BulkMaker)
    assert found == []
    assert proven > 40


def test_no_random_program_that_computes_for_the_next_round_is_proven_if_it_races() -> None:
    found, proven = wrong((*range(4), 22, 55), DelayMaker)
    assert found == []
    assert proven


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_random_program_of_many_that_compute_for_the_next_round_is_proven_if_it_races() -> None:
    found, proven = wrong(range(60, 800), DelayMaker)
    assert found == []
    assert proven > 100


def test_no_random_program_with_a_race_is_proven_as_launched() -> None:
    found, proven = wrong_as_launched((2, 10, 22, 26, 31, 32, 40, 47))
    assert found == []
    assert proven == 8


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(20, 1020, 250))
def test_no_random_program_of_many_with_a_race_is_proven_as_launched(first: int) -> None:
    found, proven = wrong_as_launched(range(first, first + 250))
    assert found == []
    assert proven > 40


@pytest.mark.parametrize("name", [*PROVEN_RINGS][:2])
def test_a_ring_of_mbarriers_is_proven_for_all_rounds(name: str) -> None:
    assert proves(PROVEN_RINGS[name])


@pytest.mark.parametrize("name", [*UNPROVEN_RINGS][:2])
def test_a_faulty_ring_is_not_proven(name: str) -> None:
    assert not proves(UNPROVEN_RINGS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PROVEN_RINGS][2:])
def test_another_ring_is_proven(name: str) -> None:
    assert proves(PROVEN_RINGS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*UNPROVEN_RINGS][2:])
def test_another_faulty_ring_is_not_proven(name: str) -> None:
    assert not proves(UNPROVEN_RINGS[name])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_random_ring_that_is_wrong_is_proven() -> None:
    found, proven = wrong_rings(range(400))
    assert found == []
    assert proven > 60


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_random_ring_of_groups_that_is_wrong_is_proven() -> None:
    found, proven = wrong_rings(range(400), ring_of_groups)
    assert found == []
    assert proven > 40


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(20, 2020, 200))
def test_no_random_program_of_many_whose_copies_race_is_proven(first: int) -> None:
    found, proven = wrong(range(first, first + 200), CopyMaker)
    assert found == []
    assert proven > 30


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(20, 5020, 250))
def test_no_random_program_of_many_with_a_race_is_proven(first: int) -> None:
    found, proven = wrong(range(first, first + 250))
    assert found == []
    assert proven > 25


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(20, 2020, 250))
def test_no_random_program_of_many_of_rows_of_ctas_that_races_is_proven(first: int) -> None:
    found, proven = wrong(range(first, first + 250), GridMaker)
    assert found == []
    assert proven > 25
