"""Rows of control flow, calls, warp-wide exchanges, stack, texture, surface and miscellaneous instructions.

PTX ISA 9.7.9.5, 9.7.9.6 (shfl), 9.7.10 (texture), 9.7.11 (surface), 9.7.12 (control flow), 9.7.13.8 to 9.7.13.14 (vote, match,
activemask, redux, griddepcontrol, elect), 9.7.17 (stack) and 9.7.19 (miscellaneous).

All but the accesses of textures and surfaces are neutral. The warp-wide exchanges order no memory (only `bar.warp.sync` does). Surfaces
are arrays that no address reaches: the bytes of a surface are named by its handle and the coordinates. `.clamp` moves coordinates to
the border of an array whose extents are not known here, and the size of a sample of `sust.p` is not known. The bytes that a texture reads
are named by its handle and, where the text gives it, the number of the element: the checker asks the texture object for the bytes. Queries
read no memory that a kernel writes. Labels, functions and tables of branch targets have operand roles of their own, so that they are not
taken for registers.
"""

from __future__ import annotations

from typing import Any

from consan.instrument.effects import Fence, GlobalRead, GlobalWrite, GridWait, Observe, Publish
from consan.instrument.effects.makes import makes
from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import rows

__all__ = ["ROWS"]

# Comments that `consan.h` puts into the text (ptx/source.py). `release` and `acquire` order at .gpu scope what is named by an address.
_ANNOTATIONS = "consan.h: annotations"
_ORDERS: dict[str, Any] = {"status": "recorded", "scope": "gpu", "makes": (makes(Observe, words="addr"), makes(Publish, words="addr"))}
_OWN_PUT_BEGINS = makes(Fence, of_puts=True, own_puts=True)
_SYS: dict[str, Any] = {"sem": "acq_rel", "scope": "sys"}
ANNOTATIONS: list[Row] = [
    *rows(_ANNOTATIONS, "annotation", "consan_release [addr]", action="release", sem="release", **_ORDERS),
    *rows(_ANNOTATIONS, "annotation", "consan_acquire [addr]", action="acquire", sem="acquire", **_ORDERS),
    *rows(_ANNOTATIONS, "annotation", "consan_ignore_begin", status="recorded", action="begin"),
    *rows(_ANNOTATIONS, "annotation", "consan_ignore_end", status="recorded", action="end"),
    *rows("nvshmem.h: fence", "annotation", "consan_put_fence", status="recorded", action="puts", makes=makes(Fence, of_puts=True), **_SYS),
    *rows("nvshmem.h: a put", "annotation", "consan_put_begin", status="recorded", action="puts", makes=_OWN_PUT_BEGINS, **_SYS),
    *rows("nvshmem.h: a put", "annotation", "consan_put_end", status="recorded", action="puts", makes=makes(Fence, own_puts=True), **_SYS),
]

CONTROL: list[Row] = [
    *rows("Control Flow Instructions: bra", "control", "bra{.uni} label", flow="branch"),
    *rows("Control Flow Instructions: brx.idx", "control", "brx.idx{.uni} src, targets", name="brx.idx", flow="table"),
    *rows("Control Flow Instructions: ret", "control", "ret{.uni}", flow="return"),
    *rows("Control Flow Instructions: exit", "control", "exit", flow="exit"),
    *rows("Control Flow Instructions: call", "call", "call{.uni} {(dst), }func{, (args)}{, targets}", flow="call"),
]

WARP: list[Row] = [
    *rows(
        "Data Movement and Conversion Instructions: shfl (deprecated), shfl.sync",
        "warp-collective",
        """
        shfl.mode.b32 dst, src, src, src
        shfl.sync.mode.b32 dst, src, src, src, mask
        """,
        classes={"mode": "up down bfly idx"},
    ),
    *rows(
        "Parallel Synchronization and Communication Instructions: vote (deprecated), vote.sync",
        "warp-collective",
        """
        vote.mode.pred dst, src
        vote.ballot.b32 dst, src
        vote.sync.mode.pred dst, src, mask
        vote.sync.ballot.b32 dst, src, mask
        """,
        classes={"mode": "all any uni"},
    ),
    *rows(
        "Parallel Synchronization and Communication Instructions: match.sync",
        "warp-collective",
        "match.mode.sync.type dst, src, mask",
        classes={"mode": "any all", "type": "b32 b64"},
    ),
    *rows("Parallel Synchronization and Communication Instructions: activemask", "warp-collective", "activemask.b32 dst", action="active"),
    *rows(
        "Parallel Synchronization and Communication Instructions: redux.sync",
        "warp-collective",
        """
        redux.sync.op.type dst, src, mask
        redux.sync.bits.b32 dst, src, mask
        redux.sync.extremum{.abs}{.NaN}.f32 dst, src, mask
        """,
        classes={"op": "add min max", "type": "u32 s32", "bits": "and or xor", "extremum": "min max"},
    ),
    *rows("Parallel Synchronization and Communication Instructions: elect.sync", "warp-collective", "elect.sync dst, mask"),
]

_STACK = "Stack Manipulation Instructions: stacksave, stackrestore, alloca"
_GRIDS = "Parallel Synchronization and Communication Instructions: griddepcontrol"
_POINTER = {"type": "u32 u64"}

MISCELLANEOUS: list[Row] = [
    *rows(_GRIDS, "special", "griddepcontrol.launch_dependents", action="grid"),
    *rows(_GRIDS, "special", "griddepcontrol.wait", action="grid-wait", makes=makes(GridWait)),
    *rows("Miscellaneous Instructions: brkpt", "special", "brkpt", flow="break"),
    *rows("Miscellaneous Instructions: nanosleep", "special", "nanosleep.u32 src", action="sleep"),
    *rows("Miscellaneous Instructions: pmevent", "special", "pmevent{.mask} imm"),
    *rows("Miscellaneous Instructions: trap", "control", "trap", flow="trap"),
    *rows(
        "Miscellaneous Instructions: setmaxnreg",
        "special",
        "setmaxnreg.how.sync.aligned.u32 imm",
        classes={"how": "inc dec"},
        action="registers",
    ),
    *rows(_STACK, "special", "stacksave.type dst", action="save", classes=_POINTER),
    *rows(_STACK, "special", "stackrestore.type src", action="restore", classes=_POINTER),
    *rows(_STACK, "special", "alloca.type dst, size{, imm}", action="alloca", classes=_POINTER),
]

_TEXTURE = {
    "geom": "1d 2d 3d a1d a2d cube acube 2dms a2dms",
    "lod": "base level grad",
    "dtype": "u32 s32 f16 f32",
    "ctype": "s32 f32",
    "comp": "r g b a",
}
_TXQ = "width height depth channel_data_type channel_order normalized_coords array_size num_mipmap_levels num_samples"

# How many bytes a fetch reads, its texture object says. No write of the same launch comes before it, as with ld.global.nc (R-TX1).
_FETCH: dict[str, Any] = {
    "status": "recorded",
    "touch": "read texture texture 0 texture",
    "makes": makes(GlobalRead, address="texture", nc=True, bytes=1, element=1).where_checked(),
    "classes": _TEXTURE,
}


def _surface(name: str, form: str, operands: str, access: str, **columns: Any) -> list[Row]:
    """Two rows: coordinates outside of the surface reach nothing, or, with .clamp, bytes that are not known."""
    section, columns = f"Surface Instructions: {name}", {"touch": f"{access} surface surface type surface", "classes": _SURFACE, **columns}
    columns["makes"] = makes(GlobalRead if access == "read" else GlobalWrite, address="surface").where_checked()
    return [
        *rows(section, "surface", f"{form}.outside {operands}", status="recorded", **columns),
        *rows(section, "surface", f"{form}.clamp {operands}", status="in part", **columns),
    ]


TEXTURE: list[Row] = [
    *rows(
        "Texture Instructions: tex",
        "texture",
        """
        tex{.lod}.geom.v4.dtype.ctype dst, [texture]{, src}{, src}{, src}{, src}
        tex{.lod}.geom.v2.f16x2.ctype dst, [texture]{, src}{, src}{, src}{, src}
        """,
        **_FETCH,
    ),
    *rows(
        "Texture Instructions: tld4",
        "texture",
        "tld4.comp.geom.v4.dtype.f32 dst, [texture]{, src}{, src}",
        **_FETCH,
    ),
    *rows(
        "Texture Instructions: txq",
        "texture",
        """
        txq.query.b32 dst, [texture]
        txq.level.size.b32 dst, [texture], src
        """,
        classes={
            "query": _TXQ + " force_unnormalized_coords filter_mode addr_mode_0 addr_mode_1 addr_mode_2",
            "size": "width height depth",
        },
    ),
    *rows("Texture Instructions: istypep", "texture", "istypep.type dst, src", classes={"type": "texref samplerref surfref"}),
]

_SURFACE = {
    "geom": "1d 2d 3d a1d a2d",
    "loadop": "ca cg cs cv",
    "storeop": "wb cg cs wt",
    "type": "b8 b16 b32 b64",
    "vec": "v2 v4",
    "outside": "trap zero",
}
_REDUCED: dict[str, Any] = {
    "sem": "relaxed",
    "scope": "gpu",
    "classes": _SURFACE | {"geom": "1d 2d 3d", "op": "add min max and or", "type": "u32 u64 s32 b32 s64 b64"},
}

SURFACE: list[Row] = [
    *_surface("suld", "suld.b.geom{.loadop}{.vec}.type", "dst, [surface]", "read"),
    *_surface("sust", "sust.b.geom{.storeop}{.vec}.type", "[surface], src", "write"),
    *rows(
        "Surface Instructions: sust",
        "surface",
        "sust.p.geom{.vec}.b32.clamp [surface], src",
        status="not modelled",
        touch="write surface surface 0 surface",
        classes=_SURFACE | {"clamp": "trap clamp zero"},
    ),
    *_surface("sured", "sured.b.op.geom.type", "[surface], src", "rmw", **_REDUCED),
    *_surface("sured", "sured.p.op.geom.type", "[surface], src", "rmw", **_REDUCED),
    *rows(
        "Surface Instructions: suq",
        "surface",
        "suq.query.b32 dst, [surface]",
        classes={"query": "width height depth channel_data_type channel_order array_size memory_layout"},
    ),
]

ROWS: list[Row] = [*ANNOTATIONS, *CONTROL, *WARP, *MISCELLANEOUS, *TEXTURE, *SURFACE]
