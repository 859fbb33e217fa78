"""A kernel tells where its shared variables lie: on the virtual machine, which lays them out itself, that is what it tells as well;
on a GPU the names in a report are the same as on the virtual machine.
"""

from __future__ import annotations

from typing import Any

import pytest
from device_support import Bench, markers

from consan.session.modules.layouts import known_offsets

TWO = """
extern "C" __global__ void k(float* out) {
    __shared__ char flag;
    __shared__ float sums[3];
    __shared__ double tile[2][64];
    extern __shared__ int4 more[];
    const unsigned t = threadIdx.x;
    float* raw = (float*)more;
    sums[t % 3] = t;                                            /*@sums*/
    tile[1][t] = t;                                             /*@tile*/
    raw[t] = t;                                                 /*@raw*/
    if (t == 0) flag = out[0];                                  /*@flag*/
    __syncwarp();
    out[t] = (float)tile[1][63 - t] + raw[63 - t] + flag + sums[(t + 1) % 3];  /*@read*/
}
extern "C" __global__ void other(float* out) {
    __shared__ float rows[64], columns[64];
    const unsigned t = threadIdx.x;
    rows[t] = t;                                                /*@rows*/
    columns[63 - t] = t;                                        /*@columns*/
    out[t] = rows[t ^ 32] + columns[t];                         /*@both*/
}
"""
ENTRIES = ("k", "other")


def _bench(device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, source: str = TWO, **options: Any) -> Bench:
    """One launch of each kernel; the source lies where reports look for declarations."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.cu").write_text(source)
    bench = Bench(device, source, **options)
    out = bench.zeros(64, "f4")
    for entry in ENTRIES:
        bench.launch(entry, 3, 64, out, shared=256 if entry == "k" else 0)
    return bench


def _named(bench: Bench) -> set[tuple[str, str]]:
    """The marker of each shared access's line, and what its variable is called; in which order two threads came does not matter."""
    lines = markers(bench.source)
    accesses = [access for finding in bench.report().findings for access in finding.accesses if access.space == "shared"]
    return {(lines.get(access.line or 0, ""), _variable(access.name)) for access in accesses}


def _variable(name: str) -> str:
    return name.rsplit(" of ", 1)[-1].split("[")[0]


def test_the_virtual_machine_and_the_kernel_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    bench = _bench("cpu", monkeypatch, tmp_path)
    assert bench.prepared is not None
    for entry in ENTRIES:
        told = known_offsets(bench.session.device.shadow, bench.prepared, entry)
        known = bench.backend.shared_offsets(bench.prepared.loaded, entry)
        assert told == known
        assert len(told) == (4 if entry == "k" else 2)


def test_a_kernel_that_has_not_run_has_told_nothing() -> None:
    bench = Bench("cpu", TWO)
    assert bench.prepared is not None
    assert known_offsets(bench.session.device.shadow, bench.prepared, "k") == {}


def test_variables_are_named(device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    assert _named(_bench(device, monkeypatch, tmp_path)) == {
        *(("sums", "sums"), ("tile", "tile"), ("raw", "dynamic shared memory"), ("flag", "flag")),
        *(("read", "sums"), ("read", "tile"), ("read", "dynamic shared memory"), ("read", "flag")),
        *(("rows", "rows"), ("columns", "columns"), ("both", "rows"), ("both", "columns")),
    }


@pytest.mark.gpu
def test_telling_takes_no_shared_memory(gpu: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The offsets that a GPU kernel tells lie within what its original takes, and no two variables overlap."""
    bench = _bench("gpu", monkeypatch, tmp_path)
    prepared = bench.prepared
    assert prepared is not None
    plain = bench.backend.load(prepared.plain)
    for entry, sizes in (("k", {"flag": 1, "sums": 12, "tile": 1024, "more": 0}), ("other", {"rows": 256, "columns": 256})):
        total = bench.backend.resources(plain, entry).static_shared
        assert bench.backend.resources(prepared.loaded, entry).static_shared == total
        told = known_offsets(bench.session.device.shadow, prepared, entry)
        placed = sorted((offset, next(size for name, size in sizes.items() if name in symbol)) for symbol, offset in told.items())
        assert len(placed) == len(sizes)
        assert all(low + size <= high for (low, size), (high, _) in zip(placed, [*placed[1:], (1 << 20, 0)], strict=True))
        assert all(low + size <= total for low, size in placed)
