"""Rows of barriers, fences, non-bulk asynchronous copies and tensor-map updates. Those of mbarriers are in mbarriers.py.

PTX ISA 9.7.13.1 to 9.7.13.4 (bar, barrier, bar.warp.sync, barrier.cluster, membar, fence), 9.7.13.16 to 9.7.13.18
(tensormap.cp_fenceproxy, clusterlaunchcontrol), 9.7.9.25 (cp.async) and 9.7.9.28 (tensormap.replace).

Checked: barriers of a CTA, a warp and a cluster, thread fences, cp.async with its groups, proxy fences, tensor maps in shared
memory. `fence` without semantics is `.acq_rel`, and `membar` is `fence.sc` ("membar / fence", Description). `bar.X` is
`barrier.X.aligned`. A CTA barrier orders the participants' accesses like an acquire-release at CTA scope. The roles `barrier` and `count`
tell which of its operands are present.
"""

from __future__ import annotations

from typing import Any

from consan.instrument.effects import (
    ClusterBarrierArrive,
    ClusterBarrierWait,
    CopyCommit,
    CopyIssue,
    CopyWait,
    CtaBarrier,
    Fence,
    GlobalWrite,
    InitsFence,
    LaunchAnswer,
    LaunchRequest,
    MapFence,
    MbarrierCopies,
    ProxyFence,
    Read,
    WarpSync,
    Write,
)
from consan.instrument.effects.makes import Makes, makes
from consan.instrument.isa.model import Row
from consan.instrument.isa.rows.build import rows

__all__ = ["ROWS"]

_MOVE = "Data Movement and Conversion Instructions: "
_SYNC = "Parallel Synchronization and Communication Instructions: "

_WHOLE: dict[str, Any] = {
    "status": "checked",
    "sem": "acq_rel",
    "scope": "cta",
    "ordering": ("acquire", "release"),
    "makes": makes(CtaBarrier, id="barrier", threads="count", waits=True),
    "classes": {"op": "and or"},
}
_HALF: dict[str, Any] = {"status": "checked", "sem": "release", "scope": "cta", "ordering": ("release",), "action": "arrive"}
_HALF |= {"makes": makes(CtaBarrier, id="barrier", threads="count")}
_REDUCTION = """
        {name}{{.cta}}.red.popc{aligned}.u32 dst, barrier{{, count}}, src
        {name}{{.cta}}.red.op{aligned}.pred dst, barrier{{, count}}, src
        """


def _cta_barrier(name: str, modifier: str, **columns: Any) -> list[Row]:
    section = _SYNC + "bar, barrier"
    return [
        *rows(section, "barrier", f"{name}{{.cta}}.sync{modifier} barrier{{, count}}", action="sync", **_WHOLE, **columns),
        *rows(section, "barrier", _REDUCTION.format(name=name, aligned=modifier), action="red", **_WHOLE, **columns),
        *rows(section, "barrier", f"{name}{{.cta}}.arrive{modifier} barrier, count", **_HALF, **columns),
    ]


BARRIER: list[Row] = [
    *_cta_barrier("barrier", "{.aligned}"),
    *_cta_barrier("bar", "", aligned=True),
    *rows(
        _SYNC + "bar.warp.sync",
        "warp-barrier",
        "bar.warp.sync mask",
        name="bar.warp",
        makes=makes(WarpSync, mask="mask"),
        action="sync",
        status="checked",
        sem="acq_rel",
        scope="cta",
        ordering=("acquire", "release"),
    ),
    *rows(
        _SYNC + "barrier.cluster",
        "cluster-barrier",
        "barrier.cluster.arrive{.sem}{.aligned}",
        makes=makes(ClusterBarrierArrive, relaxed=".relaxed"),
        name="barrier.cluster",
        action="arrive",
        status="checked",
        sem="release",
        scope="cluster",
        ordering=("release",),
        classes={"sem": "release relaxed"},
    ),
    *rows(
        _SYNC + "barrier.cluster",
        "cluster-barrier",
        "barrier.cluster.wait{.sem}{.aligned}",
        makes=makes(ClusterBarrierWait),
        name="barrier.cluster",
        action="wait",
        status="checked",
        sem="acquire",
        scope="cluster",
        ordering=("acquire",),
        classes={"sem": "acquire"},
    ),
]

# Memories of a proxy fence. One of a direction, .async::generic, is taken for one of both: no rule asks for the other direction.
_SHARED, _GLOBAL = 1, 2
_OF_SHARED, _OF_OWN_SHARED = makes(ProxyFence, memories=_SHARED), makes(ProxyFence, memories=_SHARED, narrow=True)
_RESTRICTED_FENCE = makes(Fence, restricted=True)
_OF_CLUSTER: dict[str, Any] = {"status": "recorded", "classes": {"scope": "cluster"}}


def _proxy_fence(form: str, *made: Makes, name: str = "fence.proxy", **columns: Any) -> list[Row]:
    section = _SYNC + "membar, fence (proxy fence)"
    return rows(section, "proxy-fence", form, name=name, ordering=("proxy",), makes=made, **{"status": "checked", **columns})


def _of_async(name: str) -> list[Row]:
    """Fences of the async proxy."""
    shared = makes(ProxyFence, memories=_SHARED, narrow=".shared::cta")
    return [
        *_proxy_fence(f"{name}.async", makes(ProxyFence, memories=_SHARED | _GLOBAL), name=name),
        *_proxy_fence(f"{name}.async.global", makes(ProxyFence, memories=_GLOBAL), name=name),
        *_proxy_fence(f"{name}.async.async_space", shared, name=name, classes={"async_space": "shared::cta shared::cluster"}),
    ]


def _aliases(name: str, *forms: str) -> list[Row]:
    """Fences between virtual addresses of one location (8.2.2), which are not modelled: two addresses are two locations."""
    section, classes = _SYNC + "membar, fence (proxy fence)", {"sem": "acquire release"}
    return rows(section, "proxy-fence", "\n".join(forms), name=name, status="not modelled", ordering=("alias",), classes=classes)


FENCE: list[Row] = [
    *rows(
        _SYNC + "membar, fence (thread fence)",
        "fence",
        "fence{.sem}.scope",
        makes=makes(Fence),
        status="checked",
        sem="acq_rel",
        ordering=("sc", "acq_rel", "acquire", "release"),
        classes={"sem": "sc acq_rel acquire release"},
    ),
    *rows(
        _SYNC + "membar, fence (thread fence)",
        "fence",
        "membar.scope",
        makes=makes(Fence),
        status="checked",
        sem="sc",
        ordering=("sc",),
        classes={"scope": "cta gl sys"},
    ),
    *rows(
        _SYNC + "membar, fence (thread fence with .sync_restrict)",
        "fence",
        """
        fence.acquire.sync_restrict::shared::cluster.scope
        fence.release.sync_restrict::shared::cta.scope
        """,
        makes=_RESTRICTED_FENCE,
        status="recorded",
        ordering=("acquire", "release"),
        classes={"scope": "cluster"},
    ),
    *rows(
        _SYNC + "membar, fence (operation fence)",
        "mbarrier-fence",
        "fence.mbarrier_init.sem.scope",
        name="fence.mbarrier_init",
        makes=makes(InitsFence),
        status="checked",
        ordering=("release",),
        classes={"sem": "release", "scope": "cluster"},
    ),
    *_of_async("fence.proxy"),
    *_proxy_fence("fence.proxy.tensormap::generic.release.scope", makes(MapFence)),
    *_proxy_fence("fence.proxy.tensormap::generic.acquire.scope [addr], size", makes(MapFence, map="addr")),
    *_proxy_fence("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.scope", _RESTRICTED_FENCE, _OF_SHARED, **_OF_CLUSTER),
    *_proxy_fence("fence.proxy.async::generic.release.sync_restrict::shared::cta.scope", _OF_OWN_SHARED, _RESTRICTED_FENCE, **_OF_CLUSTER),
    *_aliases("fence.proxy", "fence.proxy.alias", "fence.proxy.alias.sem.sys"),  # the latter from PTX 9.4 on
    *_aliases("membar.proxy", "membar.proxy.alias"),
    *_of_async("membar.proxy"),
]

ASYNC_COPY: list[Row] = [
    *rows(
        _MOVE + "cp.async",
        "cp.async",
        """
        cp.async.cop.dst.global{.level::cache_hint}{.level::prefetch_size} [dst-addr], [src-addr], size{, src-size}{, policy}
        """,
        name="cp.async",
        status="checked",
        touch="write dst-addr dst size; read src-addr global size",
        completion="async-group",
        makes=makes(CopyIssue, at="dst-addr", source="src-addr"),
        classes={"cop": "ca cg", "dst": "shared shared::cta"},
    ),
    *rows(
        _MOVE + "cp.async.commit_group",
        "cp.async.commit",
        "cp.async.commit_group",
        name="cp.async.commit_group",
        completion="async-group",
        status="checked",
        makes=makes(CopyCommit),
    ),
    *rows(
        _MOVE + "cp.async.wait_group, cp.async.wait_all",
        "cp.async.wait",
        "cp.async.wait_group group-count",
        name="cp.async.wait_group",
        completion="async-group",
        makes=makes(CopyWait, pending="group-count"),
        status="checked",
    ),
    *rows(
        _MOVE + "cp.async.wait_group, cp.async.wait_all",
        "cp.async.wait",
        "cp.async.wait_all",
        name="cp.async.wait_all",
        makes=(makes(CopyCommit), makes(CopyWait)),
        completion="async-group",
        status="checked",
    ),
    *rows(
        _SYNC + "cp.async.mbarrier.arrive",
        "mbarrier",
        "cp.async.mbarrier.arrive{.noinc}{.ss}.b64 [mbar]",
        name="cp.async.mbarrier.arrive",
        action="arrive_after_copies",
        makes=makes(MbarrierCopies, at="mbar", noinc=".noinc"),
        status="checked",
        touch="rmw mbar ss 8",
        completion="mbarrier",
        classes={"ss": "shared shared::cta"},
    ),
]

# The lanes synchronise, read the map, and synchronise again; the checker lets the first of them write.
_WHOLE_WARP = makes(WarpSync, mask=0xFFFFFFFF)
_FIELDS = {
    "field1": "global_address rank",
    "field2": "box_dim global_dim global_stride element_stride",
    "field3": "elemtype interleave_layout swizzle_mode swizzle_atomicity fill_mode",
    "ss": "global shared::cta",
    "type": "b32 b64",
}

_EVERY_CTA = 0xFFFF  # of the cluster


def _query(block: str, made: Makes) -> list[Row]:
    name, classes = "clusterlaunchcontrol.query_cancel", {"first": " ".join(f"get_first_ctaid{axis}" for axis in ("", "::x", "::y", "::z"))}
    return rows(_SYNC + name, "launch-control", block, name=name, makes=made, status="recorded", classes=classes)


CLUSTER: list[Row] = [
    *rows(
        _MOVE + "tensormap.replace",
        "tensormap",
        """
        tensormap.replace.tile.field1{.ss}.b1024.type [addr], src
        tensormap.replace.tile.field2{.ss}.b1024.type [addr], imm, src
        tensormap.replace.tile.field3{.ss}.b1024.type [addr], src
        """,
        name="tensormap.replace",
        makes=(makes(Write, at="addr"), makes(GlobalWrite, address="addr")),
        status="checked",
        touch="write addr ss 128",
        classes=_FIELDS,
    ),
    *rows(
        _SYNC + "tensormap.cp_fenceproxy",
        "tensormap",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.sem.scope.sync.aligned [dst-addr], [src-addr], size",
        name="tensormap.cp_fenceproxy",
        makes=(_WHOLE_WARP, makes(Read, at="src-addr", narrow=False), makes(GlobalWrite, address="dst-addr", releases=True), _WHOLE_WARP),
        status="checked",
        touch="read src-addr shared::cta size; write dst-addr global size",
        ordering=("release", "proxy"),
        classes={"sem": "release"},
    ),
    *rows(
        _SYNC + "clusterlaunchcontrol.try_cancel",
        "launch-control",
        "clusterlaunchcontrol.try_cancel.async{.ss}.completion_mechanism{.multicast::cluster::all}.b128 [addr], [mbar]",
        name="clusterlaunchcontrol.try_cancel",
        status="recorded",
        touch="write addr ss 16 async; rmw mbar ss 8",
        makes=makes(LaunchRequest, at="addr", mbarrier_at="mbar", ctas=_EVERY_CTA, multicast=".multicast::cluster::all"),
        completion="mbarrier",
        classes={"ss": "shared::cta", "completion_mechanism": "mbarrier::complete_tx::bytes"},
    ),
    *_query("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 dst, src", makes(LaunchAnswer, cancelled="dst")),
    *_query(
        """
        clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 dst, src
        clusterlaunchcontrol.query_cancel.first.b32.b128 dst, src
        """,
        makes(LaunchAnswer),
    ),
]

ROWS: list[Row] = [*BARRIER, *FENCE, *ASYNC_COPY, *CLUSTER]
