"""The CUDA runtime's hooks (source/runtime.cpp): memory, variables and launches go to the device, each launch in a session of its
own.

A launch that has been made `_REPEATS` times with the same arguments is not made again, nor is a kernel that has been launched `_MOST`
times, or whose launches have taken the time of one, and a note says so: programs measure time in loops. Where other launches are between
those that repeat, memory is not what it would be behind the one that is left out.
A launch that takes too long is not run to its end, and its report is incomplete.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from consan._errors import ConsanError, UsageError
from consan.audit import rows
from consan.audit.child.checked import AuditedKernel, CheckedLaunches
from consan.audit.child.questions import parameters_in, unwritten
from consan.audit.child.texture_fields import described_texture
from consan.audit.host.building import first_error
from consan.audit.host.program import HostProgram, expression
from consan.audit.launch_file import LaunchSize
from consan.audit.rows import unqualified_name
from consan.dataclass import dataclass
from consan.instrument.ptx.extents import three_extents
from consan.launching.entries import choose_entry
from consan.launching.source import read_module
from consan.launching.types_by_name import element_bytes
from consan.reports.source.variables import Argument
from consan.toolchain.nvrtc import CompileError, MisnamedKernelError

_REPEATS: Final = 2
_MOST: Final = 24  # launches of one kernel
_LAUNCH_FAILURE, _ILLEGAL_ADDRESS, _INVALID_VALUE = 719, 700, 1
_FAILED: Final = dict.fromkeys(("launch", "attributes", "copy", "replay"), _LAUNCH_FAILURE)  # what a hook that fails returns
SIGNATURES: Final = {
    "allocate": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t),
    "release": ctypes.CFUNCTYPE(None, ctypes.c_void_p),
    "symbol": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)),
    "launch": ctypes.CFUNCTYPE(
        *(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint), ctypes.c_size_t, ctypes.c_int, ctypes.c_int),
        *(ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)),
    ),
    "attributes": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
    "texture": ctypes.CFUNCTYPE(ctypes.c_ulonglong, ctypes.POINTER(ctypes.c_longlong)),
    "release_texture": ctypes.CFUNCTYPE(None, ctypes.c_ulonglong),
    "copy": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
    "known": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p),
    "capture": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int),
    "replay": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int),
}


class _Hooks(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in SIGNATURES]


@dataclass
class LaunchHooks:
    """The hooks for the programs of one process.

    `failed` is given a kernel that cannot be launched, and why; `note` a sentence for the table. `left_out` is called where a launch with
    arguments of its own is not made, `empty_grid` where one has no CTA.
    """

    checked: CheckedLaunches
    failed: Callable[[str, str, str], None]
    note: Callable[[str], None]
    left_out: Callable[[], None]
    empty_grid: Callable[[], None]
    programs: list[HostProgram] = field(default_factory=list)
    _made: Counter[Any] = field(default_factory=Counter)
    _seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # of a kernel's launches
    _parameters: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    _last: tuple[Any, ...] = ()  # the name and the arguments of the last launch that was made
    _graphs: list[tuple[str, Callable[[], int]]] = field(default_factory=list)  # the launches of graphs, by their numbers
    _captures: bool = False

    def install(self, library: bytes, path: Path) -> ctypes.CDLL:
        """Load the runtime, and let its calls come here."""
        path.write_bytes(library)
        runtime = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        hooks = _Hooks()
        for name, signature in SIGNATURES.items():
            if name == "copy" and not self.checked.audited.is_gpu:
                continue  # the process reaches all memory
            callback = signature(functools.partial(self._guarded, getattr(self, name), _FAILED.get(name, 0)))
            self.kept.append(callback)
            setattr(hooks, name, ctypes.cast(callback, ctypes.c_void_p))
        runtime.consan_set_hooks(ctypes.byref(hooks))
        return runtime

    def _guarded(self, hook: Callable[..., Any], otherwise: int, *given: Any) -> Any:
        """Call a hook. An error must not be lost in the program's C++ code."""
        try:
            return hook(*given)
        except Exception as error:
            self.failed("", rows.CRASHED, f"consan failed: {type(error).__name__}: {error}")
            return otherwise

    # -- memory ---------------------------------------------------------------------------------------------------------------

    @property
    def _backend(self) -> Any:
        return self.checked.device.backend

    def allocate(self, nbytes: int) -> int:
        """The address of new memory; 0: there is none."""
        with contextlib.suppress(ConsanError):
            address = int(self._backend.alloc(max(nbytes, 1)))
            if self.checked.seeds:
                self.checked.arena.span(address, nbytes)[...] = unwritten(address, nbytes)
            return address
        return 0

    def release(self, address: int | None) -> None:
        """Free memory."""
        if address:
            with contextlib.suppress(ConsanError):
                self._backend.free(address)

    def symbol(self, host: int, nbytes: Any) -> int:
        """The address of a variable of the device, by the address of its namesake on the host."""
        program = self._program(host)
        found = program.function(host - program.base) if program else None
        if program is None or found is None:
            return 0
        name = expression(found.name)
        try:
            result, _ = program.compiled(program.stubs[0])
            prepared = self.checked.opened().prepare(result.ptx, name=program.source.name)
            variables = [each.name for found in prepared.instrumented.module.variables for each in found.names]
            variable = next(each for each in variables if unqualified_name(expression(each)) == unqualified_name(name))
            found_at: tuple[int, int] = self._backend.symbol(prepared.loaded, variable)
        except (ConsanError, StopIteration, IndexError) as error:
            self.failed(name, rows.NOT_COMPILED if str(error) else rows.CRASHED, str(error) or f"no variable {name} on the device")
            return 0
        address, nbytes[0] = found_at
        return address

    def texture(self, fields: Any) -> int:
        """The handle of a new texture object; 0: there is none, and a note says why."""
        try:
            return int(self._backend.make_texture(described_texture(fields)))
        except UsageError as error:
            self.note(f"cudaCreateTextureObject: {error}")
            return 0

    def release_texture(self, handle: int) -> None:
        """Free a texture object."""
        self._backend.free_texture(handle)

    def copy(self, to: int, origin: int, nbytes: int) -> int:
        """Copy between host and device, where a variable of the device is in memory that the host does not reach. Returns a cudaError_t."""
        self._backend.copy(to, origin, nbytes)
        return 0

    def known(self, address: int | None) -> int:
        """Whether an address is in memory that was allocated here."""
        return int(self._backend.allocation(address or 0) is not None)

    # -- launches -------------------------------------------------------------------------------------------------------------

    def launch(self, stub: int, shape: Any, shared: int, cooperative: int, count: int, values: Any, sizes: Any) -> int:
        """Launch a kernel by its stub. Returns a cudaError_t."""
        program = self._program(stub)
        found = program.function(stub - program.base) if program else None
        if program is None or found is None:
            self.failed("?", rows.CRASHED, "a launch of what is no kernel of the file")
            return _INVALID_VALUE
        stub_name, numbers = found.name, [int(shape[index]) for index in range(9)]
        given = numbers, shared, bool(cooperative), (count, values, sizes)
        return self._tried(expression(stub_name), lambda: self._launch(program, stub_name, *given))

    def capture(self, begins: int) -> int:
        """The launches from here on are a graph's, or no longer. Returns the number of the next one."""
        self._captures = bool(begins)
        return len(self._graphs)

    def replay(self, number: int) -> int:
        """Make a launch of a graph. Returns a cudaError_t."""
        return self._tried(*self._graphs[number])

    def _tried(self, name: str, launch: Callable[[], int]) -> int:
        try:
            return launch()
        except ConsanError as error:
            self.failed(name, *_why(error))
            return _LAUNCH_FAILURE

    def attributes(self, stub: int, attributes: int) -> int:
        """A program asks for the attributes of a kernel: they stay as the program has them."""
        del stub, attributes
        return 0

    def _program(self, address: int) -> HostProgram | None:
        return max((each for each in self.programs if each.base <= address), key=lambda each: each.base, default=None)

    def _launch(self, program: HostProgram, stub: str, numbers: Sequence[int], shared: int, cooperative: bool, given: Any) -> int:
        grid, block, cluster = (three_extents(numbers[at : at + 3]) for at in (0, 3, 6))
        if min(numbers[:3]) < 1:
            self.empty_grid()
        if min(numbers[:6]) < 1 or math.prod(block) > 1024:
            return _INVALID_VALUE + 8  # cudaErrorInvalidConfiguration
        name, (result, entry) = expression(stub), program.compiled(stub)
        values = _values(given, self._sizes(program, result.ptx, entry))
        shape = LaunchSize(grid, block, shared, cluster, cooperative)
        made = functools.partial(self._made_with, program.source.name, result.ptx, (name, entry), shape, values)
        if self._captures:
            self._graphs.append((name, made))
            return 0
        return made()

    def _made_with(self, file: str, ptx: str, names: tuple[str, str], shape: LaunchSize, values: Sequence[bytes]) -> int:
        """Make a launch, unless it was made often enough. Returns a cudaError_t."""
        name, entry = names
        if self._is_enough(name, (entry, shape.grid, shape.block, shape.shared, *values)):
            return 0
        session = self.checked.opened()
        prepared: Any = session.prepare(ptx, name=file)
        started = time.monotonic()
        report = self.checked.launch(AuditedKernel(name, entry, prepared, session), shape, values, self._buffers(entry, values))
        self._seconds[name] += time.monotonic() - started
        return _ILLEGAL_ADDRESS if any(finding.kind == "fault" for finding in report.findings) else 0

    def _sizes(self, program: HostProgram, ptx: str, entry: str) -> list[int]:
        """The sizes of a kernel's parameters."""
        key = program.path, entry
        if key not in self._parameters:
            prepared: Any = self.checked.opened().prepare(ptx, name=program.source.name)
            on_gpu = self.checked.audited.is_gpu  # where what is loaded has no declarations
            declared = choose_entry(read_module(ptx, program.source.name), entry, "") if on_gpu else prepared.loaded.entry(entry)
            self._parameters[key] = [each.nbytes for each in declared.params]
        return self._parameters[key]

    def _is_enough(self, name: str, key: tuple[Any, ...]) -> bool:
        """Whether the kernel was launched often enough: with these arguments, or at all."""
        self._made[key] += 1
        if self._made[key] > _REPEATS:
            self.note(f"{name}: of launches with the same arguments {_REPEATS} were made and checked")
            if self._last != key:
                self.left_out()
            return True
        if self._made[name] == _MOST or self._seconds[name] > self.checked.seconds:
            self.note(f"{name}: {self._made[name]} of its launches were made and checked")
            self.left_out()
            return True
        self._made[name] += 1
        self._last = key
        return False

    def _buffers(self, entry: str, values: Sequence[bytes]) -> list[Argument]:
        """The allocations that pointers refer to."""
        declared = parameters_in(entry)
        elements = list(map(element_bytes, declared)) if len(declared) == len(values) else [1] * len(values)
        found = [
            (number, self._backend.allocation(int.from_bytes(value, "little")), element)
            for number, (value, element) in enumerate(zip(values, elements, strict=True), 1)
            if len(value) == 8
        ]
        return [Argument(f"argument {number}", each[0], each[1], element=size) for number, each, size in found if each is not None]


def _why(error: ConsanError) -> tuple[str, str]:
    """The verdict of a launch that failed, and its reason."""
    if isinstance(error, CompileError | MisnamedKernelError):
        return rows.NOT_COMPILED, first_error(str(error))
    return rows.CRASHED, str(error)


def _values(given: tuple[int, Any, Any], sizes: Sequence[int]) -> list[bytes]:
    """The bytes of each parameter."""
    count, values, known = given
    if count >= 0 and [int(known[index]) for index in range(count)] != list(sizes):
        raise ConsanError(f"parameters of {list(sizes)} bytes on the device, {[int(known[index]) for index in range(count)]} on the host")
    return [ctypes.string_at(values[index], size) for index, size in enumerate(sizes)]
