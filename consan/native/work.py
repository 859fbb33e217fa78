"""Work of consan's own in the streams of a process that obeys orders.

Orders for it are kept, and go together: `ClientBackend.settle` sends them before the program goes on. The arguments of a kernel lie in
pages that both processes map, and stay as they are for the next few kernels.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from consan.backends.driver import Driver
from consan.backends.work import CudaWork

if TYPE_CHECKING:
    from consan.native.remote import ClientBackend

_BLOCK, _VALUES = 128, 64  # bytes: numbers, then the pointers to them
_BLOCKS = mmap.PAGESIZE // _BLOCK


class RemoteWork(CudaWork):
    """The work of one process."""

    vanishes = True

    def __init__(self, backend: ClientBackend, driver: Driver) -> None:
        super().__init__(backend, driver)
        self._pages: tuple[mmap.mmap, int] | None = None
        self._client, self._next = backend, 0

    def launch_aside(self, *given: Any) -> None:
        """In order: the nodes of a capture are not known here."""
        self.launch(*given)

    def parameters(self, numbers: Sequence[int]) -> Any:
        """Pointers to the numbers, in the other process."""
        if self._pages is None:
            self._pages = self._client.shared_pages(mmap.PAGESIZE)
        page, address = self._pages
        self._next = (self._next + 1) % _BLOCKS
        begin = self._next * _BLOCK
        for at, number in enumerate(numbers):
            page[begin + 8 * at : begin + 8 * at + 8] = number.to_bytes(8, "little")
            pointer = address + begin + 8 * at
            page[begin + _VALUES + 8 * at : begin + _VALUES + 8 * at + 8] = pointer.to_bytes(8, "little")
        return address + begin + _VALUES
