"""CUTLASS kernels for sm_80 and sm_90, launched as CUTLASS's own host code does it (`tests/corpus/host.py`); all are labelled clean.

Those for sm_90 are the cases of `tests/real`, where their faults are listed too: a report about one of them counts as a false positive here
only because the label says clean. Not judged by the oracle, which is slow at this size; the results are compared with NumPy's instead.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from suite_model import CLEAN, Case, Outcome

from consan._errors import ConsanError
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "real"))

import corpus
import hopper_cases
import real_cases
from real_run import run_checked

AMPERE = ("two_stages", "three_stages", "five_stages", "shared_k", "simt_two_stages", "simt_four_stages")
# M, N, K: K ends with a part of a step, and N with whole tiles or with a part of one.
SIZES = {"whole tiles": (128, 64, 144), "part of a tile": (128, 80, 144)}


def _ampere(name: str, sizes: real_cases.Dim3) -> real_cases.Case:
    """A product that `gemm_sm80.cu` computes."""

    def make(size: real_cases.Size, rng: np.random.Generator) -> real_cases.Launch:
        number = hopper_cases.FLOAT if "simt" in name else hopper_cases.HALF
        p = hopper_cases.product(rng, sizes, number, number)

        @functools.cache
        def recorded(*addresses: int) -> corpus.Recorded:
            a, b, c = addresses
            return corpus.cutlass_launch(name, sizes, (a, b, c), 1, lambda address, said: b"")

        shape = recorded(1 << 20, 1 << 30, 1 << 40)
        arguments = [real_cases.Built((p.a, p.b, p.c), lambda *at, i=i: recorded(*at).arguments[i]) for i in range(len(shape.arguments))]
        return real_cases.Launch(shape.grid, shape.block, arguments, p.check, shape.shared, entry=shape.entry)

    return real_cases.Case(name, make)


def kernels() -> Iterator[tuple[real_cases.Case, str, str]]:
    """Each with its architecture and what is said of its size."""
    for name in AMPERE:
        for size, sizes in SIZES.items():
            yield _ampere(f"cutlass/gemm_{name}", sizes), "sm_80", f", {size}"
    for case in (*hopper_cases.HOPPER_CASES, *hopper_cases.CLUSTER_CASES):
        if case.name.startswith("cutlass/"):
            yield case, hopper_cases.ARCH, ""


def judge_all(only: str = "") -> Iterator[Outcome]:
    """All of them that this machine can make; those whose results are wrong are said to have failed."""
    for kernel, arch, size in kernels():
        name = kernel.name.removeprefix("cutlass/") + size
        label = Case(f"CUTLASS, {arch.removesuffix('a')}", name, "", "", 1, 1, (), CLEAN, arch=arch)
        if only in f"{label.group} {label.name}":
            yield _judge(label, kernel, arch)


def _judge(label: Case, kernel: real_cases.Case, arch: str) -> Outcome:
    outcome, start = Outcome(label), time.monotonic()
    try:
        entry = corpus.get(f"{kernel.name}/{arch}")
        if entry.skip:
            raise ConsanError(entry.skip)
        launch = kernel.launch("small", 0)
        outcome.add(run_checked(entry.make(), launch, Session(SessionOptions(device="cpu", engine="inline")))[1])
        if kernel.name not in hopper_cases.RACY:
            launch.check()
    except (ConsanError, AssertionError) as error:
        outcome.verdict, outcome.why = "failed", str(error).strip().splitlines()[0]
    outcome.seconds = time.monotonic() - start
    return outcome
