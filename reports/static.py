"""Turns hazards found in a kernel's text into findings, with the same words and fields as those of a run.

It decides roles, the asynchronous side and the situation (`kinds.py`). Such a hazard has no thread, no CTA and no count: it
is on some path of every kernel that can reach the function. Whether the kernel was launched is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol

from consan.instrument.sites import Place
from consan.reports import frameworks
from consan.reports.kinds import describe
from consan.reports.model import Access, AsyncInfo, Finding
from consan.reports.places import located

_SERIALISED: Final = "ptxas will serialise the wgmma pipeline here ({})"
_SHOWN: Final = 4  # registers named; a tile has up to 128


class StaticHazard(Protocol):
    """The interface of a hazard (`instrument/passes/registers.py` makes them)."""

    @property
    def kind(self) -> str:
        """The kind of finding."""
        ...

    @property
    def reason(self) -> str:
        """The situation in the catalogue."""
        ...

    @property
    def hazard(self) -> str:
        """RAW, WAR or WAW; empty if it is none of these."""
        ...

    @property
    def first(self) -> Place:
        """The first instruction on the path."""
        ...

    @property
    def second(self) -> Place:
        """The instruction that comes too early; `first` again if one instruction is at fault."""
        ...

    @property
    def first_role(self) -> str:
        """How (1) uses the registers."""
        ...

    @property
    def second_role(self) -> str:
        """How (2) uses the registers."""
        ...

    @property
    def registers(self) -> tuple[str, ...]:
        """The registers in conflict."""
        ...

    @property
    def leave(self) -> int:
        """The largest N of a wait that would cover (1)."""
        ...

    @property
    def serialised(self) -> str:
        """The number of the assembler's message, if it serialises the pipeline because of the hazard; else empty."""
        ...

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that can reach the code."""
        ...


def static_findings(
    hazards: Iterable[StaticHazard], kernels: Iterable[str] | None = None, framework: str = frameworks.CUDA
) -> list[Finding]:
    """One finding for each hazard and kernel that can reach it, in the words of a framework. `kernels` selects kernels."""
    wanted = None if kernels is None else set(kernels)
    return [_finding(hazard, name, framework) for hazard in hazards for name in hazard.kernels if wanted is None or name in wanted]


def _finding(hazard: StaticHazard, kernel: str, framework: str) -> Finding:
    alone = hazard.first == hazard.second
    sides = [(hazard.first, hazard.first_role), *([] if alone else [(hazard.second, hazard.second_role)])]
    space = "register" if hazard.kind == "register-hazard" else "shared"
    accesses = tuple(_access(place, role, space) for place, role in sides)
    finding = Finding(hazard.kind, kernel, hazard=hazard.hazard or None, accesses=accesses)
    situation = "never-fenced" if alone and hazard.reason == "no-fence" else hazard.reason
    described = describe(finding, situation, framework=framework, leave=hazard.leave, registers=_named(hazard.registers))
    return replace(described, message=f"{described.message}; {_SERIALISED.format(hazard.serialised)}") if hazard.serialised else described


def _access(place: Place, role: str, space: str) -> Access:
    matrix = role.startswith("wgmma")
    return Access(
        role=role,
        op=_opcode(place.ptx),
        proxy="async" if matrix else "generic",
        asynchronous=AsyncInfo("wgmma") if matrix else None,
        space=space,
        **located(place),
    )


def _opcode(ptx: str) -> str:
    """The opcode in an instruction's text, without its guard."""
    words = ptx.rstrip(";").split()
    return next((word for word in words if not word.startswith("@")), "")


def _named(registers: tuple[str, ...]) -> str:
    shown, more = ", ".join(registers[:_SHOWN]), len(registers) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
