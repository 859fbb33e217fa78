"""The sessions of one session in the other contexts of its process: one for each, with a device, streams, logs and caches of its own.

A context is a GPU's, as a rule. Launches of all contexts are compared as those of several streams are (comparing/followed_streams.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from consan.dataclass import dataclass
from consan.reports.model import Report
from consan.reports.verdict.combination import combine
from consan.session.modules.device import Device, device_in

if TYPE_CHECKING:
    from consan.backends.base import Backend
    from consan.session.session import Session


@dataclass(eq=False)
class OtherContexts:
    """Those of one session. `opens`: makes a session like it on a device."""

    session: Session
    opens: Callable[[Device], Session]
    _opened: dict[int, Session] = field(default_factory=dict)

    def here(self) -> Session:
        """The session for the current context."""
        contexts = self.session.backend.contexts
        context = 0 if contexts is None else contexts.other()
        if contexts is None or not context:
            return self.session
        if context not in self._opened:
            self._opened[context] = self._open(context, contexts.opens)
        return self._opened[context]

    def united(self, own: Report | None, of: Callable[[Session], Report | None]) -> Report | None:
        """The session's own report with those of the others."""
        found = [report for report in (own, *map(of, self._opened.values())) if report is not None]
        return combine(found) if len(found) > 1 else found[0] if found else None

    def _open(self, context: int, opens: Callable[[int], Backend] | None) -> Session:
        shadow, own = self.session.options.shadow_memory, self.session.device
        on = device_in(context, shadow) if opens is None else Device(opens(context), arena_bytes=shadow)
        if own.delay_seed is not None:
            on.delay(own.delay_seed)
        made = self.opens(on)
        made.source_dir, made.news.on_judged, made.alone = self.session.source_dir, self._tell, self.session.alone
        made.followed = self.session.followed
        device = made.backend.contexts.device if made.backend.contexts is not None else 0
        made.context = made.followed.opened(context, device, made.comparisons)
        return made

    @property
    def all(self) -> list[Session]:
        """All sessions, and the one itself."""
        return [self.session, *self._opened.values()]

    def _tell(self, new: bool) -> None:
        if self.session.news.on_judged is not None:
            self.session.news.on_judged(new)
