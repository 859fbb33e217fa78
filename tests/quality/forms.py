"""Makes the guide's table of instruction forms (tutorials/guide/forms.md) from the opcode table, the recorder and the virtual machine.

python tests/quality/forms.py > tutorials/guide/forms.md

"recorded" is asked of the recorder: for each form, and for each word of its modifiers, an instruction is made and a kernel with it judged.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from consan.backends.cpu.engine.control import ENDS
from consan.backends.cpu.semantics.dispatch import STEPS
from consan.backends.cpu.semantics.ops import OPERATIONS, atomic_function
from consan.backends.cpu.semantics.tensor import MODES
from consan.instrument.functions.analyse import plan_functions
from consan.instrument.isa import ROWS, Row
from consan.instrument.isa.roles import signalled
from consan.instrument.ptx import parse
from consan.instrument.record.recordable import refusals

HEAD = """# Instruction forms

Made from the opcode table by `python tests/quality/forms.py`; a test holds that it is current. Each line is a form of the
[PTX ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/) as the manual writes it, with its optional modifiers in braces.

| column | |
|---|---|
| checked | what `--engine record`, the default, follows |
| hooks | what called hooks (`--engine inline`) follow, but for single modifiers |
| CPU | what the virtual machine executes |

`-`: it touches no memory that another thread sees, and orders nothing. A kernel that can reach a form that its engine does not
follow, or follows in part, is `incomplete`, and the report names the instruction.

"""
PRIVATE = {"param", "local", "const"}
LACKING = {"a2dms"}  # textures of several samples cannot be made by the CUDA API
_MODES = {"im2col::w", "im2col::w::128", *MODES}
_TIMES = Counter(row.form for row in ROWS)
REGISTERS = ".reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<4>; .reg .b16 %h<4>;"
MODULE = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 q) {{\n{}\n{}\nret;\n}}\n"
# Operands of samples by role; a register of 32 bits for all others.
OPERANDS = {
    "tensor": "[%d1, {%r1, %r2}]", "mbar": "[%r1]", "taddr": "[%r1]", "surface": "[%d1, {%r1}]", "texture": "[%d1, {%r1}]",
    "imm": "0", "size": "16", "barrier": "0", "count": "32", "group-count": "0", "half": "2", "columns": "32", "enable": "%p1",
    "a": "%d1", "b-desc": "%d1", "desc": "%d1", "policy": "%d1", "state": "%d1", "cta-mask": "%h1", "byte-mask": "%h1", "im2col": "{%h1}",
}  # fmt: skip


def executes(row: Row) -> bool:
    """Whether the virtual machine executes a form."""
    ends = row.flow or row.suspends or row.family == "barrier"
    return (row.flow or row.family) in ENDS if ends else bool({row.form, row.name} & (STEPS.keys() | OPERATIONS.keys()))


def follows(row: Row) -> bool:
    """Whether there is something to follow: memory that others see, or an order."""
    touched = {space.partition("::")[0] for touch in row.touches for space in row.classes.get(touch.space, (touch.space,))}
    return row.status != "neutral" or bool(touched - PRIVATE) or row.action == "grid-wait"


def _given(row: Row, words: tuple[str, ...]) -> Iterator[str]:
    """The operands of an opcode, of the optional ones those that it asks for."""
    modifiers = row.modifiers(words)
    for spec in row.specs:
        if not spec.optional or signalled(spec, modifiers):
            yield OPERANDS.get(spec.role, "[%d1]" if spec.shape == "address" else "%r1")


def samples(row: Row) -> Iterator[tuple[str, str]]:
    """Instructions: a plain one, and one for each word of each modifier, with that word."""
    slots = row.slots[-1]
    plain = [("" if slot.optional else min(slot.words)) for slot in slots]
    for place, word in [(-1, ""), *((place, word) for place, slot in enumerate(slots) for word in sorted(slot.words))]:
        chosen = tuple(word if at == place else each for at, each in enumerate(plain))
        words = (*row.name.split("."), *filter(None, chosen))
        yield word, f"{'.'.join(words)} {', '.join(_given(row, words))};"


def refused(row: Row) -> list[str] | None:
    """The words with which the recorder does not take a form; None if it does not take the form."""
    words = []
    for word, text in samples(row):
        plans = plan_functions(parse(MODULE.format(REGISTERS, text)), recorded=True)
        taken = not plans["k"].stats.unmodelled and not any("not recorded" in why for why in refusals(plans, global_races=True).values())
        if not taken and not word:
            return None
        words += [] if taken else [word]
    return words


def _checked(row: Row) -> str:
    if not follows(row):
        return "-"
    if row.status in ("neutral", "not modelled") or row.family == "annotation":
        return "no" if row.status == "not modelled" else "yes"
    if row.status == "in part":
        return "in part"
    words = refused(row)
    return "no" if words is None else f"not with {' '.join(f'`.{word}`' for word in words)}" if words else "yes"


def _hooks(row: Row) -> str:
    return "-" if not follows(row) else "yes" if row.status == "checked" else "no"


def _executed(row: Row) -> str:
    if not executes(row):
        return "no"
    small = _without_sums(row) if row.name == "multimem.red" else set()
    lacking = [word for word in _words(row) if word in LACKING | small or (row.is_tensor_copy and row.touches and word in _MODES - MODES)]
    return f"not with {' '.join(f'`.{word}`' for word in lacking)}" if lacking else "yes"


def _without_sums(row: Row) -> set[str]:
    """The types that the machine does not reduce."""
    return {word for word in row.classes["type"] if not any(atomic_function(operation, word) for operation in row.classes["op"])}


def _words(row: Row) -> list[str]:
    return sorted({word for slots in row.slots for slot in slots for word in slot.words})


def _form(row: Row) -> str:
    """The form, with its state spaces where other rows have the same form with others."""
    shown = f"`{row.form}`"
    spaces = row.classes.get("ss", ()) if _TIMES[row.form] > 1 else ()
    return f"{shown} ({', '.join(f'`.{space}`' for space in spaces)})" if spaces else shown


def table() -> str:
    """The page."""
    lines, rows = [HEAD], [(row, _checked(row), _hooks(row), _executed(row)) for row in ROWS]
    effects = [each for each in rows if each[1] != "-"]
    missing, parts = (sum(each[1] in words for each in effects) for words in ({"no", "in part"}, {"in part"}))
    hooks, run = sum(each[2] == "yes" for each in rows), sum(each[3] != "no" for each in rows)
    said = f"{len(effects)} touch memory or order something: {len(effects) - missing} of them are checked and {parts} in part"
    lines.append(f"Of {len(rows)} forms {said}, {hooks} by called hooks. {run} run on the CPU.\n")
    for chapter, group in itertools.groupby(rows, key=lambda each: each[0].section.partition(":")[0]):
        lines.append(f"\n## {chapter}\n\n| form | checked | hooks | CPU |\n|---|---|---|---|\n")
        lines += [f"| {_form(row)} | {' | '.join(rest)} |\n" for row, *rest in group]
    return "".join(lines)


if __name__ == "__main__":
    print(table(), end="")
