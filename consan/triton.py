"""`with consan.triton.cpu():` - Triton kernels on the virtual machine, sanitized (DESIGN 2.3).

The same as `consan.check(device="cpu")`, with the choice of an architecture; every launch of a `@triton.jit` or Gluon kernel inside takes
NumPy arrays or torch tensors on the CPU. Importing this module imports no Triton.
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
    """Launch Triton kernels without a GPU; what it gives is the report of the block after it. `arch`: sm_80 or sm_90."""
    if not versions.installed():
        raise EnvironmentFailure("Triton is not installed; install it with: pip install 'triton>=3.6,<3.10'")
    with check(device="cpu", seed=seed, policy=policy, triton_arch=arch, **options) as report:
        yield report
