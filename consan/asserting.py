"""`consan.assert_clean`: one launch whose verdict has to be `clean`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from consan.api import Kernel, Shape, launch
from consan.reports.model import CLEAN, INCOMPLETE, RacyKernelError, Report


def assert_clean(
    kernel: Kernel | str | os.PathLike[str],
    grid: Shape,
    block: Shape,
    args: Sequence[Any] = (),
    *,
    allow_incomplete: bool = False,
    **options: Any,
) -> Report:
    """Launch once, as `consan.launch`, and return the report if its verdict is `clean`.

    `kernel`: a `Kernel`, a path, or source text. `grid`, `block`, `args`, `options`: as in `launch`. `allow_incomplete`: accept
    `incomplete`, too.

    Raises `RacyKernelError`, whose text is the report, for another verdict, and `UsageError` for bad arguments.
    """
    made = kernel if isinstance(kernel, Kernel) else Kernel(os.fspath(kernel))
    report = launch(made, grid, block, args, **options)
    if report.verdict not in ((CLEAN, INCOMPLETE) if allow_incomplete else (CLEAN,)):
        raise RacyKernelError(report)
    return report
