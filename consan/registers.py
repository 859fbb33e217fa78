"""How many registers a kernel with hooks may have, and its assembly.

Never more than what lets the plain kernel's largest launch still start, and not more than the plain kernel's own number where CTAs talk to
each other (a grid barrier, a semaphore): such kernels need as many CTAs resident as the plain one had.

The assembler takes what a kernel's launch bounds leave it, three to six times what the plain kernel needs, though most of that is for the
cold half of the hooks: the CTAs that no longer fit a multiprocessor cost more than a few spills there. So kernels with launch bounds are
tried with few registers first (figures in tests/bench/RESULTS.md).
"""

from __future__ import annotations

import math
import re

from consan._errors import UsageError
from consan.instrument import Instrumented
from consan.instrument.ptx import Edits, parse
from consan.toolchain import assemble

_SETMAXNREG = re.compile(r"^[ \t]*(?:@!?%\w+[ \t]+)?setmaxnreg\.[^;\n]*;", re.M)
_NO_SETMAXNREG = "setmaxnreg was left out: with hooks, the registers that it leaves to some warps do not suffice"
_MAX_LAUNCHABLE = 64  # registers with which a CTA of 1024 threads starts
_FEWEST = 32  # registers at which 2048 threads fill a multiprocessor
_FEW = (64, 80)
_MOST_SPILLED = 200  # bytes loaded back: what hooks in line spill beyond that costs more than more CTAs gain


def assemble_with_hooks(plain: str, done: Instrumented, architecture: str, *, fast: bool = False) -> tuple[bytes, tuple[str, ...]]:
    """The cubin of an instrumented module, and what is to be told of it; `plain`: its text without hooks."""
    used = [info.registers for info in assemble.assemble_cached(plain, architecture).info.values()]
    most = -(-max(used, default=_MAX_LAUNCHABLE) // 8) * 8
    cap = min(max(_FEWEST if done.communicates else _MAX_LAUNCHABLE, most), 255)
    options = (f"--maxrregcount={cap}",)
    # The engines' hooks need all registers, and take long to assemble; setmaxnreg counts on the number that the bounds give.
    if not (done.communicates or done.variant.engine or fast or _SETMAXNREG.search(done.ptx)):
        found = _with_few(done.ptx, architecture, most, options)
        if found is not None:
            return found.cubin, ()
    text = cap_bounded_kernels(done.ptx, cap) if done.communicates else done.ptx
    try:
        return assemble.assemble_cached(text, architecture, options=options, fast=fast).cubin, ()
    except UsageError as error:
        if "C7600" not in str(error) or "setmaxnreg" not in text:
            raise
    # Too few registers are left to a warp that gives its own away: hooks need more than the 24 that a producer keeps.
    text = _SETMAXNREG.sub("", text)
    return assemble.assemble_cached(text, architecture, options=options, fast=fast).cubin, (_NO_SETMAXNREG,)


def _with_few(ptx: str, architecture: str, most: int, options: tuple[str, ...]) -> assemble.Assembled | None:
    """With the first number of registers that is not below the plain kernel's and has hooks spill little; None if there is none."""
    for registers in (number for number in _FEW if number >= most):
        capped = cap_bounded_kernels(ptx, registers)
        if capped == ptx:
            return None
        found = assemble.assemble_cached(capped, architecture, options=options)
        if all(info.spill_loads <= _MOST_SPILLED for info in found.info.values()):
            return found
    return None


def cap_bounded_kernels(ptx: str, registers: int) -> str:
    """Cap the kernels that have launch bounds: for those the assembler ignores `--maxrregcount`. Lines stay where they are.

    Such a cap takes the place of the one that follows from the bounds, so it is never above what the largest CTA can start with.
    """
    module = parse(ptx)
    edits = Edits(module)
    for function in module.functions:
        given = function.directives
        bounds = [given[name] for name in ("maxntid", "reqntid") if name in given]
        if function.kind == "entry" and function.body and bounds and not given.keys() & {"maxnreg", "minnctapersm"}:
            most = min(_launchable(math.prod(map(int, bound))) for bound in bounds)
            edits.insert_at(function.body.open, f".maxnreg {min(registers, most)} ")
    return edits.apply()


def _launchable(threads: int) -> int:
    """Registers with which a CTA starts: a multiprocessor has 65,536, for warps in fours and in units of eight a thread."""
    warps = -(-threads // 128) * 4
    return min((1 << 16) // (32 * max(warps, 4)) // 8 * 8, 255)
