"""Compares what two installed versions of consan report of the same launches: verdicts, findings and JSON.

    python tests/quality/versions.py OLD_PYTHON NEW_PYTHON --work FOLDER [--old-tests FOLDER] [--only PREFIX ...] [--global off] [--jobs J]

Each interpreter has one version installed. Both launch the kernels of this checkout as digest_items.py does (`--only pair/`: those whose
names begin so); each stores the JSON of its reports under --work, a line a launch, and continues there where it was stopped. --old-tests:
the tests of the old version, where this checkout's helpers do not fit it. With --jobs 1 two processes run, one of each version.

Then each difference is printed with its class, and how many launches each class has. The status is 1 if verdicts or findings differ. What
a finding has is its kind, severity, hazard, lines of the PTX, and situation. The paths of what differs in the rest of the JSON are printed,
without what must differ: places of files, versions, times.
"""

from __future__ import annotations

import argparse
import collections
import functools
import hashlib
import inspect
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptx_places import PLACE

HERE = Path(__file__).resolve().parent
_UNLIKE = {"consan", "command", "sources", "argv", "file", "seconds", "cost", "notes", "recalled"}  # differs between any two runs

Row = dict[str, Any]
_LAUNCHES: dict[str, Any] = {}  # filled before processes are forked


# -- One version ---------------------------------------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> None:
    """Launch what this interpreter's version has not yet launched, and store the reports."""
    import digest_items

    sys.path[:0] = [str(args.helpers / name) for name in ("kernels", "real", "")]  # what reads kernels and starts sessions may be old
    _compile_once(args.store.parent.parent / "compiled")
    _set_global_memory(args.global_memory)
    done = rows_of(args.store)
    _LAUNCHES.update((name, one) for name, one in digest_items.items(0) if name.startswith(tuple(args.only)))
    with multiprocessing.get_context("fork").Pool(args.jobs, maxtasksperchild=1) as pool, args.store.open("a") as out:
        for row in pool.imap_unordered(_run, [name for name in _LAUNCHES if name not in done]):
            print(json.dumps(row), file=out, flush=True)


def _compile_once(folder: Path) -> None:
    """Each text is compiled by the version that needs it first, for both."""
    from consan.toolchain import nvrtc
    from consan.toolchain.cache import Cache, key

    compile_ptx, stored = nvrtc.compile_ptx, Cache(folder)

    def compiled(text: str, **options: Any) -> nvrtc.CompileResult:
        ptx = stored.fetch_text(key(text, repr(options)), lambda: compile_ptx(text, **options).ptx)
        return nvrtc.CompileResult(ptx, "")

    nvrtc.compile_ptx = compiled


def _set_global_memory(mode: str) -> None:
    """All launches look for races in global memory as --global says."""
    import consan

    limits: dict[str, Any] = {"global_memory": mode}
    if "explore" in inspect.signature(consan.launch).parameters:
        limits["explore"] = 0
    consan.launch = functools.partial(consan.launch, **limits)
    import real_run

    if not hasattr(real_run, "SessionOptions"):  # versions before had the options as arguments of the session
        session = real_run.Session
        real_run.SessionOptions, real_run.Session = dict, lambda options: session(**options)
    real_run.SessionOptions = functools.partial(real_run.SessionOptions, global_memory=mode)


def _run(name: str) -> Row:
    try:
        ptx, report = _LAUNCHES[name]()
        return {"name": name, "ptx": hashlib.sha256(PLACE.sub("", ptx).encode()).hexdigest(), "report": json.loads(report.to_json())}
    except Exception as error:  # one that a version cannot launch is no end of all others
        return {"name": name, "left": f"{type(error).__name__}: {error}"[:300]}


def rows_of(file: Path) -> dict[str, Row]:
    """The stored rows; a line that was not written to its end is left out."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {row["name"]: row for row in (json.loads(line) for line in lines if line.endswith("}"))}


# -- Two versions --------------------------------------------------------------------------------------------------------------------


def both(args: argparse.Namespace) -> int:
    """Run both interpreters, and compare what they have stored."""
    args.work.mkdir(parents=True, exist_ok=True)
    files = [args.work / f"{side}.jsonl" for side in ("old", "new")]
    tests = (args.old_tests, HERE.parent)
    shared = [f"--jobs={args.jobs}", f"--global={args.global_memory}", *(f"--only={prefix}" for prefix in args.only)]
    started = [
        subprocess.Popen([python, __file__, f"--store={file}", f"--helpers={folder}", *shared], env={**os.environ, "PYTHONPATH": ""})
        for python, file, folder in zip(args.pythons, files, tests, strict=True)
    ]
    ended = [process.wait() for process in started]
    if any(ended):
        return 2
    old, new = map(rows_of, files)
    return compare(old, new, [name for name in sorted(new) if name in old and name.startswith(tuple(args.only))])


def compare(old: dict[str, Row], new: dict[str, Row], names: list[str]) -> int:
    """Print what differs, and how often."""
    classes = collections.Counter[str]()
    paths = collections.Counter[str]()
    for name in names:
        found = set(differences(old[name], new[name]))
        print("".join(f"{name}: {kind}: {what}\n" for kind, what in sorted(found)), end="")
        classes.update({kind for kind, _ in found})
        if "report" in old[name] and "report" in new[name] and not found:
            paths.update(set(unlike(old[name]["report"], new[name]["report"])))
    for title, counts in (("class of difference", classes), ("JSON that differs where verdict and findings are equal", paths)):
        print(f"\n{title}: launches", *(f"{kind}: {count}" for kind, count in counts.most_common()), sep="\n  ")
    print(f"\n{len(names)} launches compared")
    return int(bool(set(classes) - {"left out"}))


def differences(old: Row, new: Row) -> Iterator[tuple[str, str]]:
    """What differs between the reports of one launch: class, and words."""
    if "left" in old or "left" in new:
        if ("left" in old) != ("left" in new):
            yield "left out", str(old.get("left") or new.get("left"))
        return
    program = "" if old["ptx"] == new["ptx"] else " (another program)"
    before, after = (row["report"] for row in (old, new))
    if before["verdict"] != after["verdict"]:
        yield f"verdict {before['verdict']} -> {after['verdict']}{program}", str(after.get("incomplete") or "")[:200]
    yield from _of_findings([_fields(one) for one in before["findings"]], [_fields(one) for one in after["findings"]], program)


Fields = tuple[str, ...]
_PARTS = ("kind", "severity", "hazard", "situation")


def _fields(finding: Row) -> Fields:
    """Lines of the PTX, then what _PARTS names."""
    lines = sorted(access["ptx_line"] or 0 for access in finding["accesses"][:2])
    waiters = sorted(waiter.get("ptx_line") or 0 for waiter in finding.get("waiters") or ())
    return ("-".join(map(str, waiters or lines)), *(str(finding.get(part)) for part in _PARTS))


def _of_findings(old: list[Fields], new: list[Fields], program: str) -> Iterator[tuple[str, str]]:
    """Findings of one side alone: paired where they have the same lines."""
    gone, come = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    for one in gone:
        other = next((each for each in come if each[0] == one[0]), None)
        if other is None:
            yield f"gone {one[1]} {one[2]}{program}", " ".join(one)
            continue
        come.remove(other)
        parts = [part for part, a, b in zip(_PARTS, one[1:], other[1:], strict=True) if a != b]
        yield f"another {', '.join(parts)}{program}", f"lines {one[0]}: {' '.join(one[1:])} -> {' '.join(other[1:])}"
    for one in come:
        yield f"new {one[1]} {one[2]}{program}", " ".join(one)


def unlike(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The paths of what differs in two JSON values; a list's items have one path."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key in _UNLIKE:
                continue
            if key in old and key in new:
                yield from unlike(old[key], new[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} ({'gone' if key in old else 'new'})"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for a, b in zip(old, new, strict=True):
            yield from unlike(a, b, f"{path}[]")
    elif old != new:
        yield path


def main() -> int:
    """The command; with --store, the part of one version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="the interpreter of the old version, and of the new one")
    parser.add_argument("--work", type=Path, help="where the reports are stored")
    parser.add_argument("--old-tests", type=Path, default=HERE.parent, help="the tests of the old version")
    parser.add_argument("--only", action="append", default=[], metavar="PREFIX", help="only launches whose names begin so")
    parser.add_argument("--global", dest="global_memory", default="auto", choices=("auto", "on", "off"), help="as `consan check --global`")
    parser.add_argument("--jobs", type=int, default=1, help="processes of each version; default: 1")
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--helpers", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.only = args.only or [""]
    if args.store:
        run(args)
        return 0
    if len(args.pythons) != 2 or not args.work:
        parser.error("two interpreters and --work are needed")
    return both(args)


if __name__ == "__main__":
    sys.exit(main())
