"""What the pytest plugin costs a run that does not use it: `python tests/bench/bench_plugin.py`.

Two figures, of fresh processes with their bytecode cached: the import of `consan.plugin` alone, in a process that has imported pytest
(median); and an empty pytest run with the plugin against the same run with `-p no:consan` (the least processor time of each, in turn).
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

RUNS = 21
AIM_MS = 30.0
IMPORT = "import pytest, time; t = time.perf_counter(); import consan.plugin; print(time.perf_counter() - t)"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environ |= {"PYTHONPYCACHEPREFIX": os.path.join(folder, "cache")}
        imported = statistics.median(_import(folder, environ) for _ in range(RUNS))
        pairs = [[_empty_run(folder, environ, words) for words in ((), ("-p", "no:consan"))] for _ in range(RUNS)]
    with_it, plain = (min(times) for times in zip(*pairs, strict=True))
    print(f"import of consan.plugin: {imported * 1000:.1f} ms (aim: under {AIM_MS:.0f} ms)")
    print(f"an empty pytest run: {plain * 1000:.0f} ms of processor time without the plugin, {(with_it - plain) * 1000:+.1f} ms with it")


def _import(folder: str, environ: dict[str, str]) -> float:
    done = subprocess.run([sys.executable, "-c", IMPORT], cwd=folder, env=environ, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _empty_run(folder: str, environ: dict[str, str], words: tuple[str, ...]) -> float:
    """Processor time of one run: on a busy machine wall time says nothing."""
    start = _children()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, folder]
    subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=False)
    return _children() - start


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
