"""Make the corpus by hand: `PYTHONPATH=tests python -m corpus --out FOLDER [PATTERN]`, or list it with `--list`."""

from __future__ import annotations

import argparse
import fnmatch
from pathlib import Path

from consan._errors import ConsanError

from .make import Entry, entries


def main() -> None:
    """Make every entry that matches, into a folder or only into the cache."""
    parser = argparse.ArgumentParser(description="Make the corpus of real PTX.")
    parser.add_argument("pattern", nargs="?", default="*", help="entries to make, e.g. 'triton/*'")
    parser.add_argument("--out", type=Path, help="folder to write the files to")
    parser.add_argument("--list", action="store_true", help="name the entries and make none")
    arguments = parser.parse_args()
    for entry in entries():
        if fnmatch.fnmatch(entry.name, arguments.pattern):
            print(entry.name, _listed(entry) if arguments.list else _describe(entry, arguments.out), flush=True)


def _listed(entry: Entry) -> str:
    return f"({entry.producer}, {entry.arch})" + (f" not here: {entry.skip}" if entry.skip else "")


def _describe(entry: Entry, out: Path | None) -> str:
    if entry.skip is not None:
        return f"skipped: {entry.skip}"
    try:
        ptx = entry.make()
    except ConsanError as error:
        return f"FAILED: {error}"
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / (entry.name.replace("/", "-") + ".ptx")).write_text(ptx)
    return f"{ptx.count(chr(10))} lines"


main()
