"""The recorded modules that a framework has loaded, and its launches of their kernels.

A recorded kernel needs a log, which only a session gives it. So the framework asks here which kernel it is to launch: its own, that of a
node of a graph, or the plain form where no session wants the launch or it cannot be recorded.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from consan.adapters.base import PreparedLike, SessionLike
from consan.backends.cuda import CudaModule
from consan.backends.driver import MADE
from consan.dataclass import dataclass
from consan.session.framework_launch import FrameworkLaunch
from consan.session.modules.parameters import DeclaredSizes, Parameters
from consan.session.repeated_launch import NOT_REPEATED, RepeatedLaunch

_MOST_REPEATED: Final = 1 << 12


def _no_more(entry: str) -> tuple[()]:
    return ()


@dataclass
class FrameworkModules:
    """By the handle that the driver has given a module, and the session to which it was last attached. They stay loaded."""

    _known: dict[int, tuple[PreparedLike, SessionLike]] = field(default_factory=dict)
    _loaded: dict[int, CudaModule] = field(default_factory=dict)
    _declared: dict[tuple[int, str], DeclaredSizes] = field(default_factory=dict)
    _repeated: dict[Hashable, RepeatedLaunch] = field(default_factory=dict)
    _repeated_in: SessionLike | None = None  # of these: None while there is none
    _elsewhere: dict[tuple[int, SessionLike], PreparedLike] = field(default_factory=dict)  # in other contexts

    def add(self, session: SessionLike, prepared: PreparedLike, module: int, handles: Callable[[str], Sequence[int]] = _no_more) -> None:
        """A recorded module is loaded, or attached to another session. `handles`: gives those of a kernel that are not of the module."""
        session.frameworks.by_others.add(prepared, CudaModule(module), handles)
        self._known[module], self._loaded[module] = (prepared, session), CudaModule(module)
        self._declared = {key: params for key, params in self._declared.items() if key[0] != module}
        self.forget()
        self._elsewhere = {key: found for key, found in self._elsewhere.items() if key[0] != module}

    def forget(self) -> None:
        """All launches take the long way once."""
        for each in self._repeated.values():
            each.tell()
        self._repeated.clear()

    def failing(self, module: int, entry: str, threads: int) -> contextlib.AbstractContextManager[None]:
        """Inside the block a launch of a module raises an error."""
        prepared, session = self._known[module]
        ending: contextlib.AbstractContextManager[None] = session.frameworks.watch.ending(prepared, entry, threads)
        return ending

    def is_elsewhere(self, module: int) -> bool:
        """Whether the current context is not that of the session to which a module was attached."""
        owner = self._known[module][1]
        return owner.here() is not owner

    def also(self, known: int, module: int) -> None:
        """Another module is loaded from the same library, in another context."""
        if module not in self._known:
            self.add(self._known[known][1], self._known[known][0], module)

    def loaded(self, module: int) -> CudaModule:
        """The module with a handle."""
        return self._loaded[module]

    def __bool__(self) -> bool:
        return bool(self._known)

    def __contains__(self, module: object) -> bool:
        return module in self._known

    def declared(self, module: int, entry: str) -> DeclaredSizes:
        """The parameters that a kernel declares."""
        if (module, entry) not in self._declared:
            self._declared[module, entry] = DeclaredSizes.of(self._known[module][0].instrumented.module, entry)
        return self._declared[module, entry]

    def parameters(self, module: int, entry: str, pointers: int, extra: int = 0) -> Parameters | None:
        """The parameters of a launch by the driver, at these addresses."""
        return self.declared(module, entry).given(pointers, extra)

    def parameters_of(self, where: Sequence[int | None], launch: FrameworkLaunch) -> Parameters | None:
        """The same for a launch: the addresses are `where`."""
        return self.declared(launch.module.handle, launch.entry).given(*where[:2])

    def repeat(
        self, session: SessionLike | None, key: Hashable, asked: Callable[[FrameworkLaunch], Parameters | None],
        launch: Callable[..., Any], given: tuple[Any, ...], *, at: int = 0, gives_status: bool = False, words: Sequence[int | None] = (),
    ) -> Any:  # fmt: skip
        """Make a launch like one that was made before, as `RepeatedLaunch.make` does; `NOT_REPEATED` where none was.

        `key`: what is equal for launches that are made alike. `asked`: reads the parameters of this one, which is like the one given.
        `at`: as in `RepeatedLaunch.make`. `words`: by which C knows those that follow, and makes them; none: it makes none.
        """
        found = self._repeated.get(key) if session is not None and session is self._repeated_in else None
        if found is None:
            return NOT_REPEATED
        reads = functools.partial(asked, found.launch)
        result = found.make(reads, launch, given, at=at, gives_status=gives_status)
        if result is NOT_REPEATED and (known := found.frameworks.known_now(found, reads)) is not None:
            found = self._repeated[key] = known
            result = found.make(reads, launch, given, at=at, gives_status=gives_status)
        if result is not NOT_REPEATED and found.alike.armed is None and not (gives_status and result):
            found.arm(words)
        return result

    @contextlib.contextmanager
    def launching(self, session: SessionLike | None, launch: FrameworkLaunch, key: Hashable = None) -> Iterator[int]:
        """Inside the block the framework launches. Gives the handle of the kernel that it is to launch; 0: of its own.

        `key`: of the launches that are made alike (`repeat`).
        """
        prepared, owner = self._known[launch.module.handle]
        wanted, here = session is owner, owner.here()
        prepared = prepared if here is owner else self._there(here, prepared, launch.module.handle)
        loaded = here.framework_launch(prepared, launch) if wanted else contextlib.nullcontext(here.plain(prepared, launch.module))
        with loaded as module, MADE.inside():
            yield 0 if module is None else here.backend.function(module, launch.entry, launch.shared, launch.cluster)
        if key is not None and wanted and here is owner:
            self._keep(here, key, here.frameworks.repeated(prepared, launch))

    def _keep(self, session: SessionLike, key: Hashable, found: RepeatedLaunch | None) -> None:
        if session is not self._repeated_in or len(self._repeated) >= _MOST_REPEATED:
            self.forget()
            self._repeated_in = session
        if found is not None:
            self._repeated[key] = found

    def _there(self, session: SessionLike, prepared: PreparedLike, module: int) -> PreparedLike:
        """The form of a module in a session of another context."""
        if (module, session) not in self._elsewhere:
            self._elsewhere[module, session] = session.same(prepared)
        return self._elsewhere[module, session]
