"""The interfaces of adapters and of the session that they use.

An adapter takes the PTX that a framework is about to assemble and returns an instrumented cubin, or runs the framework's API on
the virtual machine. It is armed when the framework is imported (`importhook`), can be removed, and may be installed twice.
The protocols here are all that adapters know about `consan.session`.

Not handled: frameworks that provide only SASS; their launches are listed with `SessionLike.uninstrumented`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any, Protocol

from consan.dataclass import dataclass
from consan.reports.source.variables import Argument
from consan.session.framework_launch import FrameworkLaunch
from consan.session.planning.options import SessionOptions

SetSymbol = Callable[[str, bytes], None]  # writes a global variable of a loaded module


class PreparedLike(Protocol):
    """An instrumented module."""

    name: str
    plain: str
    instrumented: Any  # its `ptx` is the text with hooks
    code: Any  # its `cubin` is the machine code; None on the virtual machine, which does not assemble
    framework: str  # the framework whose words the fixes use; derived from the PTX, except for Gluon and Numba
    recorded: Any  # None: with called hooks
    unseen: str | None  # why its launches get no log

    @property
    def gets_logs(self) -> bool:
        """Whether its launches are recorded, and get logs."""


class SessionLike(Protocol):
    """The part of `consan.session.Session` that adapters use."""

    options: SessionOptions
    backend: Any  # consan.backends.base.Backend
    alone: bool  # whether nothing can run beside a launch

    @property
    def frameworks(self) -> Any:
        """The launches that frameworks make: consan.session.frameworks.Frameworks."""

    @property
    def followed(self) -> Any:
        """The program's streams on a GPU, by the calls of its driver from now on: `FollowedStreams` of a session."""

    @property
    def unoptimised(self) -> Any:
        """The CUDA C++ that the program compiles, as far as it is known: consan.session.without_optimisation.WithoutOptimisation."""

    @property
    def streams(self) -> Any:
        """The program's streams, where consan stands in for the framework: consan.session.comparing.program_streams.ProgramStreams."""

    def instrument_for_framework(self, ptx: str, *, name: str, unseen: str = "") -> PreparedLike:
        """Instrument and assemble. `unseen`: why the adapter does not see its launches, which run as they are and make it `incomplete`."""

    def framework_launch(self, prepared: Any, launch: FrameworkLaunch) -> AbstractContextManager[Any]:
        """Inside the block the framework launches a kernel: of the module that this gives, if it gives one."""

    def here(self) -> SessionLike:
        """The session for launches in the current context: this one, or one that belongs to it."""

    def same(self, prepared: Any) -> Any:
        """A module that a session like this one has prepared, for this one."""

    def plain(self, prepared: Any, module: Any) -> Any:
        """The module without hooks, loaded, for launches outside of the session. `module`: as the framework has loaded it."""

    def attach(self, prepared: Any, set_symbol: SetSymbol) -> None:
        """Write the control block in a loaded module."""

    def launched(self, prepared: Any, entry: str, buffers: Sequence[Argument]) -> None:
        """Name global memory by the buffers of a launch."""

    def uninstrumented(self, name: str, launches: int = 1) -> None:
        """List a kernel that runs without instrumentation."""

    def note(self, text: str) -> None:
        """Add a line to the report's notes (once)."""


def renewed(session: SessionLike, prepared: PreparedLike, otherwise: str = "it is not checked in this session") -> PreparedLike | None:
    """A module loaded by an earlier session, for this one. None if this session needs other hooks; a note says what follows."""
    found = session.instrument_for_framework(prepared.plain, name=prepared.name, unseen=prepared.unseen or "")
    found.framework = prepared.framework
    if found.instrumented.ptx == prepared.instrumented.ptx:
        return found
    if otherwise:
        session.note(f"{prepared.name} was loaded under other settings: {otherwise}")
    return None


def cubin_of(prepared: PreparedLike) -> bytes:
    """The machine code of a module, in a session on a GPU."""
    cubin: bytes | None = prepared.code.cubin
    assert cubin is not None, "a session on a GPU assembles"
    return cubin


class Adapter(Protocol):
    """One framework."""

    name: str

    def available(self) -> bool:
        """Tell whether the framework is installed (without importing it)."""

    def install(self, session: SessionLike) -> None:
        """Arm the adapter for a session. A second call replaces the session."""

    def remove(self) -> None:
        """Undo `install`. Does nothing if it was not called."""

    def describe(self) -> str:
        """One line for `consan doctor`: what is covered, in which version."""


_INHERITED: Any = object()


@dataclass
class Patches:
    """Attribute replacements that can be undone, in reverse order."""

    _done: list[tuple[Any, str, Any]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, owner: Any, attribute: str, value: Any) -> None:
        """Replace `owner.attribute`. Remembers what the owner itself holds (a staticmethod, or nothing)."""
        with self._lock:
            self._done.append((owner, attribute, vars(owner).get(attribute, _INHERITED)))
            setattr(owner, attribute, value)

    def take_away(self, owner: Any, attribute: str) -> None:
        """Delete `owner.attribute`."""
        with self._lock:
            self._done.append((owner, attribute, vars(owner)[attribute]))
            delattr(owner, attribute)

    def undo(self) -> None:
        """Restore every original."""
        with self._lock:
            while self._done:
                owner, attribute, original = self._done.pop()
                if original is _INHERITED:
                    delattr(owner, attribute)
                else:
                    setattr(owner, attribute, original)

    def __bool__(self) -> bool:
        return bool(self._done)
