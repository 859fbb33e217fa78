"""No twin with a data race is proven free of races, and clean ones are. The grid is the header's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("z3", reason="the solver is in the extra `prove`")

from twin_file import KernelFile, kernel, read

from consan.instrument.ptx import parse
from consan.prove.environment import Environment
from consan.prove.proof import PROVEN, prove
from consan.prove.solver import z3

HERE = Path(__file__).parent
FILES = sorted((*(HERE / "twins").glob("*.cu"), *(HERE / "global").glob("*.cu")))
# Kinds that a proof is about; `missing-wait` and `scope` are races of copies and of strong accesses.
RACES = {"data-race", "global-race", "missing-wait", "scope", "lifetime", "missing-proxy-fence"}
ROWS = sorted((HERE / "clean").glob("matrix_rows_*.cu"))
COPIES = ("cp_async_no_wait", "cp_async_wait_no_barrier", "cp_async_refill_too_early", "cp_async_source_overwritten")
QUICK = (
    "wgmma_operand_overwritten",
    "wgmma_stored_per_warp",
    *COPIES,
    "cp_async_at_exit",
    "cp_async_beside_store",
    "tiled_matmul_first_barrier",
    "reduction_last_levels",
    "war_loop",
    "pair_read_as_one_word",
    "histogram_plain_add",
    "bulk_load_producer_phase",
    "reduction_no_syncwarp",
)
CLEAN = (
    *COPIES,
    "wgmma_operand_overwritten",
    "wgmma_stored_per_warp",
    "tiled_matmul_first_barrier",
    "war_loop",
    "histogram_plain_add",
    "bulk_load_producer_phase",
    "reduction_no_syncwarp",
    "divergent_barrier",
)
# Rings that mbarriers hand over, and copies that they wait for.
RINGS = ("mbarrier_empty_not_waited", "bulk_bytes_expected_twice", "bulk_load_not_waited", "bulk_load_at_exit")


def answer(path: Path, *, racy: bool) -> str:
    """The answer for a twin, with the grid of its header."""
    given = read(path)
    module = parse(kernel(path, racy).ptx, path.name)
    entry = next(each for each in module.functions if each.kind == "entry")
    return prove(entry, module, given.block, (), [lambda environment: grid_of(given, environment)], 20).answer


def grid_of(given: KernelFile, environment: Environment) -> object:
    """The grid of a header."""
    return z3.And(*(size.term == ctas for size, ctas in zip(environment.grid, given.grid, strict=True)))


def races(path: Path) -> bool:
    """Whether the racy twin has a race. Points of the strict reading (`policy: isa`) are not a matter of proofs."""
    return any(RACES & set(each.kinds) for each in read(path).expected) and "// policy: isa" not in path.read_text()


@pytest.mark.parametrize("name", QUICK)
def test_some_racy_twins_are_not_proven(name: str) -> None:
    path = next(each for each in FILES if each.stem == name)
    assert races(path)
    assert answer(path, racy=True) != PROVEN


@pytest.mark.parametrize("name", CLEAN)
def test_some_clean_twins_are_proven(name: str) -> None:
    assert answer(next(each for each in FILES if each.stem == name), racy=False) == PROVEN


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_rows_of_matrices_are_proven(path: Path) -> None:
    assert answer(path, racy=False) == PROVEN


@pytest.mark.slow
@pytest.mark.parametrize("name", RINGS)
def test_other_rings_are_proven(name: str) -> None:
    assert answer(next(each for each in FILES if each.stem == name), racy=False) == PROVEN


@pytest.mark.slow
@pytest.mark.parametrize("path", [each for each in FILES if races(each)], ids=lambda path: path.stem)
def test_no_racy_twin_is_proven(path: Path) -> None:
    assert answer(path, racy=True) != PROVEN
