"""Holds the PTX of the shadow runtime before and after a change of its source: functions may move, their code may not change.

    python tests/quality/runtime_ptx.py dump BEFORE.json [--few]      in a checkout of the old commit
    python tests/quality/runtime_ptx.py dump AFTER.json [--few]       in the new one
    python tests/quality/runtime_ptx.py compare BEFORE.json AFTER.json

A dump holds a digest of each hook of each variant, with all that it calls. Names of other functions do not count, nor do labels numbered by
function: their numbers follow the order in the file. `--few` leaves out variants that differ from others in the number of named barriers or
CTAs only.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from consan.instrument.abi.variant import Variant, reachable
from consan.instrument.runtime import load
from consan.session.modules.runtime import compile_runtime

# What follows from the order of functions in the file, or from the file's hash.
_ORDER = re.compile(r"(\$L__BB)\d+(?=_)|(_INTERNAL_)\w+?_runtime_cu_[0-9a-f]{8}|(// callseq) .*|(__local_depot)\d+")
_NAME = re.compile(r"[\w$]+")
_HOOK = "__consan_"
_TARGET = "sm_90a"


def variants(few: bool) -> Iterator[Variant]:
    """Every variant that a module can ask for; with `few` one of each kind."""
    kept = {"granule": (1, 4), "cluster": (0, 2), "named": (0, 4)}
    for variant in reachable():
        if not few or not variant.engine or all(getattr(variant, field) in values for field, values in kept.items()):
            yield variant


def digests(variant: Variant) -> dict[str, str]:
    """A digest of each hook."""
    library = load(variant, _TARGET, compile_runtime)

    @functools.cache
    def digest(name: str) -> str:
        names = {each: digest(each) for each in library.callees[name]} | {name: name if name.startswith(_HOOK) else "self"}
        text = _ORDER.sub(lambda found: found[found.lastindex or 0], library.functions[name])
        text = _NAME.sub(lambda found: names.get(found[0], found[0].replace(name, names[name])), text)
        return hashlib.sha256(text.encode()).hexdigest()

    return {name: digest(name) for name in library.functions if name.startswith(_HOOK)}


def dump(file: str, few: bool) -> int:
    """Write the digests of all variants."""
    found = {json.dumps(variant.defines(), sort_keys=True): digests(variant) for variant in variants(few)}
    Path(file).write_text(json.dumps(found, indent=1))
    return 0


def compare(before: str, after: str) -> int:
    """Print each hook that differs; the status is 1 if there is one."""
    old, new = (json.loads(Path(file).read_text()) for file in (before, after))
    different = [f"{variant}: variant" for variant in sorted(old.keys() ^ new.keys())]
    for variant in sorted(old.keys() & new.keys()):
        names = sorted(old[variant].keys() | new[variant].keys())
        different += [f"{variant}: {name}" for name in names if old[variant].get(name) != new[variant].get(name)]
    print("\n".join(different) or f"{len(old)} variants, {sum(map(len, old.values()))} hooks: the same")
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
