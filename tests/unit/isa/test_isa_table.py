"""The opcode table's own rules: exactness, the orders that ptxas allows, statuses, roles and semantics."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from consan.instrument.isa import ROWS, STATUSES, MemoryAccess, Row, canonical, destinations, is_memory_or_sync, lookup, sources
from consan.instrument.isa.classes import COMMON
from consan.instrument.isa.grammar import expand_form, match_free, match_ordered
from consan.instrument.isa.roles import align_roles, parse_notation
from consan.instrument.isa.table import alternatives
from consan.instrument.ptx import Instruction, parse

_MODULE = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred p;\n{};\n}}\n"


def instruction(text: str) -> Instruction:
    body = parse(_MODULE.format(text)).functions[0].body
    assert body is not None
    return next(iter(body.instructions()))


def row_of(opcode: str) -> Row:
    row = lookup(tuple(opcode.split(".")))
    assert row is not None
    return row


def describe(text: str) -> MemoryAccess:
    parsed = instruction(text)
    return row_of(parsed.opcode).describe(parsed)


@pytest.mark.parametrize(
    "opcode",
    [
        "ld.shared.v3.b32",  # no such vector
        "ld.shared",  # no type
        "ld.shared.b32.v2",  # vector after the type
        "ld.shared.b32.b32",
        "ld.global.shared.b32",
        "ld.acquire.b32",  # acquire needs a scope
        "ld.sharedx.b32",  # nothing is matched by prefix
        "ld.release.gpu.b32",
        "st.acquire.gpu.b32",
        "st.const.b32",
        "atom.add.f16",  # .noftz is mandatory
        "atom.add.b16",  # 16 bits for compare-and-swap only
        "atom.shared.add.v2.f32",  # vectors in global memory only
        "red.cas.b32",
        "red.acquire.gpu.add.u32",
        "bar.sync.aligned",
        "bar.warp",
        "fence.sc",
        "membar.gpu",
        "mbarrier.arrive.release.shared.b64",  # semantics without scope
        "mbarrier.try_wait.parity.release.cta.b64",
        "cp.async.shared.global",  # neither .ca nor .cg
        "cp.async.ca.global.shared",
        "cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes",
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16",
        "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16",
        "setp.eq.and.pred",
        "cvt.f32",
        "dp2a.s32.s32",
        "red.async.release.cluster.global.add.u32",  # the conditions of .release leave .gpu and .sys
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cta.cluster",
        "frobnicate.b32",
    ],
)
def test_what_is_not_an_instruction_has_no_row(opcode: str) -> None:
    assert lookup(tuple(opcode.split("."))) is None


@pytest.mark.parametrize(
    ("written", "manual"),
    [
        ("ld.global.acquire.gpu.b32", "ld.acquire.gpu.global.b32"),  # CUTLASS
        ("atom.global.gpu.acq_rel.add.f32", "atom.acq_rel.gpu.global.add.f32"),  # Triton
        ("atom.add.acquire.gpu.u64", "atom.acquire.gpu.add.u64"),  # libcu++
        ("atom.global.v2.f32.add", "atom.global.add.v2.f32"),
        ("ld.shared.volatile.f32", "ld.volatile.shared.f32"),
        ("mbarrier.try_wait.parity.shared::cta.acquire.cluster.b64", "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"),
        ("ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"),
        ("fence.gpu.acq_rel", "fence.acq_rel.gpu"),
        ("ld.shared.b32", "ld.shared.b32"),
    ],
)
def test_order_of_modifiers(written: str, manual: str) -> None:
    assert ".".join(canonical(tuple(written.split(".")))) == manual


def test_order_of_types_and_spaces_is_kept() -> None:
    classes = {"to": ("f32", "f16"), "from": ("f16", "f32"), "dst": ("shared::cta",), "src": ("shared::cluster",)}
    assert match_free(expand_form("cvt{.rn}.to.from", "cvt", classes)[0], ("f16", "rn", "f32")) == {"rn": "rn", "to": "f16", "from": "f32"}
    assert match_free(expand_form("cp.dst.src", "cp", classes)[0], ("shared::cluster", "shared::cta")) is None


def test_a_group_of_modifiers_is_there_whole_or_not_at_all() -> None:
    without, with_both = expand_form("m{.sem.scope}.b64", "m", {**COMMON, "sem": ("relaxed",)})
    assert match_ordered(without, ("b64",)) == {"b64": "b64"}
    assert match_ordered(with_both, ("relaxed", "cta", "b64")) == {"sem": "relaxed", "scope": "cta", "b64": "b64"}
    assert match_ordered(with_both, ("relaxed", "b64")) is None


@pytest.mark.parametrize("form", ["add .type", "add.type}", "sub.type"])
def test_bad_notation_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match="form"):
        expand_form(form, "add", {})


@pytest.mark.parametrize("notation", ["dst, [addr", "dst; src", "dst, <src"])
def test_bad_operand_notation_is_refused(notation: str) -> None:
    with pytest.raises(ValueError, match="operands"):
        parse_notation(notation)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.form}-{row.status}" for row in ROWS])
def test_row_is_well_formed_and_found(row: Row) -> None:
    """Opcodes made from a row's grammar are found, and by a row that says the same of them."""
    assert row.status in STATUSES
    assert ":" in row.section
    assert row.form.startswith(row.name)
    assert {touch.role for touch in row.touches} <= set(row.operands)
    rng = random.Random(row.form)
    for slots in row.slots:
        for _ in range(20):
            chosen = (rng.choice(sorted(slot.words)) for slot in slots if not slot.optional or rng.random() < 0.5)
            found = lookup((*row.name.split("."), *chosen))
            assert found is not None
            assert (found.family, found.status, found.operands) == (row.family, row.status, row.operands)


def test_no_row_twice() -> None:
    keys = [(row.form, row.notation, row.status, tuple(sorted(row.classes.items()))) for row in ROWS]
    assert len(set(keys)) == len(keys)


def test_what_is_modelled_is_what_the_milestone_says() -> None:
    checked = {"load", "store", "atomic", "reduction", "ldmatrix", "stmatrix", "barrier", "warp-barrier", "fence"}
    checked |= {"cp.async", "cp.async.commit", "cp.async.wait", "mbarrier", "mbarrier-fence", "proxy-fence", "bulk", "tensor", "wgmma"}
    checked |= {"tensormap"}  # in shared memory; maps in global memory are not followed
    checked |= {"cluster-barrier"}  # of clusters of one CTA; a session says what it cannot follow of larger ones
    assert {row.family for row in ROWS if row.status == "checked"} == checked
    assert {row.status for row in ROWS if row.family == "tcgen05"} == {"recorded"}


@pytest.mark.parametrize(
    ("opcode", "status"),
    [
        ("ld.b32", "checked"),
        ("ld.shared.b32", "checked"),
        ("ld.shared::cta.b32", "checked"),
        ("ld.shared::cluster.b32", "checked"),
        ("ld.param.b32", "neutral"),
        ("ld.const.b32", "neutral"),
        ("ld.local.b32", "neutral"),
        ("ld.global.nc.b32", "neutral"),
        ("ldu.global.b32", "neutral"),
        ("st.local.b32", "neutral"),
        ("st.relaxed.cluster.shared::cluster.b32", "checked"),
        ("atom.shared::cluster.add.u32", "checked"),
        ("red.shared.add.u32", "checked"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", "recorded"),
        ("tex.1d.v4.u32.s32", "recorded"),
        ("tld4.r.2d.v4.u32.f32", "recorded"),
        ("suld.b.1d.b32.trap", "recorded"),
        ("sust.b.1d.b32.clamp", "in part"),
        ("sust.p.1d.b32.trap", "not modelled"),
        ("multimem.red.global.add.u32", "in part"),
        ("fence.proxy.alias", "not modelled"),
        ("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", "recorded"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16", "recorded"),
        ("griddepcontrol.wait", "neutral"),
        ("cp.async.bulk.prefetch.L2.global", "neutral"),
    ],
)
def test_status_follows_the_space(opcode: str, status: str) -> None:
    assert row_of(opcode).status == status


# Families whose instructions touch no memory and order nothing (sections 9.7.1 to 9.7.12 and the warp-wide exchanges of 9.7.13, which 8.9.4
# does not name); queries of textures and surfaces; hints to caches; addresses; the mma of registers.
_WITHOUT_EFFECT = frozenset(
    ("arithmetic", "control", "call", "warp-collective", "mma", "address", "cluster-address", "special", "cache", "texture", "surface")
)
_PRIVATE = frozenset(("const", "local", "param"))  # a thread's own, or read only
# What is neutral and has an effect, and who follows it.
_FOLLOWED = {
    "ld.global.nc": "R-GM13: recorded with the loads",
    "ldu": "recorded with the loads",
    "discard": "recorded as a write to global memory",
    "griddepcontrol": "R-GM14: an order of launches",
    "call": "functions are followed; test_unseen_targets",
    "cp.async.bulk.prefetch": "a hint",
    "cp.async.bulk.prefetch.tensor": "a hint",
}


@pytest.mark.parametrize("row", [row for row in ROWS if row.status == "neutral"], ids=lambda row: row.form)
def test_a_neutral_form_touches_no_memory_and_orders_nothing(row: Row) -> None:
    if ("ld.global.nc" if ".nc" in row.form else row.name) in _FOLLOWED:
        return
    spaces = {space.partition("::")[0] for touch in row.touches for space in row.classes.get(touch.space, (touch.space,))}
    private = spaces <= _PRIVATE
    assert private, spaces
    assert row.touches or row.family in _WITHOUT_EFFECT
    # The semantics that `ld` and `st` may have there bind nobody: no other thread sees these spaces.
    assert row.touches or (not row.ordering and row.default.sem == "weak" and row.completion == "sync")


def test_the_texts_of_textures_and_surfaces_that_access_memory_are_not_neutral() -> None:
    accessing = {"tex", "tld4", "suld", "sust", "sured"}
    assert {row.name for row in ROWS if row.family in ("texture", "surface") and row.status != "neutral"} == accessing
    assert {row.form.partition(".geom")[0] for row in ROWS if row.status == "not modelled"} >= {"sust.p"}


@pytest.mark.parametrize(
    ("text", "sem", "scope", "strong"),
    [
        ("ld.shared.b32 %r1, [%r2]", "weak", "none", False),
        ("ld.weak.shared.b32 %r1, [%r2]", "weak", "none", False),
        ("ld.relaxed.cta.shared.b32 %r1, [%r2]", "relaxed", "cta", True),
        ("ld.volatile.shared.b32 %r1, [%r2]", "volatile", "sys", True),
        ("ld.mmio.relaxed.sys.global.b32 %r1, [%rd2]", "mmio", "sys", True),
        ("st.release.cluster.shared.b32 [%r2], %r1", "release", "cluster", True),
        ("atom.shared.add.u32 %r1, [%r2], 1", "relaxed", "gpu", True),
        ("atom.acq_rel.sys.global.add.u32 %r1, [%rd2], 1", "acq_rel", "sys", True),
        ("red.release.gpu.global.add.u32 [%rd2], 1", "release", "gpu", True),
        ("multimem.st.weak.global.b32 [%rd2], %r1", "weak", "none", False),
        ("multimem.st.global.b32 [%rd2], %r1", "weak", "none", False),  # 9.7.9.14: these default to weak
        ("multimem.ld_reduce.global.add.u32 %r1, [%rd2]", "weak", "none", False),
        ("multimem.red.global.add.u32 [%rd2], %r1", "relaxed", "sys", True),
        ("red.async.release.sys.global.add.u32 [%rd2], %r1", "release", "sys", True),
        ("fence.acq_rel.cta", "acq_rel", "cta", True),
        ("fence.sc.gpu", "sc", "gpu", True),
        ("fence.cta", "acq_rel", "cta", True),
        ("membar.gl", "sc", "gpu", True),
        ("bar.sync 0", "acq_rel", "cta", True),
        ("bar.arrive 1, 64", "release", "cta", True),
        ("barrier.cluster.arrive", "release", "cluster", True),
        ("barrier.cluster.arrive.relaxed", "relaxed", "cluster", True),
        ("barrier.cluster.wait", "acquire", "cluster", True),
        ("fence.proxy.tensormap::generic.release.gpu", "release", "gpu", True),
        ("add.s32 %r1, %r2, %r3", "weak", "none", False),
    ],
)
def test_semantics(text: str, sem: str, scope: str, strong: bool) -> None:
    access = describe(text)
    assert (access.sem, access.scope, access.is_strong) == (sem, scope, strong)


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("cp.async.ca.shared.global [%r1], [%rd1], 8", ("dst-addr", "src-addr", "size")),
        ("cp.async.ca.shared.global [%r1], [%rd1], 8, %r2", ("dst-addr", "src-addr", "size", "src-size")),
        ("cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 8, %rd2", ("dst-addr", "src-addr", "size", "policy")),
        ("cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 8, %r2, %rd2", ("dst-addr", "src-addr", "size", "src-size", "policy")),
        ("barrier.sync 1", ("barrier",)),
        ("barrier.sync 1, 64", ("barrier", "count")),
        ("bar.red.popc.u32 %r1, 0, %p1", ("dst", "barrier", "src")),
        ("bar.red.popc.u32 %r1, 0, 64, !%p1", ("dst", "barrier", "count", "src")),
        ("call f", ("func",)),
        ("call (r), f, (a, b)", ("dst", "func", "args")),
        ("call (r), %rd1, (a), proto", ("dst", "func", "args", "targets")),
        ("call %rd1, (a), proto", ("func", "args", "targets")),
        ("call %rd1, proto", ("func", "targets")),
        ("cp.async.bulk.wait_group.read 1", ("group-count",)),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1", ("taddr", "a", "b-desc", "idesc", "enable")),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1], [%r9], %rd2, %r2, 1, 2", ("taddr", "a", "b-desc", "idesc", "enable", "scale-d")),
        (
            "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, {%r3, %r4, %r5, %r6}, %p1, 2",
            ("taddr", "a", "b-desc", "idesc", "disabled", "enable", "scale-d"),
        ),
        (
            "tcgen05.mma.sp.cta_group::2.kind::mxf4.block_scale.block32 [%r1], [%r9], %rd2, [%r3], %r2, [%r4], [%r5], %p1",
            ("taddr", "a", "b-desc", "meta", "idesc", "scale-a", "scale-b", "enable"),
        ),
        (
            "tcgen05.mma.ws.sp.cta_group::1.kind::i8.collector::b1::fill [%r1], %rd1, %rd2, [%r3], %r2, %p1, %rd4",
            ("taddr", "a", "b-desc", "meta", "idesc", "enable", "zero-columns"),
        ),
        ("tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r1], 4, {%r2}", ("taddr", "half", "src")),
        ("tcgen05.cp.cta_group::1.warpx4.32x128b [%r1], %rd1", ("taddr", "desc")),
        (
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %rs1",
            ("mbar", "cta-mask"),
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%r1], [%rd1, {%r2, %r3}], [%r4], %rs1",
            ("dst-addr", "tensor", "mbar", "cta-mask"),
        ),
        (
            "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint "
            "[%r1], [%rd1, {%r2, %r3, %r4}], [%r5], {%rs1}, %rd2",
            ("dst-addr", "tensor", "mbar", "im2col", "policy"),
        ),
    ],
)
def test_roles(text: str, roles: tuple[str, ...]) -> None:
    parsed = instruction(text)
    assert row_of(parsed.opcode).roles(parsed) == roles


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("@!p ld.shared.v2.b32 {%r1, _}, [%r2+4]", ("%r1",), ("p", "%r2")),
        ("st.shared.v2.b32 [%r2], {%r1, 0}", (), ("%r2", "%r1")),
        ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3", ("%p1", "%p2"), ("%r1", "%r2", "%p3")),
        ("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1", ("%r1", "%p1"), ("%r2",)),
        ("mov.b64 {%r1, %r2}, %rd1", ("%r1", "%r2"), ("%rd1",)),
        ("mov.u32 %r1, %tid.x", ("%r1",), ("%tid",)),
        ("atom.shared.cas.b32 %r1, [%r2], %r3, %r4", ("%r1",), ("%r2", "%r3", "%r4")),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1]", (), ("%r1",)),
        ("bra $L1", (), ()),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0",
            ("%f1", "%f2", "%f3", "%f4"),
            ("%f1", "%f2", "%f3", "%f4", "%rd1", "%rd2", "%p1"),
        ),
    ],
)
def test_registers_written_and_read(text: str, written: tuple[str, ...], read: tuple[str, ...]) -> None:
    parsed = instruction(text)
    assert destinations(parsed) == written
    assert sources(parsed) == read


class _Fake(NamedTuple):
    parts: tuple[str, ...]
    operands: tuple[object, ...] = ()


def test_operands_that_do_not_fit_and_opcodes_without_a_row_are_errors() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        align_roles(parse_notation("dst, src"), (1, 2, 3), {})
    with pytest.raises(LookupError, match=r"frobnicate\.b32"):
        destinations(_Fake(("frobnicate", "b32")))


def test_ldmatrix_and_stmatrix_touch_a_row_of_16_bytes() -> None:
    access = describe("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3]")
    assert (access.space, access.access, access.total_bytes, access.is_strong) == ("shared", "read", 16, False)
    lanes = {"m8n8.x1.shared.b16": 8, "m8n8.x2.trans.shared.b16": 16, "m8n8.x4.b16": 32, "m16n16.x1.trans.shared.b8": 16}
    for tail, count in lanes.items():
        parts = ("ldmatrix", "sync", "aligned", *tail.split("."))
        assert row_of(".".join(parts)).address_lanes(parts) == count
    assert row_of("ld.shared.b32").address_lanes(("ld", "shared", "b32")) == 32


@pytest.mark.parametrize(
    ("text", "width", "count"),
    [
        ("ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r1]", 4, 4),
        ("ld.v2.b64 {%rd1, %rd2}, [%rd3]", 8, 2),
        ("st.shared.b128 [%r1], %rq1", 16, 1),
        ("st.shared.u8 [%r1], %rs1", 1, 1),
        ("atom.shared.add.noftz.f16x2 %r1, [%r2], %r3", 4, 1),
        ("atom.global.cas.b16 %rs1, [%rd2], %rs3, %rs4", 2, 1),
        ("cp.async.ca.shared.global [%r1], [%rd1], 8", 8, 1),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3]", 0, 1),
    ],
)
def test_widths(text: str, width: int, count: int) -> None:
    access = describe(text)
    assert (access.width_bytes, access.count, access.total_bytes) == (width, count, width * count)


def test_asynchronous_copies_tell_both_sides_and_the_barrier() -> None:
    parsed = instruction("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 4096, [%r3]")
    row = row_of(parsed.opcode)
    read, write, barrier = row.accesses(parsed)
    assert [(a.access, a.qualified_space, a.proxy, a.total_bytes) for a in (read, write, barrier)] == [
        ("read", "global", "async", 4096),
        ("write", "shared::cluster", "async", 4096),
        ("rmw", "shared::cluster", "generic", 8),
    ]
    assert [a.address for a in (read, write, barrier)] == [parsed.operands[each] for each in (1, 0, 3)]
    assert row.completion == "mbarrier"


def test_unknown_memory_opcodes_are_not_overlooked() -> None:
    assert is_memory_or_sync(("ld", "shared", "frob", "b32"))
    assert is_memory_or_sync(("tcgen06", "ld"))
    assert is_memory_or_sync(("fence", "proxy", "new"))
    assert not is_memory_or_sync(("add", "frob", "f32"))
    assert not is_memory_or_sync(("add", "f32"))
    assert not is_memory_or_sync(("griddepcontrol", "wait"))


@pytest.mark.parametrize(
    ("opcode", "wrong", "fitting"),
    [
        ("tcgen05.ld.sync.aligned.32x32b.x3.b32", "x3", "x1 x2 x4 x8 x16 x32 x64 x128"),
        ("tcgen05.mma.cta_group::3.kind::f16", "cta_group::3", "cta_group::1 cta_group::2"),
        ("tcgen05.mma.cta_group::1.kind::mxf4", "kind::mxf4", "kind::i8 kind::f16 kind::tf32 kind::f8f6f4"),
        ("ld.global.b48", "b48", "b8 f32 s8 u8 b16 b32 b64 f64 s16 s32 s64 u16 u32 u64 b128"),
        ("tcgen05.mma.cta_group::1.kind::f16", "", ""),
        ("tcgen05.ld.sync.32x32b.x3.b32", "", ""),
    ],
)
def test_what_fits_in_place_of_a_modifier(opcode: str, wrong: str, fitting: str) -> None:
    found, words = alternatives(tuple(opcode.split(".")))
    assert (found, set(words)) == (wrong, set(fitting.split()))
    assert list(words) == sorted(words, key=lambda word: (len(word), word))


def test_stores_and_reductions_that_signal_an_mbarrier_are_of_the_generic_proxy() -> None:
    """9.7.9.25.2 names the copies in bulk as of the asynchronous proxy, 9.7.15.4 the products; no text names st.async or red.async."""
    of_bulk = {row.name: row.proxy for row in ROWS if row.family == "bulk" and row.status == "checked" and row.completion == "mbarrier"}
    assert {name for name, proxy in of_bulk.items() if proxy == "generic"} == {"st.async", "red.async"}
    assert "async" in of_bulk.values()


def test_a_reduction_that_signals_an_mbarrier_has_no_release() -> None:
    form = "red.async.{}.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
    assert lookup(tuple(form.format("relaxed").split("."))) is not None
    assert lookup(tuple(form.format("release").split("."))) is None
