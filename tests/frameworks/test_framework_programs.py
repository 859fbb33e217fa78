"""Unmodified programs of frameworks under `consan run --device cpu`: each once with one mistake in its synchronisation, and once without.

A program makes its mistake with the word `racy`. It marks the line that is to be named with `# reader`; where the mistake is one of a
library of kernels, the table has the line of the library. `make test-frameworks` installs the frameworks in an environment of its own;
elsewhere a program is skipped where its framework is not installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "programs"
pytestmark = pytest.mark.timeout(1200)  # a framework compiles for a minute where other work runs beside


@dataclass(frozen=True)
class FrameworkProgram:
    """A program, what it needs, and what its mistake is called.

    `fix`: words of the framework in the report's fix; `memory`: what the report names.
    """

    file: str
    needs: str  # as they are installed
    kind: str
    fix: str
    memory: str = ""
    options: tuple[str, ...] = ()
    library: tuple[str, str] = ("", "# reader")  # a file of the package, and its line; without a file: of the program

    @property
    def path(self) -> Path:
        return PROGRAMS / self.file

    @property
    def reader(self) -> tuple[str, int]:
        """The file and the number of the line that is to be named."""
        file, wanted = self.library
        path = Path(str(metadata.distribution(self.needs.split()[0]).locate_file(file))) if file else self.path
        return path.name, next(number for number, line in enumerate(path.read_text().splitlines(), 1) if wanted in line)


CASES = [
    FrameworkProgram("numba_reverse.py", "numba-cuda", "data-race", "cuda.syncthreads()"),
    FrameworkProgram("numba_grid.py", "numba-cuda", "global-race", "cuda.cg.this_grid().sync()"),
    FrameworkProgram("numba_devices.py", "numba-cuda", "global-race", "event.wait(", options=("--gpus", "2")),
    FrameworkProgram(
        *("core_devices.py", "cuda-core", "global-race", "(second.wait(first.record()))"),
        options=("--gpus", "2"),
        library=("", "// reader"),
    ),
    FrameworkProgram("numba_mlir_reverse.py", "numba-cuda-mlir", "data-race", "cuda.syncthreads()"),
    FrameworkProgram("warp_sum.py", "warp-lang", "data-race", "one atomic operation (wp.atomic_add for a sum)"),
    FrameworkProgram("warp_grid.py", "warp-lang", "data-race", "one atomic operation (wp.atomic_add for a sum)"),
    FrameworkProgram("warp_graph.py", "warp-lang", "global-race", "(second.wait_stream(first))"),
    FrameworkProgram("warp_conditions.py", "warp-lang", "global-race", "(second.wait_stream(first))"),
    FrameworkProgram("tilelang_roles.py", "tilelang", "missing-wait", "T.barrier_wait with parity 0"),
    FrameworkProgram("tilelang_halves.py", "tilelang", "global-race", "T.sync_grid()"),
    FrameworkProgram("pallas_scale.py", "jax-cuda13-plugin", "missing-wait", "plgpu.wait_smem_to_gmem(0)"),
    FrameworkProgram("pallas_triton_rows.py", "jax-cuda13-plugin", "global-race", "give each CTA bytes of its own", "argument 2 (out)"),
    FrameworkProgram("cute_tensors.py", "nvidia-cutlass-dsl torch apache-tvm-ffi", "data-race", "cute.arch.sync_threads()", "tile["),
    FrameworkProgram("cute_experimental.py", "nvidia-cutlass-dsl torch", "data-race", "cute.arch.sync_threads()", "tile["),
    FrameworkProgram("cute_ahead.py", "nvidia-cutlass-dsl torch", "data-race", "cute.arch.sync_threads()", "shared["),
    FrameworkProgram("cute_counter.py", "nvidia-cutlass-dsl torch", "global-race", "cute.arch.fence_acq_rel_gpu()", "argument 1 (count)"),
    FrameworkProgram(
        *("quack_norm.py", "quack-kernels torch", "data-race", "cute.arch.sync_threads()", "of reduction_buffer"),
        library=("quack/reduce.py", "block_reduce_val = reduction_buffer["),
    ),
    FrameworkProgram(
        *("flash_forward.py", "flash-attn-4 quack-kernels torch", "missing-wait", "pipeline.consumer_wait()"),
        library=("flash_attn/cute/flash_fwd_sm90.py", "load_Q(tma_bar_ptr="),
    ),
    FrameworkProgram("helion_sums.py", "helion", "global-race", "for a sum: hl.atomic_add"),
]


def run(case: FrameworkProgram, folder: Path, *words: str, through: Sequence[str] = ()) -> tuple[int, dict[str, Any], str]:
    """Status, report, and what was printed. `through`: what is run, in place of the program's file."""
    missing = [package for package in case.needs.split() if not any(metadata.distributions(name=package))]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    command = [
        sys.executable,
        "-m",
        "consan",
        "run",
        "--device",
        "cpu",
        *case.options,
        "-o",
        str(folder / "report.json"),
        *(through or [str(case.path)]),
        *words,
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    printed = done.stdout + done.stderr
    assert (folder / "report.json").exists(), printed
    return done.returncode, json.loads((folder / "report.json").read_text()), printed


def places(found: dict[str, Any]) -> set[tuple[str, int]]:
    return {(Path(each["file"]).name, each["line"]) for each in found["accesses"]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_the_mistake_is_found_at_the_line_of_the_program(case: FrameworkProgram, tmp_path: Path) -> None:
    status, report, printed = run(case, tmp_path, "racy")
    assert (status, report["verdict"]) == (66, "violations"), printed
    assert case.memory in printed
    of_kind = [found for found in report["findings"] if found["kind"] == case.kind]
    assert [found for found in of_kind if case.fix in found["fix"] and case.reader in places(found)], of_kind


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_without_the_mistake_it_is_clean_also_when_caches_are_warm(case: FrameworkProgram, tmp_path: Path) -> None:
    for _ in range(2):
        status, report, printed = run(case, tmp_path)
        assert (status, report["verdict"]) == (0, "clean"), printed
        assert sum(each["launches"] for each in report["kernels"]) >= 1


AS_ON_A_GPU = """
import runpy, sys
from consan.native.python import frameworks
frameworks.prepare(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(("words", "verdict"), [((), "clean"), (("racy",), "violations")])
def test_what_numba_mlir_hands_over_where_the_interposer_is(words: tuple[str, ...], verdict: str, tmp_path: Path) -> None:
    """As on a GPU, where its programs run as those that are not Python: the driver gets PTX with lines."""
    case = next(each for each in CASES if each.needs == "numba-cuda-mlir")
    (tmp_path / "as_on_a_gpu.py").write_text(AS_ON_A_GPU)
    through = [sys.executable, str(tmp_path / "as_on_a_gpu.py"), str(tmp_path), str(case.path)]
    _, report, printed = run(case, tmp_path, *words, through=through)
    assert report["verdict"] == verdict, printed
    assert sum(each["launches"] for each in report["kernels"]) == 1
    assert all(case.reader in places(found) for found in report["findings"])


def test_products_of_jax_run_where_there_is_no_cublas(tmp_path: Path) -> None:
    """XLA makes kernels of them by Triton. For complex numbers it has cuBLAS alone: JAX's exception, and the program goes on."""
    case = FrameworkProgram("jax_products.py", "jax-cuda13-plugin", "", "")
    status, report, printed = run(case, tmp_path)
    assert (status, report["verdict"]) == (0, "clean"), printed
    assert "complex: JaxRuntimeError" in printed
    assert sum(each["launches"] for each in report["kernels"]) >= 2
