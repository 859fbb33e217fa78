"""Fences with .sync_restrict order accesses to shared memory only. Where more than that is reached, there are several replays."""

from __future__ import annotations

from typing import Any

import pytest
from record_support import file_of, kernel, twin_file

import consan
from consan.instrument.record import record
from consan.toolchain.assemble import assemble_cached

FENCE, PROXY = "fence.acq_rel.cta;", "fence.proxy.async.shared::cta;"
ACQUIRE, RELEASE = "fence.acquire.sync_restrict::shared::cluster.cluster;", "fence.release.sync_restrict::shared::cta.cluster;"
DIRECTED = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"


def _launch(name: str, text: str) -> Any:
    spec = twin_file.read(file_of(name))
    assert "kernel" in assemble_cached(record(text).ptx, "sm_90a").info
    made = consan.Kernel(text, entry="kernel")
    report = consan.launch(made, spec.grid, spec.block, spec.parameters(spec.fresh_args()), smem=spec.smem, device="cpu")
    assert {each.engine for each in report.kernels} == {"record"}
    return report


def _replaced(text: str, old: str, *new: str) -> str:
    """The text with the first, second, ... of a line replaced, from the beginning again after the last one."""
    parts = text.split(old)
    assert len(parts) > len(new)
    return parts[0] + "".join(new[number % len(new)] + part for number, part in enumerate(parts[1:]))


@pytest.mark.parametrize(
    ("acquire", "release", "kinds"), [(ACQUIRE, RELEASE, set()), ("", RELEASE, {"data-race"}), (ACQUIRE, "", {"data-race"})]
)
def test_a_ring_of_relaxed_operations(acquire: str, release: str, kinds: set[str]) -> None:
    name = "mbarrier_relaxed_with_fences"
    report = _launch(name, _replaced(kernel(name).ptx, FENCE, acquire, release))
    assert {each.kind for each in report.findings if each.severity == "error"} == kinds
    assert report.verdict == ("violations" if kinds else "clean")
    assert not report.kernels[0].unmodelled


@pytest.mark.parametrize(("fence", "kinds"), [(DIRECTED, set()), ("", {"missing-proxy-fence"})])
def test_a_fence_of_one_direction(fence: str, kinds: set[str]) -> None:
    name = "bulk_store_no_proxy_fence"
    report = _launch(name, _replaced(kernel(name).ptx, PROXY, fence))
    assert {each.kind for each in report.findings if each.severity == "error"} == kinds


REMOTE = {
    "": False,
    "ld.shared::cluster.u32 %r1, [%r2];": True,
    "st.u32 [%d1], %r1;": True,
    "tcgen05.wait::ld.sync.aligned;": True,
    "st.shared.u32 [%r2], %r1; ld.shared.u32 %r1, [%r2];": False,
    "st.volatile.shared.u32 [%r2], %r1; ld.volatile.shared.u32 %r1, [%r2];": True,
    "st.release.gpu.global.u32 [%d1], %r1; ld.acquire.gpu.global.u32 %r1, [%d1];": True,
}


@pytest.mark.parametrize("beside", REMOTE)
def test_beside_other_memories_there_are_several_replays(beside: str) -> None:
    head = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b32 %r<4>; .reg .b64 %d<3>;\n"
    text = f"{head}ld.param.u64 %d1, [p]; mov.b32 %r2, 0; mov.b32 %r1, 0;\n{beside}\nFENCE\nst.global.u32 [%d1], %r1; ret;\n}}\n"
    recorded = record(text.replace("FENCE", ACQUIRE), global_races=True)
    assert recorded.blocks.restricted is REMOTE[beside]
    assert not [gap for each in recorded.functions for gap in each.unmodelled]
    assert not record(text.replace("FENCE", FENCE), global_races=True).blocks.restricted
