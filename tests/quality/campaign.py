"""Large campaigns on many processes, within a limit of time: counts, and the seed of each disagreement.

    python tests/quality/campaign.py oracle global --programs 5000 --seed 10000     consan against the oracle
    python tests/quality/campaign.py compact --programs 10000                       compact logs against full logs
    python tests/quality/campaign.py global --times 20                              global twins, litmus tests: each in 20 schedules
    python tests/quality/campaign.py global --times 100 --device gpu                the same kernels, 100 launches of each

`--processes` and `--seconds` set how many work at once, and for how long; parts that did not end are counted. `--keep DIR` takes the
programs on which two verdicts differ, reduced, which takes time. A seed makes the same programs again with one version of Hypothesis.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

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
    except Exception as error:
        outcome.counts["differ"] += 1
        outcome.differ.append(f"{what}: {type(error).__name__} {' '.join(str(error).split())[:300]}")


def parts(options: argparse.Namespace) -> Iterator[Callable[[], Outcome]]:
    """The parts of a campaign, those of all kinds in turn, so that a campaign that ends early has some of each."""
    if options.what == "global":
        from litmus import LITMUS
        from test_global_memory import CLEAN, TWINS

        work = [(of_twin, path.stem) for path in (*TWINS, *CLEAN)] + [(of_litmus, test.name) for test in LITMUS]
        for first in range(0, options.times, SPLIT):
            for function, name in work:
                yield functools.partial(function, name, options.device, first, min(SPLIT, options.times - first), options.keep)
        return
    from oracle_strategies import OF_GRIDS, STRATEGIES

    function = {"oracle": of_oracle, "compact": of_logs}[options.what]
    strategies = options.strategies or [*STRATEGIES, *OF_GRIDS]
    for k in range(-(-options.programs // (PART * len(strategies)))):
        for strategy in strategies:
            yield functools.partial(function, strategy, PART, options.seed + k, options.keep)


def called(part: Callable[[], Outcome]) -> Outcome:
    """The outcome of a part, in a process of the pool."""
    return part()


def run(options: argparse.Namespace) -> tuple[dict[str, Counter[str]], list[str], int]:
    """Counts by name, the disagreements, and how many parts did not end in time."""
    counts, differ, work = dict[str, Counter[str]](), list[str](), list(parts(options))
    left, deadline = len(work), time.monotonic() + options.seconds
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:  # its end ends what still works
        outcomes = pool.imap_unordered(called, work)
        with contextlib.suppress(multiprocessing.TimeoutError):
            while left:
                outcome = outcomes.next(max(0.0, deadline - time.monotonic()))
                counts.setdefault(outcome.name, Counter()).update(outcome.counts)
                differ += [f"{outcome.name} {line}" for line in outcome.differ]
                left -= 1
    return counts, differ, left


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["oracle", "compact", "global"])
    parser.add_argument("strategies", nargs="*", help="of random programs; default: all")
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1, help="of the first part; the others count on from it")
    parser.add_argument("--times", type=int, default=20, help="launches of each kernel")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--keep", type=Path, help="a directory for kernels on which two verdicts differ")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    counts, differ, left = run(options)
    for name, count in sorted(counts.items()):
        print(f"{name}: " + ", ".join(f"{number:,} {what}" for what, number in count.items()))
    print(f"{time.monotonic() - start:.0f} s, {left} parts did not end in time, {len(differ)} lines of disagreement")
    print("\n".join(f"{count} x {line}" for line, count in sorted(Counter(differ).items())[:150]))


if __name__ == "__main__":
    main()
