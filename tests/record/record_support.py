"""Runs kernels of tests/kernels with either engine, and says what they found."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import twin_file

import consan
from consan.instrument.record import Recorded, record

__all__ = ["KERNELS", "file_of", "found", "kernel", "launch", "recorded", "twin_file"]

KERNELS = Path(__file__).parents[1] / "kernels"
Found = set[tuple[str, str, frozenset[object], str]]


@functools.cache
def kernel(name: str, racy: bool = False) -> Any:
    """A kernel of tests/kernels by the name of its file."""
    return twin_file.kernel(file_of(name), racy)


def file_of(name: str) -> Path:
    """The file of a kernel."""
    return next(path for folder in ("twins", "clean") if (path := KERNELS / folder / f"{name}.cu").is_file())


def recorded(name: str, racy: bool = False) -> Recorded | None:
    """The module recorded without global memory; None where its threads synchronise through memory."""
    done = record(kernel(name, racy).ptx, name, isa=twin_file.read(file_of(name)).policy == "isa")
    return None if done.refusal or done.global_races else done


def launch(
    name: str, racy: bool, engine: str, seed: int = 0, device: str = "cpu", global_memory: str = "off"
) -> tuple[Any, dict[str, Any]]:
    """The report of a launch, and its arguments afterwards. Without global memory, where called hooks find nothing."""
    spec = twin_file.read(file_of(name))
    args = spec.fresh_args()
    options = {"smem": spec.smem, "device": device, "seed": seed, "policy": spec.policy, "engine": engine, "global_memory": global_memory}
    return consan.launch(kernel(name, racy), spec.grid, spec.block, spec.parameters(args), **options), args


def found(report: Any) -> Found:
    """The same findings of two engines: kernel, kind, unordered pair of places, severity. Copies of an unrolled loop are one place."""
    return {(one.kernel, one.kind, frozenset(map(_place, one.pair)), one.severity) for one in report.findings}


def _place(access: Any) -> object:
    return (access.file, access.line, access.column) if access.line else access.ptx_line
