"""Fences with .sync_restrict are taken for whole fences of a cluster: no false alarm, and the kernel stays `incomplete`."""

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
    assert report.verdict == ("violations" if kinds else "incomplete")
    assert {f"{gap.opcode};" for gap in report.kernels[0].unmodelled} == {acquire, release} - {""}


@pytest.mark.parametrize(("fence", "kinds"), [(DIRECTED, set()), ("", {"missing-proxy-fence"})])
def test_a_fence_of_one_direction(fence: str, kinds: set[str]) -> None:
    name = "bulk_store_no_proxy_fence"
    report = _launch(name, _replaced(kernel(name).ptx, PROXY, fence))
    assert {each.kind for each in report.findings if each.severity == "error"} == kinds
