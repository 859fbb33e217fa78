"""Holds what consan reports before and after a change that should not change it.

    python tests/quality/digests.py store [--programs N] [--jobs J] [--only PREFIX ...]      in a checkout of the old commit
    python tests/quality/digests.py compare [--programs N] [--jobs J] [--only PREFIX ...]    in the new one
    python tests/quality/digests.py programs                                                 makes the random programs anew

Each launch of digest_items.py gives one line of JSON: a hash of its PTX, the verdict, what was checked, and the findings. A finding is its
kernel, kind, severity, PTX lines of the pair (of the waiters, for a deadlock) and situation; texts and counts are left out.

`store` writes `digests.jsonl` beside this file (or --file). `compare` runs everything anew into --work and prints what differs; its status
is 1 if anything does. Where the PTX differs too, even in places of the source only, it says so. Both continue where they were stopped,
unless the product has changed. Each launch runs in a process of its own.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from digest_items import HERE, TESTS, LeftOutError, Ran, items, make_programs
from ptx_places import PLACE

from consan.reports.model import Finding, Report

ROOT = TESTS.parent
STORED = HERE / "digests.jsonl"
WORK = TESTS / "actual" / "digests.jsonl"

Row = dict[str, Any]


@functools.cache
def _items(programs: int) -> dict[str, Callable[[], Ran]]:
    """Made once, before processes are forked."""
    return dict(items(programs))


# -- One launch ----------------------------------------------------------------------------------------------------------------------


def row_of(name: str, ptx: str, report: Report) -> Row:
    """The line of an item."""
    found = sorted({_line_of(finding) for finding in report.findings})
    head = {"name": name, "ptx": _hash(PLACE.sub("", ptx)), "verdict": report.verdict, "checked": sorted(report.checked)}
    return {**head, "findings": found}


def _line_of(finding: Finding) -> str:
    """A finding as one line, the situation last."""
    places = [access.ptx_line for access in finding.pair] or [waiter.get("ptx_line") or 0 for waiter in finding.waiters]
    lines = "-".join(map(str, sorted(places)))
    return f"{finding.kernel} {finding.kind} {finding.severity} {lines or 'nowhere'} {finding.situation or 'no-situation'}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _run(job: tuple[str, int]) -> Row:
    """Run the item of a name; what stops it is its verdict."""
    name, programs = job
    try:
        return row_of(name, *_items(programs)[name]())
    except LeftOutError as why:
        return {"name": name, "left": str(why)}
    except Exception as error:  # a crash is a difference to be told, not the end of all others
        return {"name": name, "ptx": "", "verdict": f"{type(error).__name__}: {str(error).splitlines()[:1]}", "findings": []}


# -- All of them ---------------------------------------------------------------------------------------------------------------------


def run_all(file: Path, args: argparse.Namespace) -> dict[str, Row]:
    """Run what `file` has not yet, and sort it in the end."""
    head = {"code": _code(), "python": sys.version.split()[0]}
    rows = _known(file, head)
    wanted = [name for name in _items(args.programs) if name.startswith(tuple(args.only))]
    if not rows:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(head) + "\n")
    with file.open("a") as out:
        for row in _in_parallel([(name, args.programs) for name in wanted if name not in rows], args.jobs):
            rows[row["name"]] = row
            print(json.dumps(row), file=out, flush=True)
            _show(len(rows), len(wanted))
    file.write_text("".join(json.dumps(line) + "\n" for line in (head, *(rows[name] for name in sorted(rows)))))
    return {name: rows[name] for name in wanted}


def _in_parallel(jobs: list[tuple[str, int]], count: int) -> Iterator[Row]:
    with multiprocessing.get_context("fork").Pool(count, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(_run, jobs)


def _show(done: int, of: int) -> None:
    if done % 20 == 0 or done == of:
        print(f"{done} of {of}", file=sys.stderr, flush=True)


def _known(file: Path, head: Row) -> dict[str, Row]:
    """What was run before with the same code."""
    lines = file.read_text().splitlines() if file.exists() else []
    if not lines or json.loads(lines[0]) != head:
        return {}
    return {row["name"]: row for row in map(_whole, lines[1:]) if row}


def _whole(line: str) -> Row:
    """A line; nothing for one that was not written to its end."""
    try:
        return dict(json.loads(line))
    except ValueError:
        return {}


def _code() -> str:
    """A hash of the product."""
    files = (path for folder in ("consan", "instrument", "reports") for path in (ROOT / folder).rglob("*"))
    kept = sorted(path for path in files if path.suffix in (".py", ".cuh", ".cu", ".hpp", ".cpp", ".h", ".c") and path.is_file())
    return _hash("\0".join(f"{path.relative_to(ROOT)}\0{path.read_text()}" for path in kept))


# -- Before and after ----------------------------------------------------------------------------------------------------------------


def differences(before: Row | None, after: Row) -> Iterator[str]:
    """What differs between two rows of one item, in words."""
    if before is None:
        yield "not stored"
    elif "left" in before or "left" in after:
        if ("left" in before) != ("left" in after):
            yield f"could not be run {'before' if 'left' in before else 'after'}: {before.get('left') or after.get('left')}"
    else:
        found = [f"verdict {before['verdict']} -> {after['verdict']}"] if before["verdict"] != after["verdict"] else []
        if before.get("checked", after.get("checked")) != after.get("checked"):
            found.append(f"checked {', '.join(before['checked'])} -> {', '.join(after['checked'])}")
        found += _of_findings(before["findings"], after["findings"])
        yield from (f"{line} (another program)" if other_program(before, after) else line for line in found)


def other_program(before: Row | None, after: Row) -> bool:
    """Whether the PTX differs, if by places of the source only: lines of a header have moved, say."""
    return before is not None and bool(before.get("ptx") and after.get("ptx")) and before["ptx"] != after["ptx"]


def _of_findings(before: Iterable[str], after: Iterable[str]) -> Iterator[str]:
    old, new = set(before) - set(after), set(after) - set(before)
    situations: dict[str, str] = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in new}
    for line in sorted(old):
        rest, _, situation = line.rpartition(" ")
        if rest in situations:
            yield f"situation {situation} -> {situations[rest]}: {rest}"
            new.discard(f"{rest} {situations[rest]}")
        else:
            yield f"gone: {line}"
    yield from (f"new: {line}" for line in sorted(new))


def compare(args: argparse.Namespace) -> int:
    """Run all, and print each difference."""
    before = {row["name"]: row for row in map(_whole, args.file.read_text().splitlines()[1:]) if row}
    after = run_all(args.work, args)
    found = [(name, list(differences(before.get(name), row))) for name, row in after.items()]
    wrong = [f"{name}: {line}" for name, lines in found for line in lines]
    left = sum("left" in row for row in after.values())
    print("\n".join(wrong) or "no difference")
    others = sum(other_program(before.get(name), row) for name, row in after.items())
    print(f"{len(after) - left} launches compared, {left} left out, {sum(bool(lines) for _, lines in found)} differ; other PTX: {others}")
    return int(bool(wrong))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("store", "compare", "programs"))
    parser.add_argument("--programs", type=int, default=2000, help="how many of the random programs; default: all 2,000")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes; default: one a core")
    parser.add_argument("--only", action="append", default=[], metavar="PREFIX", help="only items whose names begin so, as in `twin/`")
    parser.add_argument("--file", type=Path, default=STORED, help="the stored digests")
    parser.add_argument("--work", type=Path, default=WORK, help="where `compare` keeps what it has run")
    args = parser.parse_args()
    args.only = args.only or [""]
    if args.action == "programs":
        make_programs(args.programs)
        return 0
    return compare(args) if args.action == "compare" else (run_all(args.file, args) and 0)


if __name__ == "__main__":
    sys.exit(main())
