"""The end of a program under `consan run`: its threads end first, and nobody waits for threads that have nothing to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LEFT_OPEN = """
import time
from concurrent.futures import ThreadPoolExecutor
from consan.checker.logs import prefetch
prefetch.later(lambda: None).result()
pool = ThreadPoolExecutor(2)
pool.submit(lambda: (time.sleep(0.2), print("worked")))
"""


def test_a_pool_that_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(LEFT_OPEN)
    command = [sys.executable, "-m", "consan", "run", "--device", "cpu", "-q", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (67, "worked"), done.stderr  # no kernel ran: incomplete
