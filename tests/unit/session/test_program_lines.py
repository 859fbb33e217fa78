"""The line of the program that an operation of a stream is reported with."""

from __future__ import annotations

import threading
from typing import Any

from consan.session.comparing.program_streams import caller

SERVES = "def serve(): seen.append(caller())"


def test_a_thread_of_consan_runs_no_line_of_the_program() -> None:
    space: dict[str, Any] = {"__name__": "consan.libcuda.server", "caller": caller, "seen": []}
    exec(SERVES, space)
    space["serve"]()
    thread = threading.Thread(target=space["serve"])
    thread.start()
    thread.join()
    (file, line), served = space["seen"]
    assert file == __file__
    assert line
    assert served == ("", 0)
