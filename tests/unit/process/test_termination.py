"""SIGTERM in a child process that has a report to write."""

from __future__ import annotations

import signal
import subprocess
import sys

SCRIPT = """
import multiprocessing, signal, threading
from consan.process.termination import before_termination
before_termination(lambda: print("report", flush=True))
lock = multiprocessing.Lock()
lock.acquire()
threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
lock.acquire()
"""


def test_a_signal_that_does_not_interrupt_the_main_thread() -> None:
    """Another thread receives it, while the main thread waits for a lock as the workers of a pool do."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=20, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("report\n", "", -signal.SIGTERM)
