"""Chooses register limits for instrumented kernels and assembles them.

A limit is never above the number with which the plain kernel's largest launch still starts. Kernels whose CTAs wait for each other (grid
barrier, semaphore) get at most the plain kernel's own number: they need as many resident CTAs as before.

The assembler uses all registers that the launch bounds allow: three to six times what the plain kernel needs, mostly for the
cold half of the hooks. The lost occupancy costs more than a few spills. So kernels with launch bounds are
assembled with few registers first (figures in tests/bench/RESULTS.md).
"""

from __future__ import annotations

import functools
import json
import math
import re
from pathlib import Path

from consan._errors import UsageError
from consan.instrument import Instrumented
from consan.instrument.ptx import Edits, Module, parse
from consan.toolchain import assemble
from consan.toolchain.cache import CACHE, key

_SETMAXNREG = re.compile(r"^[ \t]*(?:@!?%\w+[ \t]+)?setmaxnreg\.[^;\n]*;", re.M)
_BOUNDS = re.compile(r"\.(?:max|req)ntid\b")
_SERIALIZED = "(C7512)"  # of the assembler: `wgmma` runs one by one, for want of registers
_IGNORED = "'setmaxnreg' ignored"  # C7508: no bounds fix the number of registers with which a warp starts
_NO_SETMAXNREG = "setmaxnreg was left out: with hooks, the registers that it leaves to some warps do not suffice"
_MAX_LAUNCHABLE = 64  # registers with which a CTA of 1024 threads starts
_FEWEST = 32  # registers at which 2048 threads fill a multiprocessor
FEW = (64, 80)  # limits that are tried first, in rising order
_MOST_SPILLED = 200  # bytes loaded back: inline hooks that spill more lose more than occupancy gains


def assemble_known(made_by: str, plain: str, done: Instrumented, architecture: str, *, fast: bool) -> tuple[bytes, tuple[str, ...]]:
    """`assemble_with_hooks`, kept on disk by the key of the input of `done`: its own text takes longer to hash than all else."""

    def make() -> bytes:
        cubin, notes = assemble_with_hooks(plain, done, architecture, fast=fast)
        return json.dumps(notes).encode() + b"\n" + cubin

    name = key("cubin with hooks", made_by, architecture, str(fast), assemble.identity(), _source())
    notes, cubin = CACHE.fetch(name, make).split(b"\n", 1)
    return cubin, tuple(json.loads(notes))


@functools.cache
def _source() -> bytes:
    return Path(__file__).read_bytes()


def assemble_with_hooks(plain: str, done: Instrumented, architecture: str, *, fast: bool = False) -> tuple[bytes, tuple[str, ...]]:
    """The cubin of an instrumented module, and notes for the report. `plain` is its text without hooks."""
    before = assemble.assemble_cached(plain, architecture)
    used = [info.registers for info in before.info.values()]
    most = -(-max(used, default=_MAX_LAUNCHABLE) // 8) * 8
    cap = min(max(_FEWEST if done.communicates else _MAX_LAUNCHABLE, most), 255)
    options = (f"--maxrregcount={cap}",)
    # The engines' hooks need all registers and assemble slowly. setmaxnreg relies on the number that the bounds give.
    if not (done.communicates or done.variant.engine or fast or _gives_registers_away(done.ptx)):
        found = _with_few(done.ptx, architecture, most, options)
        if found is not None:
            return found.cubin, ()
    ptx = _without_ignored(before, done.ptx)
    text = _capped(ptx, cap) if done.communicates else ptx
    try:
        return assemble.assemble_cached(text, architecture, options=options, fast=fast).cubin, ()
    except UsageError as error:
        if "C7600" not in str(error) or "setmaxnreg" not in text:
            raise
    # A warp that gives registers away keeps too few: hooks need more than the 24 that a producer keeps.
    text = _SETMAXNREG.sub("", text)
    return assemble.assemble_cached(text, architecture, options=options, fast=fast).cubin, (_NO_SETMAXNREG,)


def assemble_recorded(plain: str, recorded: str, architecture: str) -> assemble.Assembled:
    """A recorded module, with the plain kernel's number of registers if it needs no stack then; else, and if `wgmma` would run one by one,
    with up to 16 more.
    """
    before = assemble.assemble_cached(plain, architecture)
    recorded = _without_ignored(before, recorded)
    most = max(_FEWEST, -(-max((info.registers for info in before.info.values()), default=_FEWEST) // 8) * 8)
    for cap in (most, most + 8, most + 16):
        options = (f"--maxrregcount={cap}",)
        try:
            found = assemble.assemble_cached(_capped(recorded, cap), architecture, options=options)
        except UsageError as error:
            if "setmaxnreg" not in str(error):
                raise
            break  # it names more registers than the cap leaves
        serial = _SERIALIZED in found.log and _SERIALIZED not in before.log
        if not serial and all(info.spill_loads + info.spill_stores == 0 for info in found.info.values()):
            return found
    return assemble.assemble_cached(recorded, architecture)


def _without_ignored(plain: assemble.Assembled, ptx: str) -> str:
    """The text without setmaxnreg, if the assembler ignores it in the plain module, whose bounds fix no number of registers.

    With the limits below it would take effect: `dec` to more registers than a warp has is an illegal instruction, and `inc` to more than
    the CTA has waits for ever (PTX ISA 9.7.19.5).
    """
    return _SETMAXNREG.sub("", ptx) if any(_IGNORED in warning for warning in plain.warnings) else ptx


def _gives_registers_away(ptx: str) -> bool:
    return "setmaxnreg" in ptx and _SETMAXNREG.search(ptx) is not None  # the word first: the pattern takes 8 ms for a module with hooks


def _with_few(ptx: str, architecture: str, most: int, options: tuple[str, ...]) -> assemble.Assembled | None:
    """Try rising limits, not below the plain kernel's number; take the first with few spills in the hooks. None if there is none."""
    for registers in (number for number in FEW if number >= most):
        capped = _capped(ptx, registers)
        if capped == ptx:
            return None
        found = assemble.assemble_cached(capped, architecture, options=options)
        if all(info.spill_loads <= _MOST_SPILLED for info in found.info.values()):
            return found
    return None


def _capped(ptx: str, registers: int) -> str:
    """`cap_bounded_kernels` of a text. Kept on disk: to read a module with hooks takes longer than all else when it is loaded again."""
    if not _BOUNDS.search(ptx):
        return ptx
    return CACHE.fetch_text(key("capped", ptx, str(registers)), lambda: cap_bounded_kernels(parse(ptx), registers))


def cap_bounded_kernels(module: Module, registers: int) -> str:
    """Cap the kernels that have launch bounds: the assembler ignores `--maxrregcount` for those. Line numbers do not change.

    The cap replaces the one implied by the bounds, so it never exceeds what the largest CTA can start with.
    """
    edits = Edits(module)
    for function in module.functions:
        given = function.directives
        bounds = [given[name] for name in ("maxntid", "reqntid") if name in given]
        if function.kind == "entry" and function.body and bounds and not given.keys() & {"maxnreg", "minnctapersm"}:
            most = min(_launchable(math.prod(map(int, bound))) for bound in bounds)
            edits.insert_at(function.body.open, f".maxnreg {min(registers, most)} ")
    return edits.apply()


def _launchable(threads: int) -> int:
    """Registers with which a CTA starts: a multiprocessor has 65,536, given out to four warps at a time in units of eight per thread."""
    warps = -(-threads // 128) * 4
    return min((1 << 16) // (32 * max(warps, 4)) // 8 * 8, 255)
