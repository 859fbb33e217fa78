"""What is decided when a module is loaded, before any of its launches."""

from __future__ import annotations

import pytest

from consan.native.client import cluster_of, how_to_build


@pytest.mark.parametrize(
    ("instruction", "ctas"),
    [
        ("barrier.cluster.arrive;", 8),
        ("mapa.shared::cluster.u32 a, b, c;", 8),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [a], [b, {c, d}], [e], f;", 8),
        ("mov.u32 %r1, %cluster_ctarank;", 8),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [b, {c, d}], [e];", 1),  # its own CTA's memory
        ("bar.sync 0;", 1),
    ],
)
def test_modules_that_work_across_a_cluster_are_instrumented_for_one(instruction: str, ctas: int) -> None:
    assert cluster_of(f".entry k() {{\n{instruction}\n}}") == ctas


def test_how_to_build_names_the_gpu() -> None:
    assert "-gencode arch=compute_100a,code=compute_100a -lineinfo" in how_to_build("sm_100a")
