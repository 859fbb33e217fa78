"""A loaded module: its variables in device memory, its entries, the plans for launching them.

PTX ISA, "Initializers", "Kernel Function Parameters". Initialisers may hold constants, nested braces and addresses of
variables and functions, `generic(x)` included. Not handled: initialisers with `mask(...)`.
"""

from __future__ import annotations

import re
import struct
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from consan._errors import UsageError
from consan.backends.cpu.decode.events import is_event
from consan.backends.cpu.decode.program import FunctionCode, MemoryVariable, ParamVariable
from consan.backends.cpu.decode.reach import FlattenedModule, Reach
from consan.backends.cpu.state.faults import Dim3
from consan.backends.cpu.state.memory import HANDLE, Allocation
from consan.backends.cpu.state.registers import WORD_DTYPES
from consan.backends.cpu.state.wave import Shape, Wave
from consan.dataclass import dataclass
from consan.instrument.ptx import OPAQUE, Function, Module, type_bytes
from consan.instrument.ptx.extents import three_extents

from .code import Plan

if TYPE_CHECKING:
    from .machine import Machine

_TOKEN = re.compile(r"generic\s*\(\s*([\w$%]+)\s*\)|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|[-+]?[\w.$%]+(?:[eE][-+]?\d+)?|[+{},]")
_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
MAX_PLANS = 24


@dataclass(frozen=True)
class ParamInfo:
    """One kernel parameter."""

    name: str
    nbytes: int
    align: int
    offset: int


@dataclass(frozen=True)
class EntryInfo:
    """Properties of an entry, for callers of `launch`."""

    name: str
    params: tuple[ParamInfo, ...]
    param_bytes: int
    static_shared: int
    local_bytes: int
    reqntid: tuple[int, ...] | None
    maxntid: tuple[int, ...] | None = None
    reqnctapercluster: tuple[int, ...] | None = None
    maxclusterrank: int | None = None
    explicit_cluster: bool = False

    @property
    def likely_block(self) -> tuple[int, int, int] | None:
        """The block that the text names: the one that it requires, or the largest."""
        named = self.reqntid or self.maxntid
        return None if named is None else three_extents(named)

    @property
    def required_cluster(self) -> tuple[int, int, int] | None:
        """The shape of .reqnctapercluster."""
        return None if self.reqnctapercluster is None else three_extents(self.reqnctapercluster)


class LoadedModule:
    """A module on a machine."""

    def __init__(self, machine: Machine, source: str | Module, name: str = "<ptx>") -> None:
        self.machine = machine
        self.program = FlattenedModule(source, name)
        self._addresses: dict[MemoryVariable, Allocation] = {}
        self._params: dict[str, Allocation] = {}
        self._plans: dict[tuple[str, Shape, bool], Plan] = {}
        for variable in self.program.names.values():
            if isinstance(variable, MemoryVariable) and variable.is_module_scope:
                self._place(variable)
        for variable in list(self._addresses):
            self._initialise(variable)

    # Variables -----------------------------------------------------------------------------------------------------

    def _place(self, variable: MemoryVariable) -> Allocation:
        if variable not in self._addresses:
            align = max(variable.align, 256)
            self._addresses[variable] = self.machine.arena.alloc(variable.nbytes, align, variable.name)
            if variable.node.type == "texref":
                self.machine.arena.references[self._addresses[variable].address & HANDLE] = variable.name
        return self._addresses[variable]

    def address_of(self, variable: MemoryVariable) -> int:
        """Address of a global or constant variable, those inside functions included."""
        if variable not in self._addresses:
            self._place(variable)
            self._initialise(variable)
        return self._addresses[variable].address

    def _initialise(self, variable: MemoryVariable) -> None:
        if variable.initializer and variable.node.type not in OPAQUE:
            data = self._bytes(variable)
            address = self._addresses[variable].address
            self.machine.arena.span(address, len(data))[...] = np.frombuffer(data, np.uint8)

    def _bytes(self, variable: MemoryVariable) -> bytes:
        """Bytes of an initialiser; nested braces that stop early leave the rest of their row zero."""
        word = variable.node.type
        dims = next(item.dims for item in variable.node.names if item.name == variable.name)
        strides = [type_bytes(word) * variable.node.vector]
        for extent in reversed(dims[1:]):
            strides.insert(0, strides[0] * extent)
        out = bytearray(variable.nbytes)
        position, depth, starts = 0, 0, [0]
        tokens = list(_TOKEN.finditer(variable.initializer or ""))
        previous = ""
        for match in tokens:
            token = match[0]
            if token == "{":
                depth += 1
                starts.append(position)
            elif token == "}":
                depth -= 1
                start = starts.pop()
                position = start + strides[depth - 1] if 0 < depth <= len(strides) else position
            elif token == "+":
                pass
            elif token != ",":
                if previous == "+" or (token[0] in "+-" and previous not in ("", ",", "{")):
                    position = self._add(out, position, int(token, 0), type_bytes(word))
                else:
                    data = self._value(match, word)
                    out[position : position + len(data)] = data
                    position += len(data)
            previous = token
        return bytes(out)

    @staticmethod
    def _add(out: bytearray, position: int, offset: int, size: int) -> int:
        start = position - size
        value = int.from_bytes(out[start:position], "little") + offset
        out[start:position] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return position

    def _value(self, match: re.Match[str], word: str) -> bytes:
        token, size = match[0], type_bytes(word)
        if token[:2] in ("0f", "0F"):
            return int(token[2:], 16).to_bytes(4, "little")
        if token[:2] in ("0d", "0D"):
            value = struct.unpack(">d", bytes.fromhex(token[2:]))[0]
            return np.array(value, WORD_DTYPES[word]).tobytes() if word[0] == "f" else int(token[2:], 16).to_bytes(8, "little")
        number = _NUMBER.match(token)
        if number and word[0] != "f":
            return (int(token.rstrip("U"), 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if number or re.match(r"[-+]?[\d.]", token):
            return np.array(float(token), WORD_DTYPES[word]).tobytes()
        return self.value_of(match[1] or token).to_bytes(size, "little")

    def value_of(self, name: str) -> int:
        """The address that a name stands for in an initialiser."""
        found = self.program.names.get(name)
        if isinstance(found, Function):
            return self.machine.code_address(self, name)
        if isinstance(found, MemoryVariable) and found.is_module_scope:
            return self.address_of(found)
        raise UsageError(f"initialiser: {name} has no address")

    def symbol(self, name: str) -> tuple[int, int]:
        """Address and size of a global or constant variable."""
        found = self.program.names.get(name)
        if not isinstance(found, MemoryVariable) or not found.is_module_scope:
            raise UsageError(f"the module has no variable {name}")
        return self.address_of(found), found.nbytes

    def renew(self) -> None:
        """Give variables their initial values; registers read as zero."""
        for variable in self._addresses:
            self._initialise(variable)
        for plan in self._plans.values():
            plan.renew()

    def unload(self) -> None:
        """Give back the memory of variables, parameters and plans; the module must not be used any more."""
        for plan in self._plans.values():
            plan.wave.windows.release()
        for allocation in (*self._addresses.values(), *self._params.values()):
            self.machine.free(allocation.address)
        self._plans.clear()
        self._addresses.clear()
        self._params.clear()
        self.machine.forget_code(self)

    # Functions -----------------------------------------------------------------------------------------------------

    @property
    def entries(self) -> list[str]:
        """Names of the entries."""
        return [f.name for f in self.program.functions if f.kind == "entry" and not f.is_declaration]

    def reach(self, entry: str) -> Reach:
        """The functions and memory that an entry can reach."""
        if entry not in self.entries:
            raise UsageError(f"the module has no entry {entry}; it has: {', '.join(self.entries) or 'none'}")
        return self.program.reach(entry)

    def entry(self, name: str) -> EntryInfo:
        """Facts about an entry."""
        reach = self.reach(name)
        directives = reach.entry.function.directives
        params = tuple(ParamInfo(p.name, p.nbytes, p.align, p.offset) for p in reach.entry.params.values() if isinstance(p, ParamVariable))
        total = max((p.offset + p.nbytes for p in params), default=0)

        def limit(key: str) -> tuple[int, ...] | None:
            return tuple(value) if isinstance(value := directives.get(key), tuple) else None

        cluster, rank = limit("reqnctapercluster"), limit("maxclusterrank")
        return EntryInfo(
            name,
            params,
            total,
            reach.static_shared,
            reach.static_local + reach.dynamic_local,
            limit("reqntid"),
            limit("maxntid"),
            cluster,
            rank[0] if rank else None,
            cluster is not None or "explicitcluster" in directives,
        )

    def param_block(self, code: FunctionCode) -> int:
        """Address of the parameter block of an entry."""
        if code.name not in self._params:
            size = max(self.entry(code.name).param_bytes, 16)
            self._params[code.name] = self.machine.arena.alloc(size, 256, f"parameters of {code.name}")
        return self._params[code.name].address

    def code_at(self, address: int) -> FunctionCode | None:
        """The function of this module at a code address."""
        owner, name = self.machine.code_names.get(address, (None, ""))
        return self.program.code(name) if owner is self else None

    def decode(self, entry: str, block: Dim3, ctas: int) -> None:
        """Decode a kernel as a launch of so many CTAs would do it bit by bit. For kernels without clusters and dynamic shared memory."""
        reach = self.reach(entry)
        shape = Shape(block, ctas, reach.static_shared, reach.static_local + reach.dynamic_local)
        with np.errstate(all="ignore"):
            self.plan(entry, shape).entry.bind()

    @cached_property
    def _by_events(self) -> FlattenedModule:
        return self.program.cut_at(is_event)

    def plan(self, entry: str, shape: Shape, *, by_events: bool = False) -> Plan:
        """The plan for an entry on waves of a shape, kept for later launches. `by_events`: each event begins a block."""
        key = (entry, shape, by_events)
        plan = self._plans.pop(key, None)
        if plan is None:
            while len(self._plans) >= MAX_PLANS:
                self._plans.pop(next(iter(self._plans))).wave.windows.release()
            program = self._by_events if by_events else self.program
            plan = Plan(self, program.reach(entry), Wave(self.machine.arena, shape))
        self._plans[key] = plan
        return plan
