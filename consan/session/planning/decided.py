"""Known launches: only bytes of their parameters decide what they do, and one with these bytes was checked before.

That is so where a kernel's log is compact and has no hashes (instrument/record/analyses/computed.py): all that its events follow from
is in the text, the grid, and these bytes. Such a launch runs as it is, without a log.

A log is also how the host stops a launch. If the user names a time limit, one that may stay in a loop has a log, whatever is known of it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Generic, TypeVar

from consan.dataclass import dataclass
from consan.instrument.record.recorded import DecidingBytes, Recorded
from consan.session.modules.parameters import Parameters
from consan.session.planning.options import SessionOptions

A = TypeVar("A")  # an account of launches
MOST_DECIDED = 1 << 10  # sets of bytes of one shape


def may_be_stopped(recorded: Recorded | None, entry: str, options: SessionOptions, *, decided: bool = False) -> bool:
    """Whether a launch may exceed the user's time limit. `decided`: one with the bytes that decide what it does has ended."""
    if options.timeout is None or recorded is None:
        return False
    kernel = recorded.kernel(entry)
    return kernel.loops and not (decided and kernel.compact is not None and kernel.compact.ends)


@dataclass(frozen=True)
class DecidedLaunches(Generic[A]):
    """The accounts of launches of one shape, by the bytes that decide what they do."""

    decides: tuple[DecidingBytes, ...]
    _accounts: dict[bytes, A] = field(default_factory=dict)

    def add(self, constants: bytes, account: A) -> None:
        """A launch was checked. `constants`: that its first thread has stored."""
        if len(self._accounts) < MOST_DECIDED:
            self._accounts[b"".join(constants[each.place : each.place + each.nbytes] for each in self.decides)] = account

    def of(self, args: Parameters | None) -> A | None:
        """The account of a launch with these parameters; None: it is not known what it does."""
        if self.decides and args is None:
            return None
        return self._accounts.get(b"".join(each.within(args or ()) for each in self.decides))
