"""A pytest plugin: there is a GPU, and the made-up driver has the record of each module (native_case.py)."""

from __future__ import annotations

import os
from pathlib import Path

from native_case import recordings

from consan.native import run

run.has_gpu = lambda: True
_RECORDING = recordings(Path(os.environ["FAKE_CUDA_RECORDS"]))
_RECORDING.__enter__()
