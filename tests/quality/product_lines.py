"""Counts the lines of the product at two commits, by folder: without blank lines and comment-only lines.

python tests/quality/product_lines.py BEFORE [AFTER]
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

SUFFIXES = (".py", ".cuh", ".cu")
PRODUCT = ("consan", "instrument", "reports")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def count(commit: str) -> Counter[str]:
    """Lines of each folder of a commit, two levels deep."""
    found: Counter[str] = Counter()
    for name in _git("ls-tree", "-r", "--name-only", commit, *PRODUCT).splitlines():
        if name.endswith(SUFFIXES):
            comment = "#" if name.endswith(".py") else "//"
            lines = map(str.strip, _git("show", f"{commit}:{name}").splitlines())
            found["/".join(name.split("/")[:-1][:2])] += sum(bool(line) and not line.startswith(comment) for line in lines)
    return found


def main() -> int:
    """Print the table."""
    before, after = count(sys.argv[1]), count(sys.argv[2] if len(sys.argv) > 2 else "HEAD")
    for name in sorted(before | after):
        print(f"{name:24}{before[name]:8}{after[name]:8}{after[name] - before[name]:+8}")
    print(f"{'all':24}{before.total():8}{after.total():8}{after.total() - before.total():+8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
