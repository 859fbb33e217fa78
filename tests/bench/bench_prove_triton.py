"""How many launches of Triton's own tests `consan prove` proves: a JSON object for each kernel, then the sums.

    PYTHONPATH=tests/bench python tests/bench/bench_prove_triton.py PATH/python/test/unit/language/test_core.py [-k WORDS]

The tests are Triton's, of the version that is installed, fetched by whoever runs this; some variants of each, evenly spaced. Each launch is
compiled for sm_90 as for a real chip and not run: a test that compares results fails, and what it would launch behind that is left out.
A kernel is proven for every grid; where it is not, for every grid with the integers of the launch, or else for its grid, too. `one CTA`: it
reads no number of a CTA, so all CTAs of a larger grid would do the same. Needs Triton, torch, z3. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import inspect
import io
import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pytest
from triton_sanitizer import Yardstick, noted, run

import consan.triton
from consan.__main__ import main as consan_main

ANSWERS: Final = ("every grid", "these integers", "one CTA", "this grid", "counterexample", "unknown", "failed")


class Launches(Yardstick):
    """A plugin of pytest that proves what some variants of each test launch."""

    def __init__(self, variants: int, within: float, share: tuple[int, int]) -> None:
        super().__init__(lambda: consan.triton.cpu(arch="sm_90"))
        self._variants, self._within, self._share = variants, within, share
        self._answers: dict[tuple[str, tuple[int, ...]], dict[str, Any]] = {}
        self.launches = list[dict[str, Any]]()
        self.tests = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep some variants of each test."""
        kept = []
        for _, group in itertools.groupby(items, key=lambda item: item.name.partition("[")[0]):
            variants = list(group)
            count = min(self._variants, len(variants))
            kept += [variants[number * len(variants) // count] for number in range(count)]
        first, step = self._share
        items[:] = kept[first::step]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        """Compile what the test launches."""
        arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
        kernels: list[tuple[str, tuple[int, ...], str]] = []
        with self._session(), _compiled(kernels), noted([]), contextlib.suppress(pytest.skip.Exception):
            pyfuncitem.obj(**arguments)
        self.tests += bool(kernels)
        for ptx, grid, integers in kernels:
            key = hashlib.sha256(_code(ptx).encode()).hexdigest(), grid
            if key not in self._answers:
                self._answers[key] = _proven(ptx, grid, integers, self._within)
                print(json.dumps({"test": pyfuncitem.name, "grid": grid, **self._answers[key]}), flush=True)
            self.launches.append(self._answers[key])
        return True


def _code(ptx: str) -> str:
    """A kernel without places in its source."""
    return "\n".join(line for line in ptx.partition(".section")[0].splitlines() if ".loc" not in line and "//" not in line)


@contextlib.contextmanager
def _compiled(kernels: list[tuple[str, tuple[int, ...], str]]) -> Iterator[None]:
    """Inside, a launch compiles its kernel, which is kept, with the grid."""
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def compiles(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = original(self, *args, grid=grid, warmup=True, **options)
        if not warmup and kernel is not None:
            extents = grid(dict(zip(self.arg_names, args, strict=False)) | options) if callable(grid) else grid
            x, y, z = (*map(int, extents), 1, 1)[:3]
            integers = _integers(kernel, dict(zip(self.arg_names, args, strict=False)) | options)
            kernels.append((kernel.asm["ptx"], (x * kernel.metadata.num_ctas, y, z), integers))  # Triton counts clusters
        return kernel

    with mock.patch.object(JITFunction, "run", compiles):
        yield


def _integers(kernel: Any, given: dict[str, Any]) -> str:
    """The integers of a launch, as an assumption: those arguments that are parameters of the PTX."""
    names = [name for name, kind in kernel.src.signature.items() if kind != "constexpr"]
    values = [(place, given.get(name)) for place, name in enumerate(names)]
    whole = [(place, int(each)) for place, each in values if isinstance(each, int)]
    return " and ".join(f"{kernel.metadata.name}_param_{place} == {each}" for place, each in whole)


def _proven(ptx: str, grid: tuple[int, ...], integers: str, within: float) -> dict[str, Any]:
    """The answer, what is lacking, and the seconds."""
    began = time.process_time()
    assumed = " and ".join(f"gridDim.{axis} == {extent}" for axis, extent in zip("xyz", grid, strict=True))
    answer, why = _prove(ptx, within)
    if answer == "proven":
        answer = "every grid"
    else:
        of_launch = ("--assume", integers) if integers else ()
        answer, why = _prove(ptx, within, *of_launch) if integers else (answer, why)
        if answer == "proven":
            answer = "these integers"
        else:
            answer, why = _prove(ptx, within, *of_launch, "--assume", assumed)
            alone = "one CTA" if "%ctaid" not in ptx and set(grid) == {1} else "this grid"
            answer = alone if answer == "proven" else answer
    return {"answer": answer, "why": why, "seconds": round(time.process_time() - began, 2)}


def _prove(ptx: str, within: float, *words: str) -> tuple[str, list[str]]:
    out, err = io.StringIO(), io.StringIO()
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        file.write(ptx)
        file.flush()
        consan_main(["prove", file.name, "--within", str(within), "--format", "json", *words])
    try:
        page = json.loads(out.getvalue())
    except json.JSONDecodeError:
        return "failed", [" ".join(err.getvalue().split()[:40])]
    why = [each["why"] for each in page["reasons"]]
    return page["answer"], why[:3]


def main() -> None:
    """Print a line for each kernel, and the sums."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("-k", dest="words", default="")
    parser.add_argument("--variants", type=int, default=2, help="of each test")
    parser.add_argument("--within", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--share", default="0/1", metavar="K/N", help="only every Nth of these variants, from number K on")
    options = parser.parse_args()
    first, step = map(int, options.share.split("/"))
    plugin = Launches(options.variants, options.within, (first, step))
    run(options.file, plugin, options.words)
    counts = collections.Counter(each["answer"] for each in plugin.launches)
    print(f"{plugin.tests} variants, {len(plugin.launches)} launches:", {each: counts[each] for each in ANSWERS})


if __name__ == "__main__":
    main()
