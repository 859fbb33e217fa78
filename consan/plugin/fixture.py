"""The fixture `consan`: sanitized launches with or without `--consan`, on the device and with the seed of the pytest run.

`check()` and `launch()` return the report, and the test judges it. `assert_clean` fails the test unless the verdict is
`clean`. The project's suppressions and the test's markers apply to all three.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from consan import api
from consan.plugin.keys import LEDGER, WATCH
from consan.plugin.ledger import open_ledger
from consan.plugin.settings import settings_of
from consan.plugin.watch import NotCleanError, WatchedTest, failure_of, headline
from consan.reports.model import Report

Source = api.Kernel | str | os.PathLike[str]


class Consan:
    """The value of the fixture."""

    Kernel = api.Kernel
    Stream = api.Stream
    TensorMap = api.TensorMap

    def __init__(self, watch: WatchedTest) -> None:
        self._watch = watch

    @contextlib.contextmanager
    def check(self, **options: Any) -> Iterator[api.LiveReport]:
        """Sanitize every kernel launched inside the block, through any adapter. The report is complete when the block ends."""
        with api.check(**{**self._watch.settings.keywords, **options}) as live:
            yield live
        live.become(self._watch.saw(live.report))

    def launch(self, kernel: Source, grid: api.Shape, block: api.Shape, args: Sequence[Any] = (), **options: Any) -> Report:
        """Launch once and return the report, as `consan.launch`."""
        made = kernel if isinstance(kernel, api.Kernel) else api.Kernel(os.fspath(kernel))
        return self._watch.saw(api.launch(made, grid, block, args, **{**self._watch.settings.keywords, **options}))

    def assert_clean(
        self,
        kernel: Source | Callable[..., Any],
        grid: api.Shape,
        block: api.Shape,
        args: Sequence[Any] = (),
        *,
        allow_incomplete: bool = False,
        **options: Any,
    ) -> Report:
        """Launch, and fail the test unless the verdict is `clean`.

        `kernel` is a `consan.Kernel`, a path, source text, or a callable like CuPy's kernels: kernel(grid, block, args).
        """
        __tracebackhide__ = True
        with self._asserting():
            report = self._report(kernel, grid, block, args, **options)
        self._watch.asserted.append(report)
        settings = self._watch.settings
        failure = failure_of(report, strict=settings.strict, gaps=not (allow_incomplete or settings.allow_incomplete))
        if failure is not None:
            raise NotCleanError(headline(report), failure, report)
        return report

    def _report(
        self, kernel: Source | Callable[..., Any], grid: api.Shape, block: api.Shape, args: Sequence[Any], **options: Any
    ) -> Report:
        if isinstance(kernel, (api.Kernel, str, os.PathLike)):
            return self.launch(kernel, grid, block, args, **options)
        with self.check(**options) as live:
            kernel(grid, block, args)
        return live.report

    @contextlib.contextmanager
    def _asserting(self) -> Iterator[None]:
        """The report counts in the run's report, and not as one that the test judges."""
        self._watch.asserting = True
        try:
            yield
        finally:
            self._watch.asserting = False


def for_test(item: pytest.Item) -> Consan:
    """The fixture for a test. The test is watched from now on."""
    if WATCH not in item.stash:
        item.stash[WATCH] = WatchedTest(item, settings_of(item.config))
    if LEDGER not in item.config.stash:
        open_ledger(item.config)
    return Consan(item.stash[WATCH])
