"""`with consan.triton.cpu():` runs Triton kernels on the virtual machine, sanitized (tutorials/guide/python.md).

The same as `consan.check(device="cpu")`, with a choice of architecture. Inside the block every launch of a `@triton.jit` or Gluon kernel
takes NumPy arrays or torch tensors on the CPU. Importing this module does not import Triton.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from consan._errors import EnvironmentFailure
from consan.adapters.triton import versions
from consan.api import LiveReport, check


@contextlib.contextmanager
def cpu(*, arch: str = "sm_90", seed: int = 0, policy: str = "default", **options: Any) -> Iterator[LiveReport]:
    """Launch Triton kernels without a GPU. `as report` gives the block's report, which is complete when the block ends.

    `arch`: what Triton compiles for, "sm_80", "sm_90" or "sm_100". `seed`, `policy`, `options`: as in `consan.check`.

    Raises `EnvironmentFailure` if Triton is not installed, and `UsageError` for an unknown option or value.
    """
    if not versions.installed():
        raise EnvironmentFailure("Triton is not installed; install it with: pip install 'triton>=3.6,<3.10'")
    with check(device="cpu", seed=seed, policy=policy, triton_arch=arch, **options) as report:
        yield report
