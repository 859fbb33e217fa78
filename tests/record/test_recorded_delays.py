"""Seeded delays in recorded kernels: `consan stress` on a GPU, for which a device in the background stands in."""

from __future__ import annotations

import numpy as np
import pytest
from leaving_support import SOURCE, Background, launched, slow_clock

from consan.instrument import SEED
from consan.instrument.record import record
from consan.session.modules.device import Device
from consan.toolchain.assemble import assemble_cached
from consan.toolchain.nvrtc import compile_ptx


@pytest.mark.parametrize("compact", [True, False])
def test_a_recorded_kernel_with_delays_is_assembled(compact: bool) -> None:
    ptx = compile_ptx(SOURCE, arch="sm_90a").ptx
    done = record(ptx, leaves=True, compact=compact, delays=True)
    assert done.ptx.count("nanosleep") > 10
    assert SEED not in record(ptx, leaves=True, compact=compact).ptx
    assert assemble_cached(done.ptx, "sm_90a").cubin
    assert done.expansion is None or SEED not in done.expansion.text.ptx, "the host computes no delay"


def test_a_delayed_launch_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, seeds = slow_clock(monkeypatch), list[bytes]()
    begin = Device.__init__

    def delayed(device: Device, *given: object, **how: object) -> None:
        begin(device, *given, **how)
        device.delay(7)

    write = Background.write
    monkeypatch.setattr(Background, "write", lambda self, at, data: (seeds.append(bytes(data)), write(self, at, data))[1])
    monkeypatch.setattr(Device, "__init__", delayed)
    report, out = launched(backend, "waits", 0)
    assert (report.verdict, {each.engine for each in report.kernels}) == ("clean", {"record"})
    assert (out == np.uint32(1)).all()
    assert (7).to_bytes(4, "little") in seeds, "the module has the seed"
