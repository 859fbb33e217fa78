"""A module as a whole: its names, its functions, and what an entry can reach.

The functions of the shadow runtime are the same text in every module of a variant: each text is read and flattened once in a process.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import field
from functools import cached_property, lru_cache

from consan.dataclass import dataclass
from consan.instrument.control_flow.paths import repeats
from consan.instrument.ptx import Function, Instruction, Module, parse
from consan.instrument.ptx.operands import Symbol
from consan.instrument.rewriting.vector_registers import with_scalars

from .program import FunctionCode, MemoryVariable, align_up, call_parts, lay_out, memory_variables

HOOKS, RUNTIME = "__consan_", "_consan_runtime_cu_"  # prefixes of hooks and their registers, and of their inner functions
_RUNTIME_FUNCTION = re.compile(rf"^\.func\b[^{{;]*?\b(?:{HOOKS}|\w*{RUNTIME})[^{{;]*\{{.*?^\}}", re.M | re.S)
_FUNCTIONS_KEPT = 1024  # a variant has some 250, of 50 KB each; most modules use 60
_HEADER = ".version 8.0\n.target sm_90\n"


@lru_cache(_FUNCTIONS_KEPT)
def _runtime_function(text: str) -> FunctionCode:
    """A function of the shadow runtime, in no module yet."""
    (function,) = parse(_HEADER + text).functions
    return FunctionCode(function)


def _split(text: str) -> tuple[str, dict[int, tuple[FunctionCode, int]]]:
    """The text with white space where the shadow runtime's functions are; and these by offset, with the lines above them."""
    rest, runtime = [], {}
    end = above = 0
    for found in _RUNTIME_FUNCTION.finditer(text):
        start = found.start()
        between, body = text[end:start], found[0]
        above += between.count("\n")
        runtime[start] = _runtime_function(body), above - _HEADER.count("\n")
        lines, end = body.count("\n"), found.end()
        rest += [between, "\n" * lines, " " * (len(body) - lines)]
        above += lines
    return "".join(rest) + text[end:], runtime


@dataclass
class Reach:
    """The reach of an entry: its functions and the layout of its shared and local memory."""

    entry: FunctionCode
    functions: list[FunctionCode]
    shared: dict[MemoryVariable, int] = field(default_factory=dict)  # offsets from the first byte after the reserved KiB
    static_shared: int = 0
    local: dict[FunctionCode, int] = field(default_factory=dict)
    static_local: int = 0
    dynamic_local: int = 0
    takes_clusters: bool = False  # whether it may ask for clusters that have not started


class FlattenedModule:
    """A module, its functions flattened on demand."""

    DYNAMIC_STACK = 16 << 10

    def __init__(self, source: str | Module, name: str = "<ptx>") -> None:
        """`source`: the text, or a module that is parsed already, which has no runtime of hooks."""
        self.text = source if isinstance(source, str) else source.text
        rest, runtime = _split(self.text)
        self._runtime = {code.name: (code, above) for code, above in runtime.values()}
        module = with_scalars(parse(rest, name)) if isinstance(source, str) else source  # also a text that was not instrumented
        starts = {each.start: each for each in module.functions} | {start: code.function for start, (code, _) in runtime.items()}
        self.functions = [starts[start] for start in sorted(starts)]
        self.names: dict[str, MemoryVariable | Function] = {}
        for variable in module.variables:
            for memory in memory_variables(variable):
                if not memory.is_extern or memory.name not in self.names:
                    self.names[memory.name] = memory
        for function in self.functions:
            known = self.names.get(function.name)
            if not isinstance(known, Function) or known.is_declaration:
                self.names[function.name] = function
        # Schedules go by these numbers: they must not depend on the order in which functions are looked at.
        self._ordinals = {name: index for index, name in enumerate(dict.fromkeys(function.name for function in self.functions))}
        self._codes: dict[str, FunctionCode] = {}
        self._reach: dict[str, Reach] = {}
        self._event: Callable[[Instruction], bool] | None = None

    def cut_at(self, event: Callable[[Instruction], bool]) -> FlattenedModule:
        """The module with a block more before each event, but in functions of the shadow runtime."""
        module = copy(self)
        module._codes, module._reach, module._event = {}, {}, event
        return module

    def code(self, name: str) -> FunctionCode | None:
        """The flattened function of that name; None if the module does not define it."""
        if name not in self._codes:
            function = self.names.get(name)
            if not isinstance(function, Function) or function.is_declaration:
                return None
            shared, above = self._runtime[name] if name in self._runtime else (FunctionCode(function), 0)
            code = shared.placed(self, self._ordinals[name], above)
            self._codes[name] = code if self._event is None or name in self._runtime else code.cut_at(self._event)
        return self._codes[name]

    @cached_property
    def defined(self) -> list[str]:
        """Functions (not entries) with a body: what an address may point to."""
        return [f.name for f in self.functions if f.kind == "func" and not f.is_declaration]

    def callees(self, code: FunctionCode) -> set[str]:
        """Functions of this module that `code` may call; through a register, any whose address may be taken."""
        names: set[str] = set()
        for call in code.text.calls:
            _, target, _ = call_parts(call)
            if isinstance(target, Symbol):
                names.add(target.name)
            else:
                names.update(self.defined)
        return {name for name in names if self.code(name) is not None}

    def reach(self, entry: str) -> Reach:
        """Reachable functions and memory layout of an entry."""
        if entry not in self._reach:
            self._reach[entry] = self._explore(entry)
        return self._reach[entry]

    def _explore(self, entry: str) -> Reach:
        edges: dict[str, set[str]] = {}
        pending = [entry]
        while pending:
            name = pending.pop()
            if name not in edges:
                code = self.code(name)
                assert code is not None
                edges[name] = self.callees(code)
                pending += sorted(edges[name])
        functions = [code for name in sorted(edges, key=lambda n: n != entry) if (code := self.code(name)) is not None]
        cyclic = {name for name in edges if repeats(edges.__getitem__, name)}
        for code in functions:
            code.recursive = code.recursive or code.name in cyclic
        reach = Reach(functions[0], functions, takes_clusters=any(code.text.takes_clusters for code in functions))
        self._lay_out_shared(reach)
        _lay_out_local(reach, self.DYNAMIC_STACK)
        return reach

    def _lay_out_shared(self, reach: Reach) -> None:
        used = frozenset().union(*(code.text.words for code in reach.functions))
        module = [v for v in self.names.values() if isinstance(v, MemoryVariable) and v.in_shared and v.name in used]
        inside = [v for code in reach.functions for v in code.memory if v.in_shared]
        static = [v for v in (*module, *inside) if v.nbytes]
        dynamic = [v for v in (*module, *inside) if not v.nbytes]
        reach.shared, end = lay_out(static, 0)
        start = align_up(end, max((v.align for v in dynamic), default=1))
        reach.shared.update(dict.fromkeys(dynamic, start))
        reach.static_shared = start if dynamic else end


def _lay_out_local(reach: Reach, stack: int) -> None:
    offset = 0
    for code in reach.functions:
        if not code.recursive:
            reach.local[code] = offset
            offset += code.local_bytes
    reach.static_local = offset
    if any(code.recursive or code.text.uses_alloca for code in reach.functions):
        reach.dynamic_local = stack
