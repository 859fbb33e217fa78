"""Names of template kernels: from a C++ name expression to the mangled name in the PTX.

Each expression gets a probe kernel that takes its address: that instantiates the template, and the probe's body names the symbol. The
probes are cut out of the PTX before anything else sees it.

Not handled: name expressions of variables.
"""

from __future__ import annotations

from collections.abc import Sequence

from consan._errors import InternalError
from consan.instrument.isa import row_of
from consan.instrument.ptx import Edits, Function, Symbol, parse

_PREFIX = "__consan_name_"


def probes(expressions: Sequence[str]) -> str:
    """Source to append."""
    lines = (
        f'extern "C" __global__ void {_PREFIX}{index}(const void **p) {{ *p = (const void *)({text}); }}\n'
        for index, text in enumerate(expressions)
    )
    return "\n" + "".join(lines) if expressions else ""


def lower(ptx: str, expressions: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The PTX without the probes, and the mangled name of each expression."""
    if not expressions:
        return ptx, {}
    module = parse(ptx)
    found = [function for function in module.functions if function.name.startswith(_PREFIX)]
    edits = Edits(module)
    for function in found:
        edits.replace(function, "")
    return edits.apply(), {expressions[int(function.name.removeprefix(_PREFIX))]: _taken(function) for function in found}


def _taken(probe: Function) -> str:
    """The symbol whose address the probe stores."""
    moves = (instruction for instruction in probe.instructions() if row_of(instruction).moves)
    operands = (operand for instruction in moves for operand in instruction.operands)
    name = next((operand.name for operand in operands if isinstance(operand, Symbol)), None)
    if name is None:
        raise InternalError(f"{probe.name}: NVRTC emitted no address of the kernel")
    return name
