"""Calls of device functions (PTX ISA, "Control Flow Instructions: call", "Function Declarations and Definitions").

A call is a jump with a return address: the group gets a new frame on its stack and continues at the callee. Functions have one
register frame per wave, since lanes at different depths never share a register. A `.param` variable
of the caller that serves only one call *is* the callee's parameter, so nothing is copied. Recursive calls save the callee's whole
frame for their lanes and restore it on return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from consan.backends.cpu.decode.operands import DecodeContext
from consan.backends.cpu.decode.program import ParamVariable, RegisterVariable, call_parts
from consan.backends.cpu.semantics.lanes import Pairs
from consan.backends.cpu.state.faults import LaneError
from consan.backends.cpu.state.groups import Activation, LaneGroup
from consan.backends.cpu.state.registers import Slots
from consan.instrument.ptx import Function, Immediate, Operand, Register, Symbol, Underscore

from .output import BUILTINS

if TYPE_CHECKING:
    from .code import BoundBlock, BoundFunction
    from .control import End
    from .scheduler import Scheduler

Array = npt.NDArray[Any]
Formal = RegisterVariable | ParamVariable


def decode_call(context: DecodeContext, following: BoundBlock) -> End:
    """Decode the end of a block that calls."""
    returns, target, arguments = call_parts(context.instruction)
    if isinstance(target, Register):
        return IndirectCall(context, target, following)
    found = context.resolve(target.name)
    if not isinstance(found, Function):
        raise context.unsupported(f"call of {target.name}")
    code = context.function.code.program.code(target.name)
    if code is not None:
        return Call(context, context.function.plan.function(code), following)
    if target.name in BUILTINS:
        return BuiltinCall(context, target.name, returns, arguments, following)
    raise context.unsupported(f"call of {target.name}, which the module does not define")


def move(pairs: Pairs, group: LaneGroup, everyone: bool) -> None:
    """Copy arguments or results for a group."""
    if everyone:
        for target, source in pairs:
            np.copyto(target, source, casting="unsafe")
    else:
        sel = group.sel
        for target, source in pairs:
            target[sel] = source[sel] if source.ndim else source


class Call:
    """A direct call."""

    def __init__(self, context: DecodeContext, callee: BoundFunction, following: BoundBlock) -> None:
        self.context = context
        self.callee = callee
        self.following = following
        self.site = context.site
        self.wave = context.wave
        self.base = callee.frame_base
        returns, _, arguments = call_parts(context.instruction)
        may_alias = not callee.code.recursive and id(context.instruction.scope) in context.function.code.single_calls
        self.arguments = self._pairs(arguments, list(callee.code.params.values()), may_alias, into_callee=True)
        self.results = self._pairs(returns, list(callee.code.returns.values()), may_alias, into_callee=False)

    def _pairs(self, actual: tuple[Any, ...], formal: list[Formal], may_alias: bool, into_callee: bool) -> Pairs:
        if len(actual) != len(formal):
            raise self.context.unsupported(f"{len(actual)} operands for {len(formal)} parameters")
        pairs: Pairs = []
        for given, wanted in zip(actual, formal, strict=True):
            pairs += self._pair(given, wanted, may_alias, into_callee)
        return pairs

    def _pair(self, given: Operand, wanted: Formal, may_alias: bool, into_callee: bool) -> Pairs:
        context = self.context
        if isinstance(given, Underscore):
            return []
        if isinstance(wanted, RegisterVariable):
            return [(self.callee.register(wanted), self._value(given, wanted))] if into_callee else self._result(given, wanted)
        variable = context.resolve(given.name) if isinstance(given, (Symbol, Register)) else None
        inner = self.callee.slots(wanted)
        if isinstance(variable, ParamVariable):
            local = variable.name not in context.function.code.params and variable.name not in context.function.code.returns
            if may_alias and local and variable.nbytes == wanted.nbytes and context.function.alias(variable, inner):
                return []
            return _rows(context.function.slots(variable), inner, into_callee)
        if not into_callee:
            return self._into_register(given, inner)
        return self._from_value(given, wanted, inner)

    def _value(self, given: Operand, wanted: RegisterVariable) -> Array:
        if isinstance(given, Immediate):
            return self.context.source(given, wanted.word)
        return self.context.source_as(given, self.callee.register(wanted).dtype)

    def _result(self, given: Operand, wanted: RegisterVariable) -> Pairs:
        target = self.context.source_as(given, self.callee.register(wanted).dtype)
        return [(target, self.callee.register(wanted))]

    def _into_register(self, given: Operand, inner: Slots) -> Pairs:
        assert isinstance(given, Register)
        target = self.context.raw(given.name)
        return [(target, inner.field(0, target.dtype))]

    def _from_value(self, given: Operand, wanted: ParamVariable, inner: Slots) -> Pairs:
        dtype = np.dtype(f"u{min(wanted.nbytes, 8)}")
        return [(inner.field(0, dtype), self.context.source_as(given, dtype))]

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        everyone = group.count == self.wave.alive
        if self.callee.dynamic:
            self._enter_dynamic(group)
        else:
            if self.arguments:
                move(self.arguments, group, everyone)
            frame = group.stack.children.get(id(self))
            if frame is None:
                frame = group.stack.children[id(self)] = Activation(group.stack, self.callee, self)
            group.stack = frame
        return self.callee.entry

    def finish(self, scheduler: Scheduler, group: LaneGroup, frame: Activation) -> BoundBlock | None:
        """Return: copy the results back and restore the frame."""
        if self.callee.dynamic:
            self._leave_dynamic(group, frame)
        elif self.results:
            move(self.results, group, group.count == self.wave.alive)
        assert frame.parent is not None
        group.stack = frame.parent
        return self.following

    def _enter_dynamic(self, group: LaneGroup) -> None:
        lanes, wave, callee = group.lanes, self.wave, self.callee
        values = [source[lanes] if source.ndim else source for _, source in self.arguments]
        frame = Activation(group.stack, callee, self)
        if callee.code.recursive:
            frame.saved = (lanes, [(array, array[lanes]) for array in callee.storage_arrays()])
        for (target, _), value in zip(self.arguments, values, strict=True):
            target[lanes] = value
        assert self.base is not None
        self.base[lanes] = wave.sp[lanes]
        wave.sp[lanes] += np.uint32(callee.frame_bytes)
        if int(wave.sp[lanes].max()) > wave.shape.local_bytes:
            lane = int(lanes[wave.sp[lanes].argmax()])
            raise LaneError("out-of-bounds", lane, self.site, space="local", access="call", message="the stack is full")
        group.stack = frame

    def _leave_dynamic(self, group: LaneGroup, frame: Activation) -> None:
        lanes = group.lanes
        values = [source[lanes] for _, source in self.results]
        assert self.base is not None
        self.wave.sp[lanes] = self.base[lanes]
        if frame.saved is not None:
            owners, arrays = frame.saved
            where = np.searchsorted(owners, lanes)
            for array, saved in arrays:
                array[lanes] = saved[where]
        for (target, _), value in zip(self.results, values, strict=True):
            target[lanes] = value


def _rows(outer: Slots, inner: Slots, into_callee: bool) -> Pairs:
    rows = range(min(len(outer.rows), len(inner.rows)))
    return [(inner.rows[k], outer.rows[k]) if into_callee else (outer.rows[k], inner.rows[k]) for k in rows]


class IndirectCall:
    """A call through a register: one direct call for each distinct target."""

    def __init__(self, context: DecodeContext, target: Register, following: BoundBlock) -> None:
        self.context = context
        self.target = context.source(target, "u64")
        self.following = following
        self.calls: dict[int, Call] = {}

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        lanes, values = group.lanes, self.target[group.lanes]
        for address in np.unique(values).tolist():
            part = LaneGroup(lanes[values == address], group.stack, group.block, group.round)
            part.spins, part.polls = group.spins, group.polls
            scheduler.proceed(part, self._call(address, part)(scheduler, part))
        return None

    def _call(self, address: int, group: LaneGroup) -> Call:
        if address not in self.calls:
            callee = self.context.function.plan.function_at(address)
            if callee is None:
                raise LaneError(
                    "trap", int(group.lanes[0]), self.context.site, address=address, message=f"call of {address:#x}, which is no function"
                )
            self.calls[address] = Call(self.context, callee, self.following)
        return self.calls[address]


class BuiltinCall:
    """A call of a function that the CUDA runtime provides (printf, assert, malloc, free)."""

    def __init__(
        self, context: DecodeContext, name: str, returns: tuple[Any, ...], arguments: tuple[Any, ...], following: BoundBlock
    ) -> None:
        self.context = context
        self.function = BUILTINS[name]
        self.following = following
        self.arguments = [self._array(given) for given in arguments]
        self.result = self._array(returns[0]) if returns else None

    def _array(self, given: Operand) -> Array:
        context = self.context
        variable = context.resolve(given.name) if isinstance(given, (Symbol, Register)) else None
        if isinstance(variable, ParamVariable):
            return context.function.slots(variable).field(0, np.dtype(f"u{min(variable.nbytes, 8)}"))
        return context.source(given, "u64")

    def __call__(self, scheduler: Scheduler, group: LaneGroup) -> BoundBlock | None:  # noqa: D102 - an End
        lanes = group.lanes
        values = [a[lanes] if a.ndim else np.broadcast_to(a, len(lanes)) for a in self.arguments]
        result = self.function(self.context, lanes, values)
        if self.result is not None and result is not None:
            self.result[lanes] = result
        return self.following
