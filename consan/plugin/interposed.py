"""Tests whose framework launches by itself: on a GPU, pytest runs once more, with the interposer (consan/native/python).

The process that was started serves the interposer, and waits. In the one that runs the tests, and in workers of xdist, the plugin asks the
interposer for what has been found since it last did, after each phase of a test.

Not handled: pytest that is called as a function; launches through the fixture `consan` in such a run (they are listed as not checked).
Launches of child processes of tests, or behind the last test, are printed at the end.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Final

import pytest

from consan import late, suppressions
from consan.native.program import NativeProgram
from consan.native.python.scripts import framework_of_tests
from consan.plugin.settings import settings_of, usage_errors
from consan.reports.formats.json_format import from_json
from consan.reports.formats.render import render
from consan.reports.model import CLEAN, Report
from consan.reports.verdict.combination import combine

_VARIABLE: Final = "_CONSAN_TESTS"  # internal: set for the process that runs the tests, and its children


def run_again(config: pytest.Config) -> None:
    """Run this command with the interposer, where its tests need that, and end with its status. Otherwise return."""
    settings = settings_of(config)
    as_command = list(config.invocation_params.args) == sys.argv[1:]
    if is_interposed() or hasattr(config, "workerinput") or settings.values.device == "cpu" or not as_command:
        return
    if not framework_of_tests(_words(config)) or not late.native_run.has_gpu():
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    program = NativeProgram(sys.executable, (sys.executable, *sys.orig_argv[1:]))
    with usage_errors():
        ran = late.native_run.run_processes(program, settings.session, more={_VARIABLE: "1"})
        rest = suppressions.finish(ran.together(), settings.rules) if ran.outcomes or ran.reasons else None
    if rest is not None and rest.verdict != CLEAN:
        print("consan: outside of the tests:\n" + render(rest, "text", **settings.shown), file=sys.stderr)
    raise SystemExit(ran.status or int(rest is not None and rest.verdict != CLEAN and pytest.ExitCode.TESTS_FAILED))


def _words(config: pytest.Config) -> list[str]:
    """The files and folders of the tests."""
    given = config.known_args_namespace.file_or_dir
    return [str(each) for each in given or config.getini("testpaths") or ()]


def is_interposed() -> bool:
    """Whether this process runs the tests with the interposer."""
    return _VARIABLE in os.environ


class InterposedSession:
    """In the process that runs the tests: stands for the session, which is in the other one."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._watched: set[tuple[str, int]] = set()
        self._library = ctypes.CDLL(None)
        self._library.consan_taken.restype = ctypes.c_void_p
        self._library.free.argtypes = [ctypes.c_void_p]

    def take(self) -> Report | None:
        """The report since the last call; None if nothing was launched."""
        address = self._library.consan_taken()
        if not address:
            return None
        taken = json.loads(ctypes.string_at(address) or b"[]")
        self._library.free(address)
        self._watched |= {(file, line) for each in taken for file, line in each["places"]}
        return combine([from_json(each["report"]) for each in taken]) if taken else None

    def places(self, report: Report) -> set[tuple[str, int]]:
        """The source lines that were watched until now."""
        return self._watched
