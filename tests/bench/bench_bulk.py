"""What a bulk load of 16 KiB costs the thread that issues it, without and with hooks: cycles by the SM's own clock.

    python tests/bench/bench_bulk.py        needs a Hopper GPU

One CTA of 128 threads; the median over the rounds after the first four. The time covers `mbarrier.arrive.expect_tx` and the copy.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from consan.session.planning.options import SessionOptions
from consan.session.session import Session
from consan.toolchain.nvrtc import compile_ptx

ROUNDS = 64
SOURCE = Path(__file__).with_name("bulk_load.cu")


def _cycles(session: Session, launch: Any) -> float:
    backend = session.backend
    source, out = backend.alloc(16384), backend.alloc(8 * ROUNDS)
    arguments = [address.to_bytes(8, "little") for address in (source, out)] + [ROUNDS.to_bytes(4, "little")]
    launch("bulk_load", (1, 1, 1), (128, 1, 1), arguments, shared=16384)
    backend.synchronize(None)
    return statistics.median(np.frombuffer(backend.read(out, 8 * ROUNDS), np.int64)[4:].tolist())


def main() -> int:
    """Print both."""
    session = Session(SessionOptions(device="gpu"))
    ptx = compile_ptx(SOURCE.read_text(), name=str(SOURCE), arch="sm_90a").ptx
    handle, prepared = session.backend.load(ptx), session.prepare(ptx)
    plain = _cycles(session, lambda *a, **k: session.backend.launch(handle, *a, **k))
    hooks = _cycles(session, lambda *a, **k: session.launch(prepared, *a, **k))
    print(f"{session.backend.device_name}: bulk load of 16 KiB, cycles of the issuing thread: {plain:.0f} plain, {hooks:.0f} with hooks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
