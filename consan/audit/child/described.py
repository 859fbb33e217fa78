"""Launches without host code, of PTX and of the device's part of CUDA C++: those of a launch file, and guessed ones (guessing.py).

A launch that does not fit its kernel is not made: the kernel's row is `not reached`, and says why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from consan._errors import ConsanError, UsageError
from consan.audit import rows
from consan.audit.child.checked import AuditedKernel, CheckedLaunches
from consan.audit.child.guessing import KernelText, NotGuessedError, guessed_launch, instances
from consan.audit.host import sources
from consan.audit.host.building import first_error
from consan.audit.host.program import DeviceProgram, expression
from consan.audit.launch_file import DescribedLaunch, LaunchFile, read_launches
from consan.audit.rows import unqualified_name
from consan.dataclass import dataclass
from consan.instrument.ptx import Function, Module
from consan.launching.arguments import ArgSpec, parse_arg, parse_args
from consan.launching.entries import check_parameters, choose_entry, entries_of
from consan.launching.placement import Placement
from consan.launching.source import read_module
from consan.toolchain.nvrtc import CompileError, MisnamedKernelError

_SEED = 0


@dataclass
class DescribedFile:
    """One file whose launches are described: its path and its text, PTX or CUDA C++."""

    path: str
    text: str
    program: DeviceProgram | None = None
    _modules: dict[tuple[str, ...], Module] = field(default_factory=dict)
    _symbols: dict[str, str] = field(default_factory=dict)  # of instances that were named

    @classmethod
    def of_file(cls, path: str, text: str, folders: Iterable[Path] = ()) -> DescribedFile:
        """A file. CUDA C++ has its local headers read in. `folders`: with more of them."""
        return cls(path, text, None if path.endswith(".ptx") else DeviceProgram(sources.whole(path, text, folders)))

    def found(self, wanted: str | None) -> tuple[Module, Function]:
        """The kernel of a name. Raises CompileError, UsageError."""
        module = self._module((wanted,) if wanted is not None and "<" in wanted else ())
        return module, choose_entry(module, self._symbols.get(wanted or "", wanted), self.path)

    def _module(self, names: tuple[str, ...]) -> Module:
        if names not in self._modules:
            self._modules[names] = read_module(self._compiled(names), self.path)
        return self._modules[names]

    def _compiled(self, names: tuple[str, ...]) -> str:
        if self.program is None:
            return self.text
        made = self.program.of(names)
        self._symbols |= made.symbols
        return made.ptx

    @property
    def kernels(self) -> list[str]:
        """The names of all kernels."""
        if self.program is not None:
            return self.program.source.kernels
        return [unqualified_name(expression(each.name)) for each in entries_of(self._module(()))]


def audit_described(work: Any, path: str, text: str, launches: str) -> None:
    """Make the launches of a file."""
    file = DescribedFile.of_file(path, text, work.folders)
    try:
        work.events.send("kernels", names=file.kernels)
        described = read_launches(launches)
    except UsageError as error:
        work.events.failed("", rows.NOT_REACHED, f"the launch file: {error}")
        return
    made = _MadeLaunches(work.checked(), file, described)
    for number, launch in enumerate(described.launches, 1):
        why = made.make(launch)
        if why is not None:
            work.events.failed(launch.kernel or "", why[0], f"launch {number}: {why[1]}")


def _verdict(error: ConsanError) -> str:
    if isinstance(error, CompileError):
        return rows.NOT_COMPILED
    return rows.NOT_REACHED if isinstance(error, UsageError) else rows.CRASHED


def _why(error: ConsanError) -> str:
    """The reason, without the names that `consan check` has for its options. From a compiler's messages the first error."""
    text = first_error(str(error)) if isinstance(error, CompileError) else str(error)
    return text.replace("--arg", "argument").replace("--entry: ", "")


def audit_guessed(checked: CheckedLaunches, events: Any, file: DescribedFile) -> None:
    """Guess a launch for each kernel of a file, and make it."""
    try:
        kernels = file.kernels
    except UsageError as error:
        events.failed("", rows.NOT_COMPILED, str(error))
        return
    for name in kernels:
        why = _guessed(checked, file, name)
        if why is not None:
            events.failed(name, why[0], why[1])


def _guessed(checked: CheckedLaunches, file: DescribedFile, name: str) -> tuple[str, str] | None:
    """Launch one kernel. Where that cannot be: the verdict, and why."""
    text = KernelText(file.program.source if file.program is not None else None, name)
    try:
        wanted, (module, entry) = _instance(file, instances(text, name))
        launch = guessed_launch(module, entry, text, wanted)
    except (NotGuessedError, MisnamedKernelError) as error:
        return rows.NOT_REACHED, f"no launch is guessed: {error}"
    except ConsanError as error:
        return _verdict(error), _why(error)
    return _MadeLaunches(checked, file, LaunchFile((launch,), {}), guessed=True).make(launch)


def _instance(file: DescribedFile, names: Sequence[str]) -> tuple[str, tuple[Module, Function]]:
    """The first of several instances that compiles. Raises what the first one raises, if none does."""
    first, *others = names
    try:
        return first, file.found(first)
    except (CompileError, MisnamedKernelError):
        with contextlib.suppress(CompileError, MisnamedKernelError):
            if others:
                return _instance(file, others)
        raise


class _MadeLaunches:
    """The launches of one file. Its arrays are the same memory in all of them."""

    def __init__(self, checked: CheckedLaunches, file: DescribedFile, described: LaunchFile, *, guessed: bool = False) -> None:
        self._checked, self._file, self._is_guess = checked, file, guessed
        self._placed = Placement(checked.device.backend)
        self._specs = {name: parse_arg(text, number) for number, (name, text) in enumerate(described.arrays.items(), 1000)}
        self._arrays = {name: spec.materialise(_SEED) for name, spec in self._specs.items()}

    def make(self, launch: DescribedLaunch) -> tuple[str, str] | None:
        """One launch. Where it cannot be made: the verdict, and why."""
        try:
            self._make(launch)
        except ConsanError as error:
            return _verdict(error), _why(error)
        return None

    def _make(self, launch: DescribedLaunch) -> None:
        module, entry = self._file.found(launch.kernel)
        specs = self._read(launch.arguments)
        check_parameters(entry, specs, self._file.path)
        session, known = self._checked.opened(), len(self._placed.buffers)
        prepared = session.prepare(module, name=self._file.path)
        given = zip(launch.arguments, specs, strict=True)
        values = [self._arrays[text] if text in self._arrays else spec.materialise(_SEED) for text, spec in given]
        data = self._placed.parameters(values, "argument")
        kernel = AuditedKernel(expression(entry.name), entry.name, prepared, session)
        self._checked.launch(kernel, launch.shape, data, self._placed.buffers[known:], guessed=self._is_guess)

    def _read(self, texts: Sequence[str]) -> list[ArgSpec]:
        read = parse_args([self._specs[text].text if text in self._specs else text for text in texts])
        return [self._specs.get(text, spec) for text, spec in zip(texts, read, strict=True)]
