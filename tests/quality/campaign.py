"""Large campaigns on many processes, within a limit of time: counts, and the seed of each disagreement.

    python tests/quality/campaign.py oracle global --programs 5000 --seed 10000     consan against the oracle
    python tests/quality/campaign.py compact --programs 10000                       compact logs against full logs
    python tests/quality/campaign.py global --times 20                              global twins, litmus tests: each in 20 schedules
    python tests/quality/campaign.py global --times 100 --device gpu                the same kernels, 100 launches of each

`--processes` and `--seconds` set how many work at once, and for how long; parts that did not end are counted. `--keep DIR` takes the
programs on which two verdicts differ, reduced, which takes time. A seed makes the same programs everywhere (`draws.py`). With
`--results FILE` each part that has ended is a line of that file; called again, the campaign goes on with the others and counts them all.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [str(ROOT / "tests" / folder) for folder in ("kernels", "oracle", "record")]
sys.path[:0] = FOLDERS

PART = 8  # programs: little is lost where a campaign ends within a part
SPLIT = 10  # launches of a kernel in a part


@dataclass
class Outcome:
    """What a part counted, and one line for each disagreement."""

    name: str
    counts: Counter[str]
    differ: list[str]
    part: str = ""  # which part it is, in a file of results


def of_oracle(strategy: str, programs: int, number: int, keep: Path | None) -> Outcome:
    """Random programs: consan's pairs of sites against the oracle's."""
    from measure import Row, measure

    row = measure(strategy, programs, number, keep)
    numbers = [one.name for one in fields(Row) if one.name not in ("seconds", "examples")]
    what = [name for name in ("missed", "false", "mild") if getattr(row, name)]
    differ = [f"seed {number}: {', '.join(what)}", *(f"  {line}" for line in row.examples[:3])] if what else []
    return Outcome(strategy, Counter({name: getattr(row, name) for name in numbers}), differ)


def of_logs(strategy: str, programs: int, number: int, keep: Path | None) -> Outcome:
    """Random programs, four in a kernel: what the host computes of compact logs against full logs."""
    from compact_support import random_programs

    found = random_programs(strategy, programs // 4, number)
    for k, text in enumerate(found.different if keep else []):
        (keep / f"compact-{strategy}-{number}-{k}.ptx").write_text(f"// {text}")
    counts = Counter({"programs": 4 * found.kernels, "compact": 4 * found.compact, "left out": 4 * found.left_out})
    counts["differ"] = len(found.different)
    return Outcome(strategy, counts, [f"seed {number}: {text.splitlines()[0]}" for text in found.different])


def of_twin(name: str, device: str, first: int, times: int, keep: Path | None) -> Outcome:
    """A kernel of tests/kernels/global, several times: the twin with its fault is reported, and the other is clean."""
    from test_global_memory import CLEAN, TWINS, _launch
    from test_twins import _check_clean, _check_racy
    from twin_file import read

    path = next(path for path in (*TWINS, *CLEAN) if path.stem == name)
    is_twin, spec = path in TWINS, read(path)
    outcome = Outcome("twins" if is_twin else "legal patterns", Counter(kernels=not first, launches=0), [])
    for number in range(first, first + times):
        with _counted(outcome, f"{name}{_seed(device, number)}"):
            _check_clean(*_launch(path, False, number, device), spec)
        if is_twin:
            with _counted(outcome, f"{name} racy{_seed(device, number)}"):
                _check_racy(_launch(path, True, number, device)[0], spec)
    return outcome


def of_litmus(name: str, device: str, first: int, times: int, keep: Path | None) -> Outcome:
    """A litmus test, several times: the variables that race are those that the PTX ISA says."""
    from litmus import LITMUS
    from test_global_programs import ISA, reported

    test = next(test for test in LITMUS if test.name == name)
    expected = {variable: kind for variable, kind in test.races.items() if kind != ISA}
    outcome = Outcome("litmus", Counter(kernels=not first, launches=0), [])
    for number in range(first, first + times):
        with _counted(outcome, f"{name}{_seed(device, number)}"):
            found = reported(test, device, number)
            assert found == expected, f"{found}, not {expected}"
    return outcome


def _seed(device: str, number: int) -> str:
    return f", seed {number}" if device == "cpu" else ""


@contextlib.contextmanager
def _counted(outcome: Outcome, what: str) -> Iterator[None]:
    outcome.counts["launches"] += 1
    try:
        yield
    except pytest.skip.Exception:
        outcome.counts["not for this device"] += 1
    except Exception as error:
        outcome.counts["differ"] += 1
        outcome.differ.append(f"{what}: {type(error).__name__} {' '.join(str(error).split())[:300]}")


def parts(options: argparse.Namespace) -> Iterator[functools.partial[Outcome]]:
    """The parts of a campaign, those of all kinds in turn, so that a campaign that ends early has some of each."""
    if options.what == "global":
        from litmus import LITMUS
        from test_global_memory import CLEAN, TWINS

        kinds = {"twins": [(of_twin, path.stem) for path in (*TWINS, *CLEAN)], "litmus": [(of_litmus, test.name) for test in LITMUS]}
        for first in range(0, options.times, SPLIT):
            for function, name in (one for kind in options.kinds or kinds for one in kinds[kind]):
                yield functools.partial(function, name, options.device, first, min(SPLIT, options.times - first), options.keep)
        return
    from oracle_strategies import OF_GRIDS, STRATEGIES

    function = {"oracle": of_oracle, "compact": of_logs}[options.what]
    strategies = options.kinds or [*STRATEGIES, *OF_GRIDS]
    for k in range(-(-options.programs // (PART * len(strategies)))):
        for strategy in strategies:
            yield functools.partial(function, strategy, PART, options.seed + k, options.keep)


def key(part: functools.partial[Outcome]) -> str:
    """The name of a part in a file of results: what it is called with, but where it keeps programs."""
    return " ".join(str(each) for each in (part.func.__name__, *part.args[:-1]))


def called(part: functools.partial[Outcome]) -> Outcome:
    """The outcome of a part, in a process of the pool."""
    return replace(part(), part=key(part))


def stored(file: Path | None) -> list[Outcome]:
    """The outcomes that a file of results has."""
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    return [Outcome(**one | {"counts": Counter(one["counts"])}) for one in map(json.loads, lines)]


def run(options: argparse.Namespace) -> tuple[list[Outcome], int]:
    """The counts of the parts, and how many did not end in time."""
    outcomes, work = stored(options.results), {key(part): part for part in parts(options)}
    outcomes = [outcome for outcome in outcomes if outcome.part in work]
    work = {name: part for name, part in work.items() if name not in {outcome.part for outcome in outcomes}}
    left, deadline = len(work), time.monotonic() + options.seconds
    with (
        multiprocessing.get_context("spawn").Pool(options.processes) as pool,  # its end ends what still works
        open(options.results or os.devnull, "a") as results,
    ):
        coming = pool.imap_unordered(called, work.values())
        while left and (rest := deadline - time.monotonic()) > 0:
            with contextlib.suppress(multiprocessing.TimeoutError):  # comes early too: when the last part has been handed out
                outcomes.append(coming.next(rest))
                print(json.dumps(vars(outcomes[-1])), file=results, flush=True)
                left -= 1
    return outcomes, left


def totals(outcomes: list[Outcome]) -> dict[str, Counter[str]]:
    """Counts by name."""
    counts = dict[str, Counter[str]]()
    for outcome in outcomes:
        counts.setdefault(outcome.name, Counter()).update(outcome.counts)
    return counts


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["oracle", "compact", "global"])
    parser.add_argument("kinds", nargs="*", help="strategies of random programs; of global kernels `twins` or `litmus`; default: all")
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1, help="of the first part; the others count on from it")
    parser.add_argument("--times", type=int, default=20, help="launches of each kernel")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument(
        "--results", type=Path, help="a file to which parts that have ended are added, and which they are not run again for"
    )
    parser.add_argument("--keep", type=Path, help="a directory for kernels on which two verdicts differ")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    outcomes, left = run(options)
    differ = [f"{outcome.name} {line}" for outcome in outcomes for line in outcome.differ]
    for name, count in sorted(totals(outcomes).items()):
        print(f"{name}: " + ", ".join(f"{number:,} {what}" for what, number in count.items()))
    print(f"{time.monotonic() - start:.0f} s, {left} parts did not end in time, {len(differ)} lines of disagreement")
    print("\n".join(f"{count} x {line}" for line, count in sorted(Counter(differ).items())[:150]))


if __name__ == "__main__":
    main()
