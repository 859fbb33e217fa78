"""Findings about shuffles whose lanes use values of lanes that have exited, are not in the mask, or do not exist (R-SH1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from consan.dataclass import dataclass
from consan.instrument.findings import Dim3, LanesGone
from consan.instrument.relations import UndefinedUse, Warp
from consan.instrument.sites import Place
from consan.reports.model import Access, Finding
from consan.reports.records.finding_records import ModuleSites
from consan.reports.records.numbering import unflatten
from consan.reports.source.places import distinct, located
from consan.reports.words.wording import describe

_LANES: Final = 32
_ALL: Final = 0xFFFFFFFF
_ROLES: Final = {"store": "store", "branch": "branch", "address": "access"}
_USED: Final = {"store": "is stored", "branch": "decides a branch", "address": "decides an address"}


@dataclass(frozen=True)
class UndefinedShuffles:
    """Those of a launch of a kernel. `ctaid`: the place of a CTA in the grid."""

    entry: str
    block: Dim3
    ctaid: Callable[[int], Dim3]
    module: ModuleSites

    def findings(self, noted: Mapping[LanesGone, int], *, everywhere: bool) -> Iterator[Finding]:
        """One for each use. `noted`: with the first CTA of each.

        `everywhere`: also at the shuffles that all threads come to, which are not noted: there only lanes that do not exist are missing.
        """
        found = dict[tuple[int, int], Finding]()
        for cta, line, where in (*self._noted(noted), *(self._certain() if everywhere else ())):
            use = self.module.relations.undefined_use(self.entry, line, self._warp(where)) if self.module.relations is not None else None
            if use is not None and (use.shuffle.ptx_line, use.used.ptx_line) not in found:
                found[use.shuffle.ptx_line, use.used.ptx_line] = self._finding(cta, where.warp, use)
        yield from found.values()

    def _noted(self, noted: Mapping[LanesGone, int]) -> Iterator[tuple[int, int, LanesGone]]:
        for where, cta in sorted(noted.items()):
            site = self.module.site(where.site)
            if site is not None:
                yield cta, site.ptx_line, where

    def _certain(self) -> Iterator[tuple[int, int, LanesGone]]:
        warp, lanes = divmod(self.block[0] * self.block[1] * self.block[2], _LANES)
        came = (1 << lanes) - 1
        if came and self.module.relations is not None:
            lines = self.module.relations.certain_shuffles(self.entry)
            yield from ((0, line, LanesGone(0, 0, warp, came, _ALL & ~came)) for line in lines)

    def _warp(self, where: LanesGone) -> Warp:
        return Warp(where.came, where.gone, tuple(self._thread(where.warp, lane) for lane in range(_LANES)))

    def _thread(self, warp: int, lane: int) -> Dim3:
        return unflatten(warp * _LANES + lane, self.block)

    def _finding(self, cta: int, warp: int, use: UndefinedUse) -> Finding:
        def access(role: str, place: Place, lane: int) -> Access:
            who: dict[str, Any] = {"block": self.ctaid(cta), "thread": self._thread(warp, lane), "warp": warp, "lane": lane}
            return Access(role, place.opcode, proxy="none", space="none", **who, **located(place))

        accesses = distinct((access("shuffle", use.shuffle, use.lane), access(_ROLES[use.end], use.used, use.by)))
        others = f"lane {use.source}, which {self._absence(warp, use)}"
        finding = Finding("barrier-misuse", self.entry, accesses=accesses)
        return describe(finding, "lane-gone", framework=self.module.framework, others=others, used=_USED[use.end])

    def _absence(self, warp: int, use: UndefinedUse) -> str:
        if warp * _LANES + use.source >= self.block[0] * self.block[1] * self.block[2]:
            return "the CTA does not have"
        return "has exited" if use.in_mask else "is not in the mask"
