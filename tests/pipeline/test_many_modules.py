"""A process that checks many kernels on the virtual machine keeps the last modules only, and those that are held."""

from __future__ import annotations

import gc

import pytest

from consan.backends.virtual import VirtualBackend
from consan.instrument import CONTROL
from consan.instrument.record.text.text import LAUNCH
from consan.session.modules.device import shared_device
from consan.session.planning.options import SessionOptions
from consan.session.session import Session

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .b32 %r<4>; .reg .b64 %rd<4>;
.shared .align 4 .b8 tile[{size}];
ld.param.u64 %rd1, [out]; mov.u32 %r1, {number}; mov.u32 %r2, tile; st.shared.u32 [%r2], %r1; ld.shared.u32 %r3, [%r2];
st.global.u32 [%rd1], %r3;
ret;
}}
"""


def _number(k: int) -> int:
    session = Session(SessionOptions(device="cpu"))
    prepared, out = session.prepare(KERNEL.format(number=k, size=4096)), session.backend.alloc(4)
    session.launch(prepared, "k", (1, 1, 1), (1, 1, 1), [out.to_bytes(8, "little")])
    assert session.report().verdict == "clean"
    found = int.from_bytes(session.backend.read(out, 4), "little")
    session.backend.free(out)
    return found


def test_only_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VirtualBackend, "modules_kept", 3)
    device = shared_device("cpu")
    held = Session(SessionOptions(device="cpu")).prepare(KERNEL.format(number=77, size=64))
    assert [_number(k) for k in range(8)] == list(range(8))
    assert len(device.modules) == 3
    gc.collect()
    assert _number(8) == 8
    alive = [prepared for prepared in device.prepared() if "tile[4096]" in prepared.plain]
    assert len(alive) <= 5  # three and the last launch's, which has a form without global memory
    assert any(prepared is held for prepared in device.prepared())
    assert held.loaded.symbol(CONTROL if held.recorded is None else LAUNCH)
    assert [_number(k) for k in range(2)] == [0, 1]
