"""Every access to the shared memory of a cluster, in columns: what a new access is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Who accesses.
SYNC, COPY, BULK, PRODUCT, LIFE, STORE = range(6)  # LIFE: init and inval of an mbarrier; STORE: st.async and red.async
COLUMNS = ("start", "end", "actor", "time", "line", "write", "strong", "narrow", "element", "who", "thread", "issuer", "issued", "rmw")


class Rows:
    """Accesses so far. `thread` is the issuer's number in the cluster, `issuer` and `issued` its clock then; `narrow`: of .cta scope."""

    def __init__(self) -> None:
        self._columns = {name: np.zeros(256, np.int64) for name in COLUMNS}
        self.values: list[bytes | None] = []
        self._show(0)

    def _show(self, count: int) -> None:
        """Make the columns, so far, attributes."""
        self.count = count
        self.__dict__.update({name: column[:count] for name, column in self._columns.items()})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Array: ...

    def add(self, values: list[bytes] | None, **columns: Any) -> Array:
        """Append rows; returns their numbers."""
        number = len(columns["start"])
        end = self.count + number
        for name in COLUMNS:
            while end > len(self._columns[name]):
                self._columns[name] = np.concatenate((self._columns[name], np.zeros_like(self._columns[name])))
            self._columns[name][self.count : end] = columns[name]
        self.values += [None] * number if values is None else values
        first = self.count
        self._show(end)
        return np.arange(first, end)

    def keep(self, chosen: Array) -> Array:
        """Drop the others; returns the old numbers of those kept."""
        kept = np.asarray(chosen.nonzero()[0])
        for name in COLUMNS:
            self._columns[name][: len(kept)] = self._columns[name][: self.count][kept]
        self.values = [self.values[k] for k in kept.tolist()]
        self._show(len(kept))
        return kept
