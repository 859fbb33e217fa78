"""Replaces what Triton programs do around their kernels: tuning and timing.

Each function replaces one of Triton's and gets it as first argument. Triton's tuner times every configuration and keeps the fastest. Here
the first one that compiles and fits runs; the tuner might choose another. The report says which one ran.
Benchmarks do not run on the virtual machine, since their times would mean nothing; `--skip-benchmarks` skips them on a GPU, too.

Not handled: `cache_results` of the tuner (its file of timings is neither read nor written).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from consan.adapters.base import SessionLike

Original = Callable[..., Any]
_NAN = float("nan")


def first_that_fits(session: SessionLike, original: Original, tuner: Any, *args: Any, **kwargs: Any) -> Any:
    """`Autotuner.run` with one configuration."""
    configs = tuner.configs
    if len(configs) == 1:
        return original(tuner, *args, **kwargs)
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    chosen = list(tuner.prune_configs(kwargs))
    try:
        result, config = _first(original, tuner, chosen, args, kwargs)
    finally:
        tuner.configs = configs
    session.note(f"{tuner.base_fn.__name__} is autotuned: it ran with one of {len(configs)} configurations ({config})")
    return result


def _first(original: Original, tuner: Any, configs: Sequence[Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    misfits = _misfits()
    for index, config in enumerate(configs):
        tuner.configs = [config]
        try:
            return original(tuner, *args, **kwargs), config
        except misfits:
            if index + 1 == len(configs):
                raise
    raise AssertionError("a tuner has at least one configuration")


def _misfits() -> tuple[type[Exception], ...]:
    """The errors by which Triton's tuner rejects a configuration."""
    names = {"triton.runtime.errors": ("OutOfResources", "PTXASError"), "triton.compiler.errors": ("CompileTimeAssertionFailure",)}
    return tuple(getattr(importlib.import_module(module), name) for module, each in names.items() for name in each)


def run_once(session: SessionLike, original: Original, fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
    """Replaces `do_bench`: one call, and NaN in the requested form."""
    fn()
    session.note(f"do_bench called its function once and gave NaN: {_why(session)}")
    quantiles = kwargs.get("quantiles")
    if quantiles is not None:
        return [_NAN] * len(quantiles) if len(quantiles) != 1 else _NAN
    return [_NAN] if kwargs.get("return_mode") == "all" else _NAN


def skip_report(session: SessionLike, original: Original, mark: Any, *args: Any, **kwargs: Any) -> None:
    """Replaces `triton.testing.Mark.run`, the benchmarks of `perf_report`."""
    benchmarks = mark.benchmarks if isinstance(mark.benchmarks, Sequence) else [mark.benchmarks]
    names = ", ".join(str(getattr(each, "plot_name", "")) for each in benchmarks)
    session.note(f"benchmark skipped: {names} ({_why(session)})")


def _why(session: SessionLike) -> str:
    return "times of the virtual machine mean nothing" if session.backend.simulates else "--skip-benchmarks"
