"""What digests.py runs: twins, pairs, legal patterns, regressions of the oracle, real kernels, and a stored set of random programs.

An item has a name, such as `twin/warp_shuffle` or `program/lanes/3`, and gives its PTX and consan's report of one launch on the virtual
machine. The random programs are stored (`programs.json.xz`), so that they stay the same where a strategy changes.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import consan
from consan.reports.model import Report

HERE = Path(__file__).parent
TESTS = HERE.parent
sys.path[:0] = [str(TESTS), *(str(TESTS / name) for name in ("oracle", "kernels", "real"))]
PROGRAMS = HERE / "programs.json.xz"
PER_KERNEL = 8  # random programs

Ran = tuple[str, Report]  # PTX, and the report
Items = Iterator[tuple[str, Callable[[], Ran]]]


class LeftOutError(Exception):
    """An item that this machine cannot make, and why."""


def items(programs: int) -> Items:
    """Everything, with so many random programs."""
    yield from _kernel_files()
    yield from _regressions()
    yield from _real()
    yield from _random(programs)


# -- Kernel files --------------------------------------------------------------------------------------------------------------------


def _kernel_files() -> Items:
    for folder in ("twins", "global", "blackwell"):
        kind = "twin" if folder == "twins" else folder
        for path in sorted((TESTS / "kernels" / folder).glob("*.cu")):
            clean = path.stem.startswith("clean_")
            if not clean:
                yield f"{kind}/{path.stem}", lambda path=path: _kernel_file(path, {"RACY": 1})  # type: ignore[misc]
            yield f"{kind}-repaired/{path.stem}", lambda path=path: _kernel_file(path, {})  # type: ignore[misc]
    for path in sorted((TESTS / "kernels").glob("**/clean/*.cu")):
        yield f"clean/{path.stem}", lambda path=path: _kernel_file(path, {})  # type: ignore[misc]
    for path in sorted((TESTS / "kernels" / "pairs").glob("*.cu")):
        for bug in (0, *map(int, _BUG.findall(path.read_text()))):
            yield f"pair/{path.stem}/{bug}", lambda path=path, bug=bug: _kernel_file(path, {"BUG": bug})  # type: ignore[misc]


_BUG = re.compile(r"^// bug (\d+): ", re.M)


def _kernel_file(path: Path, defines: dict[str, int]) -> Ran:
    import twin_file

    spec = twin_file.read(path)
    kernel = consan.Kernel(path, entry="kernel", arch=spec.arch, defines=defines)
    values = spec.parameters(spec.fresh_args())
    report = consan.launch(kernel, spec.grid, spec.block, values, smem=spec.smem, device="cpu", policy=spec.policy, timeout=60)
    return kernel.ptx, report


# -- Programs with two buffers -------------------------------------------------------------------------------------------------------


def _regressions() -> Items:
    for path in sorted((TESTS / "oracle" / "regressions").glob("*.ptx")):
        yield f"regression/{path.stem}", lambda path=path: _regression(path)  # type: ignore[misc]


def _regression(path: Path) -> Ran:
    found = re.search(r"^// launch: grid=(\d+) block=(\d+)", text := path.read_text(), re.M)
    assert found is not None, f"{path}: no launch"
    return _program(text, int(found[1]), int(found[2]))


def _random(programs: int) -> Items:
    stored = json.loads(lzma.decompress(PROGRAMS.read_bytes()))
    for one in stored[: -(-programs // PER_KERNEL)]:
        yield f"program/{one['name']}", lambda one=one: _program(one["ptx"], one["grid"], one["block"])  # type: ignore[misc]


def _program(ptx: str, grid: int, block: int) -> Ran:
    args: list[Any] = [np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)]
    return ptx, consan.launch(consan.Kernel(ptx), grid, block, args, device="cpu")


# -- Real kernels --------------------------------------------------------------------------------------------------------------------


def _real() -> Items:
    from hopper_cases import CLUSTER_CASES, HOPPER_CASES
    from real_cases import CASES

    for case, arch in [*((case, "sm_80") for case in CASES), *((case, "sm_90a") for case in (*HOPPER_CASES, *CLUSTER_CASES))]:
        yield f"real/{case.name}/{arch}", lambda case=case, arch=arch: _real_kernel(case, arch)  # type: ignore[misc]


def _real_kernel(case: Any, arch: str) -> Ran:
    import pytest
    from real_run import Session, SessionOptions, ptx_of, run_checked

    try:
        ptx = ptx_of(case.name, arch)
    except pytest.skip.Exception as why:
        raise LeftOutError(str(why)) from None
    return ptx, run_checked(ptx, case.launch("small", 0), Session(SessionOptions(device="cpu")))[1]


# -- The stored programs -------------------------------------------------------------------------------------------------------------


def make_programs(count: int, number: int = 1) -> None:
    """Write random programs of all strategies in turn, so that the first hundred have some of each."""
    from oracle_strategies import STRATEGIES

    each = -(-count // PER_KERNEL // len(STRATEGIES))
    made = {strategy: _made(strategy, each, number) for strategy in STRATEGIES}
    rows = [{"name": f"{strategy}/{k}", **made[strategy][k]} for k in reversed(range(each)) for strategy in made]
    PROGRAMS.write_bytes(lzma.compress(json.dumps(rows[: -(-count // PER_KERNEL)]).encode(), preset=9))


def _made(strategy: str, wanted: int, number: int) -> list[dict[str, Any]]:
    from draws import examples
    from oracle_strategies import batches

    return [{"ptx": one.ptx, "grid": one.grid, "block": one.threads} for one in examples(batches(strategy, PER_KERNEL), number, wanted)]
