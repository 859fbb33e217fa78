"""The finding of two accesses of different launches, which may run beside each other (SEMANTICS 12, R-GM14)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from consan.instrument.sites import Site
from consan.reports.found import ModuleSites
from consan.reports.kinds import describe
from consan.reports.model import Access, Dim3, Finding
from consan.reports.names import function_name
from consan.reports.numbering import unflatten
from consan.reports.places import located
from consan.reports.sides import action_of, role_of_site

NO_GRID_WAIT: Final = "no-grid-wait"
NO_CHAINED_WAIT: Final = "no-chained-wait"
NO_STREAM_EDGE: Final = "no-stream-edge"
_HAZARDS: Final = {(True, False): "RAW", (False, True): "WAR", (True, True): "WAW"}


@dataclass(frozen=True)
class LaunchSide:
    """An access of one launch: where its kernel is, and which thread it was."""

    module: ModuleSites
    entry: str
    grid: Dim3
    block: Dim3
    cta: int
    thread: int
    site: int
    begin: int  # the first byte, where the launch had it
    nbytes: int
    writes: bool

    def access(self, begin: int) -> Access:
        """The access as reports show it. `begin`: the address of its first byte there."""
        site = self.module.site(self.site)
        assert site is not None
        name = self.module.address_name(self.entry, self.begin, self.begin + self.nbytes)
        return replace(self._of(site, begin), name=name, **located(site))

    def _of(self, site: Site, begin: int) -> Access:
        action = action_of(site)
        return Access(
            role=role_of_site(site, action), op=site.opcode, block=unflatten(self.cta, self.grid),
            thread=unflatten(self.thread, self.block), warp=self.thread // 32, lane=self.thread % 32,
            bytes=(begin, begin + self.nbytes), space="global", asynchronous=action,
            proxy="async" if action is not None and action.kind != "cp.async" else "generic",
        )  # fmt: skip


def beside(first: LaunchSide, second: LaunchSide, situation: str, *, ahead: int, count: int, ctas: int, same_value: bool) -> Finding:
    """The finding. `first` is of the earlier launch, `situation` one of those above; `ahead`: how far the second begins behind the first.

    `count`: how many accesses of the second race, in how many CTAs. Both have addresses of the second launch.
    """
    finding = Finding(
        kind="global-race", hazard=_HAZARDS[first.writes, second.writes], kernel=second.entry, count=count, ctas=ctas,
        accesses=(first.access(second.begin - ahead), second.access(second.begin)),
    )  # fmt: skip
    names = {"first_kernel": function_name(first.entry), "second_kernel": function_name(second.entry)}
    described = describe(finding, situation, framework=second.module.framework, **names)
    return replace(described, severity="warning") if same_value else described
