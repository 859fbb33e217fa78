"""Audits the files of AUDIT.md's findings again: lists them, and compares what `consan audit` says of them with what was read.

    python tests/suites/audit_compared.py list --sets SETS CUDA-L1 KernelBench-runs | xargs -d '\\n' consan audit -o again.json
    python tests/suites/audit_compared.py compare --sets SETS again.json

`list` names the files with a finding that are in SETS (public_audit.py has brought them), of these sets, or of all. `compare` prints a
line for each finding of a file that was audited: what is there now. Another line stands for each error that nobody has read. Its status
is 1 if a true finding lacks, a false one is an error, or an error is unread.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from public_audit import Finding, findings, read_results, unqualified

FOUND, LACKS, STILL, GONE, UNREAD = "found", "lacks", "still an error", "gone", "unread"
BAD = {LACKS, STILL, UNREAD}


def listed(judged: Iterable[Finding], sets: Path, names: Iterable[str] = ()) -> list[Path]:
    """The files of findings, each once."""
    wanted = set(names)
    paths = (sets / each.set / each.file for each in judged if not wanted or each.set in wanted)
    return [path for path in dict.fromkeys(paths) if path.is_file()]


def compared(results: Iterable[Mapping[str, Any]], sets: Path, judged: tuple[Finding, ...]) -> Iterator[tuple[str, str]]:
    """The state of each finding of these files, and a line that says so."""
    for result in results:
        of_set, *rest = PurePosixPath(os.path.relpath(result["file"], sets)).parts
        file = of_set, "/".join(rest)
        reported = [(row["kernel"], found) for row in result["rows"] for found in row["findings"]]
        for each in judged:
            if (each.set, each.file) == file:
                yield _of_finding(each, reported)
        for kernel, found in reported:
            place = (*file, unqualified(kernel))
            if found["severity"] == "error" and not any(each.speaks_of(place, found["kind"]) for each in judged):
                yield UNREAD, f"{' '.join(place)}: {found['kind']} at {_lines(found)}: {found['message']}"


def _of_finding(judged: Finding, reported: list[tuple[str, Mapping[str, Any]]]) -> tuple[str, str]:
    place = judged.set, judged.file, judged.kernel
    found = [each for kernel, each in reported if judged.speaks_of((judged.set, judged.file, unqualified(kernel)), each["kind"])]
    errors = any(each["severity"] == "error" for each in found)
    what = (STILL if errors else GONE) if judged.judgement == "false" else FOUND if found else LACKS if judged.judgement == "true" else GONE
    there = "; ".join(dict.fromkeys(f"{each['severity']} {each['kind']} at {_lines(each)}" for each in found)) or "nothing"
    return what, f"{' '.join(place)}: {judged.judgement} at {judged.lines}; now {there}"


def _lines(found: Mapping[str, Any]) -> str:
    return "/".join(map(str, found["lines"])) or "?"


def main() -> int:
    """Do what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("list", "compare"))
    parser.add_argument("given", nargs="*", help="names of sets, or what `consan audit` wrote")
    parser.add_argument("--sets", type=Path, required=True, metavar="FOLDER", help="where the sets are")
    options = parser.parse_intermixed_args()
    sets = options.sets.resolve()
    if options.what == "list":
        sys.stdout.write("".join(f"{path}\n" for path in listed(findings(), sets, options.given)))
        return 0
    said = list(compared(read_results(map(Path, options.given)), sets, findings()))
    sys.stdout.write("".join(f"{what}: {line}\n" for what, line in said))
    return int(any(what in BAD for what, _ in said))


if __name__ == "__main__":
    sys.exit(main())
