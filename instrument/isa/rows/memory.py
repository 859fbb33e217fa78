"""Rows of loads, stores, atomics, cache hints and address conversions: PTX ISA 9.7.9.8 to 9.7.9.24 and 9.7.13.4 to 9.7.13.7.

The status of a load, store or atomic follows from its state space, so the table has one row per form and group of spaces. Generic, global
and shared memory are checked, including shared memory of other CTAs of the cluster. Constants, parameters and local memory are private to
a thread or read-only, so they are neutral. An access to global memory is "checked" because it can conflict with the global side of this
CTA's own asynchronous copies. A pass that does not detect such conflicts may skip it.

`ld.volatile` and `ld.mmio` count as strong at system scope ("ld", Description); an atomic without semantics and scope is
`.relaxed.gpu` ("atom"). Not handled: the widths of `.v8` and `.b128` that only some targets allow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from consan.instrument.effects import Atomic, Fill, GlobalRead, GlobalWrite, Observe, Publish, Read, StoreAsync, Unseen, Write
from consan.instrument.effects.makes import Makes, makes
from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import rows

__all__ = ["ROWS"]

_TYPES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_MOVE = "Data Movement and Conversion Instructions: "
_SYNC = "Parallel Synchronization and Communication Instructions: "

# The effect of an access whose address is in shared memory, and of one in global memory.
_SHARED = {"read": makes(Read, at="addr"), "write": makes(Write, at="addr", value="src"), "rmw": makes(Atomic, at="addr")}
_READ = makes(GlobalRead, address="addr", nc=".nc").where_checked()
_WRITE = makes(GlobalWrite, address="addr", value="src").where_checked()
_OBSERVE, _PUBLISH = (makes(kind, words="addr").where("strong") for kind in (Observe, Publish))
_OF_THREAD = {access: (_OBSERVE, _READ if access == "read" else _WRITE, shared, _PUBLISH) for access, shared in _SHARED.items()}
_CHECKED = "global shared shared::cta"
_LOAD_PRIVATE = "local param param::entry param::func"
_STORE_PRIVATE = "local param param::func"


def _by_space(section: str, family: str, block: str, private: str, **columns: Any) -> list[Row]:
    """The forms of the block, once for each group of state spaces with the same status."""
    classes = columns.pop("classes", {})
    named = block.replace("{.ss}", ".ss")
    out = rows(section, family, block, status="checked", classes={**classes, "ss": _CHECKED}, **columns)
    if private:
        out += rows(section, family, named, status="neutral", classes={**classes, "ss": private}, **columns)
    if family == "load":  # nothing writes constant memory while the kernel runs, but for copies of the host and other launches
        out += rows(section, family, named, status="neutral", makes=_READ, classes={**classes, "ss": "const"}, **columns)
    return out + rows(section, family, named, status="checked", classes={**classes, "ss": "shared::cluster"}, **columns)


_EVICTION = "{.level1::eviction_priority}{.level2::eviction_priority}{.level::cache_hint}"

LOAD: list[Row] = [
    *_by_space(
        _MOVE + "ld",
        "load",
        f"""
        ld{{.weak}}{{.ss}}{{.cop}}{{.level::cache_hint}}{{.level::prefetch_size}}{{.vec}}.type dst, [addr]{{, policy}}
        ld{{.weak}}{{.ss}}{_EVICTION}{{.level::prefetch_size}}{{.vec}}.type dst, [addr]{{, policy}}
        """,
        _LOAD_PRIVATE,
        touch="read addr ss",
        classes={"type": _TYPES, "cop": "ca cg cs lu cv"},
    ),
    *_by_space(
        _MOVE + "ld",
        "load",
        "ld.volatile{.ss}{.level::prefetch_size}{.vec}.type dst, [addr]",
        _LOAD_PRIVATE,
        touch="read addr ss",
        scope="sys",
        ordering=("volatile",),
        classes={"type": _TYPES},
    ),
    *_by_space(
        _MOVE + "ld",
        "load",
        f"ld.sem.scope{{.ss}}{_EVICTION}{{.level::prefetch_size}}{{.vec}}.type dst, [addr]{{, policy}}",
        _LOAD_PRIVATE,
        touch="read addr ss",
        ordering=("relaxed", "acquire"),
        classes={"type": _TYPES, "sem": "relaxed acquire"},
    ),
    *rows(
        _MOVE + "ld",
        "load",
        "ld.mmio.relaxed.sys{.ss}.type dst, [addr]",
        status="checked",
        touch="read addr ss",
        scope="sys",
        ordering=("mmio",),
        classes={"type": _TYPES, "ss": "global"},
    ),
    *rows(
        _MOVE + "ld.global.nc",
        "load",
        f"""
        ld.ss{{.cop}}.nc{{.level::cache_hint}}{{.level::prefetch_size}}{{.vec}}.type dst, [addr]{{, policy}}
        ld.ss.nc{_EVICTION}{{.level::prefetch_size}}{{.vec}}.type dst, [addr]{{, policy}}
        """,
        touch="read addr ss",
        makes=_READ,
        classes={"type": _TYPES, "cop": "ca cg cs", "ss": "global"},
    ),
    *rows(  # PTX 9.4: a proxy of its own (Memory Consistency Model, "Proxies"), which no fence names
        _MOVE + "ld",
        "load",
        "ld{.ss}.type.proxy::readonly dst, [addr]",
        status="recorded",
        touch="read addr ss",
        makes=makes(GlobalRead, address="addr", nc=".proxy::readonly").where_checked(),
        classes={"type": _TYPES, "ss": "global"},
    ),
    *rows(
        _MOVE + "ldu",
        "load",
        "ldu{.ss}{.vec}.type dst, [addr]",
        touch="read addr ss",
        makes=_READ,
        classes={"type": _TYPES, "ss": "global"},
    ),
]

STORE: list[Row] = [
    *_by_space(
        _MOVE + "st",
        "store",
        f"""
        st{{.weak}}{{.ss}}{{.cop}}{{.level::cache_hint}}{{.vec}}.type [addr], src{{, policy}}
        st{{.weak}}{{.ss}}{_EVICTION}{{.vec}}.type [addr], src{{, policy}}
        """,
        _STORE_PRIVATE,
        touch="write addr ss",
        classes={"type": _TYPES, "cop": "wb cg cs wt"},
    ),
    *_by_space(
        _MOVE + "st",
        "store",
        "st.volatile{.ss}{.vec}.type [addr], src",
        _STORE_PRIVATE,
        touch="write addr ss",
        scope="sys",
        ordering=("volatile",),
        classes={"type": _TYPES},
    ),
    *_by_space(
        _MOVE + "st",
        "store",
        f"st.sem.scope{{.ss}}{_EVICTION}{{.vec}}.type [addr], src{{, policy}}",
        _STORE_PRIVATE,
        touch="write addr ss",
        ordering=("relaxed", "release"),
        classes={"type": _TYPES, "sem": "relaxed release"},
    ),
    *rows(
        _MOVE + "st",
        "store",
        "st.mmio.relaxed.sys{.ss}.type [addr], src",
        status="checked",
        touch="write addr ss",
        scope="sys",
        ordering=("mmio",),
        classes={"type": _TYPES, "ss": "global"},
    ),
]

_ATOMIC = {
    "op": "and or xor add inc dec min max",
    "halfop": "add min max",
    "type": "b32 b64 u32 u64 s32 s64 f32 f64",
    "half": "f16 f16x2 bf16 bf16x2 f32",  # f32 from PTX 9.2 on, with .add
}

_RELAXED_GPU: dict[str, Any] = {"sem": "relaxed", "scope": "gpu", "touch": "rmw addr ss"}
_ATOM_SEM = "relaxed acquire release acq_rel"
_RED_SEM = "relaxed release"


def _atom(block: str, types: str, sem: str = _ATOM_SEM) -> list[Row]:
    family = "atomic" if sem == _ATOM_SEM else "reduction"
    section = _SYNC + ("atom" if family == "atomic" else "red")
    classes = {**_ATOMIC, "sem": sem, "type": types}
    return _by_space(section, family, block, "", ordering=tuple(sem.split()), classes=classes, **_RELAXED_GPU)


def _atom_vector(block: str, types: str, sem: str = _ATOM_SEM) -> list[Row]:
    """Vector forms exist for global memory only; a generic address must point there."""
    family = "atomic" if sem == _ATOM_SEM else "reduction"
    section = _SYNC + ("atom" if family == "atomic" else "red") + " (vector type)"
    classes = {**_ATOMIC, "sem": sem, "type": types, "ss": "global"}
    return rows(section, family, block, status="checked", ordering=tuple(sem.split()), classes=classes, **_RELAXED_GPU)


ATOMIC: list[Row] = [
    *_atom("atom{.sem}{.scope}{.ss}.op{.level::cache_hint}.type dst, [addr], src{, policy}", _ATOMIC["type"]),
    *_atom("atom{.sem}{.scope}{.ss}.exch{.level::cache_hint}.type dst, [addr], src{, policy}", _ATOMIC["type"] + " b128"),
    *_atom("atom{.sem}{.scope}{.ss}.cas.type dst, [addr], src, src", _ATOMIC["type"] + " b16 b128"),
    *_atom("atom{.sem}{.scope}{.ss}.add.noftz{.level::cache_hint}.type dst, [addr], src{, policy}", _ATOMIC["half"]),
    *_atom_vector("atom{.sem}{.scope}{.ss}.add{.level::cache_hint}.vec.type dst, [addr], src{, policy}", "f32"),
    *_atom_vector("atom{.sem}{.scope}{.ss}.halfop.noftz{.level::cache_hint}.vec.type dst, [addr], src{, policy}", _ATOMIC["half"]),
    *_atom("red{.sem}{.scope}{.ss}.op{.level::cache_hint}.type [addr], src{, policy}", _ATOMIC["type"], _RED_SEM),
    *_atom("red{.sem}{.scope}{.ss}.add.noftz{.level::cache_hint}.type [addr], src{, policy}", _ATOMIC["half"], _RED_SEM),
    *_atom_vector("red{.sem}{.scope}{.ss}.add{.level::cache_hint}.vec.type [addr], src{, policy}", "f32", _RED_SEM),
    *_atom_vector("red{.sem}{.scope}{.ss}.halfop.noftz{.level::cache_hint}.vec.type [addr], src{, policy}", _ATOMIC["half"], _RED_SEM),
]


def _with_effects(row: Row) -> Row:
    return replace(row, makes=_OF_THREAD[row.access]) if row.status == "checked" else row


_MBARRIER_TX = "mbarrier::complete_tx::bytes"

_ASYNC_SUMS = "u32 s32 u64 s64"


def _async_release(name: str, family: str, form: str, access: str, types: str) -> list[Row]:
    """A strong operation on global memory that may be performed later than others of the thread ("st.async", "red.async", Conditions)."""
    classes = {"scope": "gpu sys", "ss": "global", "type": types}
    section = (_MOVE if family == "store" else _SYNC) + name
    order: dict[str, Any] = {"sem": "release", "ordering": ("release",)}
    columns: dict[str, Any] = {"status": "recorded", "touch": f"{access} addr ss", "action": "release", "makes": _OF_THREAD[access]}
    return rows(section, family, form, name=name, classes=classes, **order, **columns)


def _mmio(name: str, form: str, access: str, types: str) -> list[Row]:
    """The same, to memory of devices."""
    classes = {"scope": "sys", "ss": "global", "type": types}
    section = (_MOVE if access == "write" else _SYNC) + name
    return rows(section, "bulk", form, name=name, status="not modelled", touch=f"{access} addr ss", ordering=("release",), classes=classes)


REMOTE: list[Row] = [
    *rows(
        _MOVE + "st.async",
        "bulk",
        """
        st.async{.weak}{.ss}.completion_mechanism{.vec}.type [addr], src, [mbar]
        st.async{.scope}{.ss}.completion_mechanism{.vec}.type [addr], src, [mbar]
        """,
        name="st.async",
        status="checked",
        touch="write addr shared::cluster type; rmw mbar shared::cluster 8",
        completion="mbarrier",
        makes=makes(StoreAsync, at="addr", mbarrier_at="mbar"),
        classes={
            "scope": "cluster",
            "ss": "shared::cluster",
            "type": "b32 b64 b128 u32 u64 s32 s64 f32 f64",  # b128 from PTX 9.2 on
            "vec": "v2 v4",
            "completion_mechanism": _MBARRIER_TX,
        },
    ),
    *_async_release("st.async", "store", "st.async.release.scope{.ss}.type [addr], src", "write", _TYPES),
    *_mmio("st.async", "st.async.mmio.release.scope{.ss}.type [addr], src", "write", _TYPES),
    *rows(
        _MOVE + "st.bulk",
        "bulk",
        "st.bulk{.weak}{.ss} [addr], size, imm",
        name="st.bulk",
        makes=makes(Fill, at="addr", size="size"),
        status="checked",
        touch="write addr ss size",
        classes={"ss": "shared::cta"},
    ),
    *rows(
        _SYNC + "red.async",
        "bulk",
        "red.async.sem.scope{.ss}.completion_mechanism.op.type [addr], src, [mbar]",
        name="red.async",
        status="checked",
        touch="rmw addr shared::cluster type; rmw mbar shared::cluster 8",
        completion="mbarrier",
        makes=makes(StoreAsync, at="addr", mbarrier_at="mbar", strong=True),
        classes={
            "sem": "relaxed",
            "scope": "cluster",
            "ss": "shared::cluster",
            "op": "inc dec min max and or xor add",
            "type": "u32 s32 b32 u64",
            "completion_mechanism": _MBARRIER_TX,
        },
    ),
    *_async_release("red.async", "reduction", "red.async.release.scope{.ss}.add.type [addr], src", "rmw", _ASYNC_SUMS),
    *_mmio("red.async", "red.async.mmio.release.scope{.ss}.add.type [addr], src", "rmw", _ASYNC_SUMS),
]

_MULTIMEM = {
    "ss": "global",
    "op": "min max add and or xor",
    "type": "b32 b64 u32 u64 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64 e5m2 e5m2x2 e5m2x4 e4m3 e4m3x2 e4m3x4",
    "acc_prec": "acc::f32 acc::f16",
}


# Multimem addresses name several locations of global memory at once (8.2.3): which other addresses name them is not known. Loads and stores
# without semantics are weak, reductions relaxed at system scope (9.7.9.14).
def _of_many(access: Makes) -> tuple[Makes, ...]:
    """An access to all of them: a strong one may synchronise through memory that the log does not name."""
    return makes(Unseen).where("strong"), access.where("weak")


MULTIMEM: list[Row] = [
    *rows(
        _MOVE + "multimem.ld_reduce, multimem.st, multimem.red",
        "multimem",
        """
        multimem.ld_reduce.weak{.ss}.op{.acc_prec}{.vec}.type dst, [addr]
        multimem.ld_reduce{.sem}{.scope}{.ss}.op{.acc_prec}{.vec}.type dst, [addr]
        """,
        name="multimem.ld_reduce",
        touch="read addr global",
        ordering=("relaxed", "acquire"),
        status="in part",
        makes=_of_many(_READ),
        classes={**_MULTIMEM, "sem": "relaxed acquire"},
    ),
    *rows(
        _MOVE + "multimem.ld_reduce, multimem.st, multimem.red",
        "multimem",
        """
        multimem.st.weak{.ss}{.vec}.type [addr], src
        multimem.st{.sem}{.scope}{.ss}{.vec}.type [addr], src
        """,
        name="multimem.st",
        touch="write addr global",
        ordering=("relaxed", "release"),
        status="in part",
        makes=_of_many(_WRITE),
        classes={**_MULTIMEM, "sem": "relaxed release"},
    ),
    *rows(
        _MOVE + "multimem.ld_reduce, multimem.st, multimem.red",
        "multimem",
        "multimem.red{.sem}{.scope}{.ss}.op{.vec}.type [addr], src",
        name="multimem.red",
        touch="rmw addr global",
        sem="relaxed",
        scope="sys",
        ordering=("relaxed", "release"),
        status="in part",
        makes=_of_many(_WRITE),
        classes={**_MULTIMEM, "sem": "relaxed release"},
    ),
]

_PRIORITY = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"

_DISCARD = makes(GlobalWrite, address="addr").where_checked()

CACHE: list[Row] = [
    *rows(
        _MOVE + "prefetch, prefetchu",
        "cache",
        """
        prefetch{.space}.level [addr]
        prefetch.global.priority [addr]
        prefetch{.map_space}.tensormap [addr]
        prefetchu.L1 [addr]
        """,
        classes={"space": "global local", "level": "L1 L2", "priority": "L2::evict_last L2::evict_normal", "map_space": "const param"},
    ),
    *rows(_MOVE + "applypriority", "cache", "applypriority{.global}.L2::evict_normal [addr], size"),
    # The contents of the bytes afterwards are not known: a write ("discard").
    *rows(_MOVE + "discard", "cache", "discard{.global}.L2 [addr], size", touch="write addr global size", makes=_DISCARD),
    *rows(
        _MOVE + "createpolicy",
        "cache",
        """
        createpolicy.range{.global}.primary{.secondary}.b64 dst, [addr], size, size
        createpolicy.fractional.primary{.secondary}.b64 dst{, src}
        createpolicy.cvt.L2.b64 dst, src
        """,
        classes={"primary": _PRIORITY, "secondary": "L2::evict_first L2::evict_unchanged"},
    ),
]

_ADDRESSABLE = {"space": "const global local shared shared::cta shared::cluster param param::entry", "type": "u32 u64"}

ADDRESS: list[Row] = [
    *rows(_MOVE + "isspacep", "address", "isspacep.space dst, src", classes=_ADDRESSABLE),
    *rows(_MOVE + "cvta", "address", "cvta{.to}.space.type dst, src", action="convert", classes=_ADDRESSABLE),
    *rows(
        _MOVE + "mapa",
        "cluster-address",
        "mapa{.space}.type dst, src, src",
        action="map",
        status="neutral",
        classes={"space": "shared::cluster", "type": "u32 u64"},
    ),
    *rows(
        _MOVE + "getctarank",
        "cluster-address",
        "getctarank{.space}.type dst, src",
        status="neutral",
        classes={"space": "shared::cluster", "type": "u32 u64"},
    ),
]

ROWS: list[Row] = [*map(_with_effects, (*LOAD, *STORE, *ATOMIC)), *REMOTE, *MULTIMEM, *CACHE, *ADDRESS]
