"""Lists the kernels of the tests and of the corpus that are not recorded, and why: they are `incomplete`.

    PYTHONPATH=tests:tests/kernels python tests/quality/refusals.py [PATTERN ...] [--global]

tests/record/recorded.txt holds the same of the twins, which a test compares. A pattern is of names such as `twins/raw`, `corpus/triton/*`;
with none, all are listed. CONSAN_CORPUS_PYTHON names an interpreter with
frameworks that this one lacks. `--global`: races in global memory are looked for, as `--global on` does.
"""

from __future__ import annotations

import argparse
import fnmatch
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import corpus
import twin_file

from consan._errors import ConsanError
from consan.instrument.record import record

KERNELS = Path(__file__).parents[1] / "kernels"
Source = tuple[str, Callable[[], str], bool]  # a name, what makes its PTX, and whether the strict reading of the ISA is asked for


def sources() -> Iterator[Source]:
    """The kernels of tests/kernels, repaired, and those of the corpus that this machine can make."""
    for path in sorted(each for each in KERNELS.rglob("*.cu") if each.parent.name != "launches"):  # those have kernels of other names
        name = str(path.relative_to(KERNELS).with_suffix(""))
        yield name, lambda path=path: twin_file.kernel(path, False).ptx, twin_file.read(path).policy == "isa"
    for entry in corpus.available():
        yield f"corpus/{entry.name}", entry.make, False


def reason(source: Source, global_races: bool) -> str:
    """Why a module is not recorded; empty if it is."""
    name, make, isa = source
    try:
        return record(make(), name, global_races=global_races, isa=isa).refusal
    except ConsanError as error:
        return f"not made: {str(error).splitlines()[0]}"


def main() -> None:
    """Print the kernels by reason."""
    parser = argparse.ArgumentParser(description="Kernels that are not recorded, by reason.")
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--global", action="store_true", dest="outer")
    arguments = parser.parse_args()
    found, count = defaultdict[str, list[str]](list), 0
    for source in sources():
        if any(fnmatch.fnmatch(source[0], pattern) for pattern in arguments.patterns):
            count += 1
            if why := reason(source, arguments.global_races):
                found[why].append(source[0])
    for why, names in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):4} {why}: {' '.join(names)}")
    print(f"{count - sum(map(len, found.values()))} of {count} are recorded")


if __name__ == "__main__":
    main()
