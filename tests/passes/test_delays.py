"""Delays before synchronising and asynchronous instructions: where they stand, that they assemble, and that they change no result."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampled import but

from consan.backends.cpu import Machine
from consan.instrument import Instrumented
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import Edits, parse
from consan.instrument.rewriting.delays import DECLARATION, SEED, insert_delays
from consan.session.modules.runtime import library_for
from consan.toolchain.assemble import assemble
from consan.toolchain.nvrtc import compile_ptx

KERNELS = Path(__file__).parents[1] / "kernels" / "clean"
NAMES = ("barrier_reductions", "mbarrier_bulk_pipeline", "cp_async_sizes", "wgmma_tma_ring", "syncwarp_masks", "early_exit_lanes")
SLOW = ("mbarrier_bulk_pipeline", "wgmma_tma_ring")  # to assemble
SLEEP = "@%__consan_z2 nanosleep.u32 %__consan_d3;"
BODY = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .shared .align 4 .b32 s[64];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  shl.b32 %r1, %r0, 2;
  mov.u32 %r2, s;
  add.u32 %r2, %r2, %r1;
  st.shared.u32 [%r2], %r0;
  setp.lt.u32 %p0, %r0, 64;
  @%p0 bar.sync 0;
  xor.b32 %r3, %r1, 128;
  mov.u32 %r4, s;
  add.u32 %r4, %r4, %r3;
  ld.shared.u32 %r5, [%r4];
  cvt.u64.u32 %rd1, %r1;
  add.u64 %rd1, %rd1, %rd0;
  st.global.u32 [%rd1], %r5;
  bar.sync 0;
  ret;
}
"""


@functools.cache
def _ptx(name: str) -> str:
    path = KERNELS / f"{name}.cu"
    return compile_ptx(path.read_text(), name=str(path), arch="sm_90a").ptx


def _delayed(text: str, *, inline: bool = False) -> Instrumented:
    return instrument(text, library=library_for, delays=True, inline=inline)


def _bare(text: str) -> str:
    """With delays and no hooks."""
    module = parse(text)
    edits = Edits(module)
    insert_delays(module, edits)
    edits.insert_after(module.items[2], f"\n{DECLARATION}\n")
    return edits.apply()


def test_one_snippet_before_each_and_nothing_else() -> None:
    text = _bare(BODY)
    assert text.count("nanosleep") == 3, "at the start, and before each barrier"
    assert text.count(f".global .align 4 .u32 {SEED};") == 1
    lines = text.splitlines()
    kept = iter(lines)
    assert all(any(line.strip() in other for other in kept) for line in BODY.splitlines()), "the text is still there, in order"
    before = [lines[index - 1] for index, line in enumerate(lines) if "bar.sync 0" in line]
    assert before == ["}", "}"], "the whole snippet is before the instruction, and before its guard"


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("name", but(["wgmma_tma_ring"], NAMES))
def test_hooks_are_not_delayed(name: str, inline: bool) -> None:
    """As many delays as the kernel has sites of its own; the hooks, pasted or called, are what they are without."""
    text, plain = _ptx(name), instrument(_ptx(name), library=library_for, inline=inline)
    done = _delayed(text, inline=inline)
    assert done.ptx.count(SLEEP) == _bare(text).count(SLEEP) > 1
    without = re.sub(r"\{\n\.reg \.b32 %__consan_d<6>;.*?nanosleep\.u32 %__consan_d3;\n\}\n", "", done.ptx, flags=re.DOTALL)
    assert without.replace(f"{DECLARATION}\n", "") == plain.ptx
    assert done.sites == plain.sites


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in NAMES])
def test_it_assembles(name: str) -> None:
    assert assemble(_delayed(_ptx(name)).ptx, "sm_90a").cubin


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_results_do_not_change(seed: int) -> None:
    machine = Machine()
    module = machine.load(_bare(BODY))
    out = machine.alloc(256)
    machine.write(module.symbol(SEED)[0], seed.to_bytes(4, "little"))
    stats = machine.launch(module, "k", (1, 1, 1), (64, 1, 1), out.to_bytes(8, "little"))
    assert stats.completed
    np.testing.assert_array_equal(machine.view(out, np.uint32, 64), np.arange(64) ^ 32)


def _sleepers(seed: int, ctas: int = 8, warps: int = 8) -> Any:
    """Which warps sleep before which instruction: the condition and the length of the snippet, stored instead of slept."""
    text = _bare(BODY)
    stored = "selp.b32 %__consan_d3, %__consan_d3, 0, %__consan_z2; atom.global.add.u32 %__consan_d4, [%rd3], %__consan_d3;"
    first, slept, rest = text.partition(SLEEP)
    text = first + slept + rest.replace(slept, stored)
    index = "mov.u32 %r6, %ctaid.x; mad.lo.u32 %r6, %r6, 8, 0; shr.u32 %r7, %r0, 5; add.u32 %r6, %r6, %r7; mad.wide.u32 %rd3, %r6, 4, %rd0;"
    text = text.replace("shl.b32 %r1, %r0, 2;", index + " shl.b32 %r1, %r0, 2;").replace("s[64]", "s[256]")
    text = text.replace("st.global.u32 [%rd1], %r5;", "")
    machine = Machine()
    module = machine.load(text)
    out = machine.alloc(4 * ctas * warps)
    machine.write(module.symbol(SEED)[0], seed.to_bytes(4, "little"))
    assert machine.launch(module, "k", (ctas, 1, 1), (32 * warps, 1, 1), out.to_bytes(8, "little")).completed
    return machine.view(out, np.uint32, ctas * warps).copy()


def test_seeds_choose_who_sleeps_and_how_long() -> None:
    assert not _sleepers(0).any()
    found = {seed: _sleepers(seed) for seed in range(1, 9)}
    assert (found[1] == _sleepers(1)).all()
    share = np.mean([(lengths > 0).mean() for lengths in found.values()])
    assert 0.1 < share < 0.45, "one in eight before each of two barriers"
    assert len({lengths.tobytes() for lengths in found.values()}) == len(found)
    lengths = np.concatenate(list(found.values())) // 32  # all lanes of a warp have added theirs
    each = {512 << k for k in range(8)}
    assert set(lengths[lengths > 0].tolist()) <= each | {a + b for a in each for b in each}
    assert len(set(lengths.tolist()) & each) > 4
