"""Holds the PTX of the shadow runtime before and after a change of its source: functions may move, their code may not change.

    python tests/quality/runtime_ptx.py dump BEFORE.json [--few]      in a checkout of the old commit
    python tests/quality/runtime_ptx.py dump AFTER.json [--few]       in the new one
    python tests/quality/runtime_ptx.py compare BEFORE.json AFTER.json

A dump holds a digest of each function of each variant, with labels numbered by function taken out: their numbers follow the order in the
file. `--few` leaves out variants that differ from others in the number of named barriers or CTAs only.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from consan.instrument.runtime import Variant, load
from consan.session import compile_runtime

# What follows from the order of functions in the file, or from the file's hash.
_ORDER = re.compile(r"(\$L__BB)\d+(?=_)|(_INTERNAL_)\w+?_runtime_cu_[0-9a-f]{8}|(// callseq) .*|(__local_depot)\d+")
_TARGET = "sm_90a"


def variants(few: bool) -> Iterator[Variant]:
    """Every variant that a module can ask for (`choose_variant`); with `few` one of each kind."""
    for granule, partial, asynchronous in itertools.product((1, 2, 4), (False, True), (False, True)):
        yield Variant(granule=granule, partial=partial, asynchronous=asynchronous)
    clusters, names = ((0, 2), (0, 4)) if few else ((0, 2, 4, 8, 16), (0, 1, 2, 4, 8, 16))
    for granule, cluster, named, isa in itertools.product((1, 4) if few else (1, 2, 4), clusters, names, (False, True)):
        yield Variant(granule=granule, partial=True, asynchronous=True, flags=True, engine=True, cluster=cluster, named=named, isa=isa)


def digests(variant: Variant) -> dict[str, str]:
    """A digest of each function."""
    found = load(variant, _TARGET, compile_runtime).functions
    return {_plain(name): hashlib.sha256(_plain(text).encode()).hexdigest() for name, text in found.items()}


def _plain(text: str) -> str:
    return _ORDER.sub(lambda found: found[found.lastindex or 0], text)


def dump(file: str, few: bool) -> int:
    """Write the digests of all variants."""
    Path(file).write_text(json.dumps({json.dumps(variant.defines()): digests(variant) for variant in variants(few)}, indent=1))
    return 0


def compare(before: str, after: str) -> int:
    """Print each function that differs; the status is 1 if there is one."""
    old, new = (json.loads(Path(file).read_text()) for file in (before, after))
    different = [f"{variant}: variant" for variant in sorted(old.keys() ^ new.keys())]
    for variant in sorted(old.keys() & new.keys()):
        names = sorted(old[variant].keys() | new[variant].keys())
        different += [f"{variant}: {name}" for name in names if old[variant].get(name) != new[variant].get(name)]
    print("\n".join(different) or f"{len(old)} variants, {sum(map(len, old.values()))} functions: the same")
    return int(bool(different))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("dump", "compare"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--few", action="store_true")
    args = parser.parse_args()
    return dump(args.files[0], args.few) if args.action == "dump" else compare(*args.files)


if __name__ == "__main__":
    sys.exit(main())
