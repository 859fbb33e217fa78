"""Triton's kernels in an audited module: compiled by Triton for a chip, launched on the machine (consan/adapters/triton/virtual.py).

Each launch has a report of its own. Races between launches of several streams are not looked for.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from consan.adapters.base import Patches
from consan.adapters.triton.virtual import TritonVirtual
from consan.audit.child.checked import CheckedLaunch, CheckedLaunches
from consan.audit.launch_file import LaunchSize
from consan.session.session import Session
from consan.suppressions import finish


class TritonSession(Session):
    """A session that hands each launch on when it has ended."""

    def __init__(self, checked: CheckedLaunches) -> None:
        super().__init__(checked.options, on=checked.device)
        checked.prepare(self)
        self._checked = checked

    def launch(self, prepared: Any, entry: str, grid: Any, block: Any, args: Any, **how: Any) -> bool:
        """As a session's."""
        started = time.monotonic()
        self.address_name, made = how["address_name"], list[bool]()

        def launch(session: Session) -> None:
            made.append(Session.launch(session, prepared, entry, grid, block, args, **how))

        answers = self._checked.answers(self, launch, entry, args)
        report = self.take()
        if report is not None:
            size = LaunchSize(grid, block, how.get("shared", 0), how.get("cluster", (1, 1, 1)))
            self._checked.launched(CheckedLaunch(entry, size, finish(report), time.monotonic() - started, answers=answers))
        return made[0]


@contextlib.contextmanager
def on_the_machine(work: Any) -> Iterator[None]:
    """Inside the block Triton and torch's device "cuda" are the machine."""
    session, adapter, patches = TritonSession(work.checked()), TritonVirtual(), Patches()
    adapter.install(session)
    if "torch" in sys.modules:
        claim_gpu(patches, sys.modules["torch"])
    try:
        yield
    finally:
        patches.undo()
        adapter.remove()


def claim_gpu(patches: Patches, torch: Any) -> None:
    """Let torch say that there is a GPU, and that tensors are on it."""
    patches.set(torch.cuda, "is_available", lambda: True)
    patches.set(torch.cuda, "device_count", lambda: 1)
    patches.set(torch.Tensor, "is_cuda", property(lambda tensor: True))
