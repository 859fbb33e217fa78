"""The terms in which `relations` are written: sorts of findings, at each step of their way, and what one does to the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from consan.dataclass import dataclass
from consan.instrument.findings import FindingRecord, Kind, Reason
from consan.reports.model import Finding
from consan.reports.records.finding_records import is_copy

F = TypeVar("F")


@dataclass(frozen=True)
class Silences(Generic[F]):
    """Where findings of two sorts share something, one speaks and the other is left out. `share`: what a finding has.

    `times`: how often it occurs. A term that occurs more often than the one that speaks for it stays.
    """

    speaks: Callable[[F], bool]
    silent: Callable[[F], bool]
    share: Callable[[F], Iterable[Hashable]]
    times: Callable[[F], int] = lambda finding: 1


# --- sorts of raw findings -------------------------------------------------------------------------------------------------

# Numbers: a launch without one of its barriers has thousands of findings, and members of enumerations are slow to look up.
Key = tuple[int, int, int, int, int]
_ANY: Final = frozenset(map(int, Reason))


class Raw(NamedTuple):
    """A raw finding: its record and key, and the fields that decide. `in_text`: its first side comes first in the text.

    `ordered`: of a missing wait, whether the issue of the operation is ordered with the access; also where the text orders them.
    """

    record: Any
    key: Key
    kind: int
    reason: int
    pair: tuple[int, int]
    in_text: bool
    ordered: bool


class WhichRaw(NamedTuple):
    """Raw findings of a kind; 0: of any. `in_text`, `ordered`: only those that are."""

    kind: int
    reasons: frozenset[int] = _ANY
    in_text: bool = False
    ordered: bool = False

    def has(self, raw: Raw) -> bool:
        """Whether a finding is one of them."""
        named = self.kind in (raw.kind, 0) and raw.reason in self.reasons
        return named and raw.in_text >= self.in_text and raw.ordered >= self.ordered


def raws(kind: Kind | None, *reasons: Reason, in_text: bool = False, ordered: bool = False) -> WhichRaw:
    """Those of a kind and these reasons, if any are named."""
    return WhichRaw(int(kind or 0), frozenset(map(int, reasons)) or _ANY, in_text, ordered)


# --- sorts of records and findings -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WhichRecord:
    """Records of a kind, and of these reasons, if any are named. `copies`: only those of a cp.async."""

    kind: Kind
    reasons: tuple[Reason, ...] = ()
    copies: bool = False

    def has(self, record: FindingRecord) -> bool:
        """Whether a record is one of them."""
        named = record.kind is self.kind and (not self.reasons or record.reason in self.reasons)
        return named and (not self.copies or is_copy(record))


@dataclass(frozen=True)
class Which:
    """Findings of these kinds and situations. None is named: any. `but`: situations that are left out. `known`: what is known of them.

    `no-release*` is every situation that begins so, `*@update` every one that ends so.
    """

    kinds: tuple[str, ...] = ()
    situations: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    known: str = ""  # "culprit" or "verified"

    def has(self, finding: Finding) -> bool:
        """Whether a finding is one of them."""
        if (self.kinds and finding.kind not in self.kinds) or finding.situation in self.but:
            return False
        named = not self.situations or any(_matches(finding.situation, name) for name in self.situations)
        return named and (not self.known or getattr(finding, self.known) is not None)


def _matches(situation: str, name: str) -> bool:
    if name.startswith("*"):
        return situation.endswith(name[1:])
    return situation.startswith(name[:-1]) if name.endswith("*") else situation == name


Share = Callable[[Finding, Finding], bool]


@dataclass(frozen=True)
class RootWords:
    """How a finding names its root: the end of its message, and its fix."""

    message: str
    fix: str


@dataclass(frozen=True)
class Belongs:
    """A finding belongs to a root of the same kernel: in one of the cases the two are of these kinds, and share this.

    `mutual`: both have one cause, and the one that is shown first is the root. Otherwise the repair of the root is all that is missing.
    `certain`: it belongs there in any case. The text shows the finding as a line of the root, and says where that is not certain.
    """

    cases: tuple[tuple[Which, Which, Share], ...]  # root, finding
    words: RootWords
    mutual: bool = False
    certain: bool = True

    def cases_of(self, finding: Finding) -> list[tuple[Which, Share]]:
        """The cases in which a finding belongs to a root: what the root is, and what the two share."""
        return [(root, share) for root, other, share in self.cases if other.has(finding)]
