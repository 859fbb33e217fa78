"""Rows of the video instructions: PTX ISA 9.7.18. They access no memory.

Operand selectors (`a.b0`) belong to the operand, not to the opcode.
"""

from __future__ import annotations

from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import arithmetic

__all__ = ["ROWS"]

_VIDEO = {"type": "u32 s32", "op2": "add min max", "cmp": "eq ne lt le gt ge", "mode": "clamp wrap", "scale": "shr7 shr15"}


def _each(names: str, template: str) -> str:
    """The same forms for several instructions."""
    return "\n".join(template.replace("NAME", name) for name in names.split())


ROWS: list[Row] = [
    *arithmetic(
        "Scalar Video Instructions: vadd, vsub, vabsdiff, vmin, vmax",
        _each("vadd vsub vabsdiff vmin vmax", "NAME.type.type.type{.sat}{.op2} dst, src, src{, src}"),
        classes=_VIDEO,
    ),
    *arithmetic(
        "Scalar Video Instructions: vshl, vshr",
        _each("vshl vshr", "NAME.type.type.u32{.sat}.mode{.op2} dst, src, src{, src}"),
        classes=_VIDEO,
    ),
    *arithmetic(
        "Scalar Video Instructions: vmad",
        "vmad.type.type.type{.po}{.sat}{.scale} dst, src, src, src",
        classes=_VIDEO,
    ),
    *arithmetic("Scalar Video Instructions: vset", "vset.type.type.cmp{.op2} dst, src, src{, src}", classes=_VIDEO),
    *arithmetic(
        "SIMD Video Instructions: vadd2, vsub2, vavrg2, vabsdiff2, vmin2, vmax2, vset2 and the same with 4",
        _each(
            "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4",
            "NAME.type.type.type{.sat} dst, src, src, src\nNAME.type.type.type.add dst, src, src, src",
        )
        + "\n"
        + _each("vset2 vset4", "NAME.type.type.cmp{.add} dst, src, src, src"),
        classes=_VIDEO,
    ),
]
