"""For all tests: each file has a virtual machine of its own, and the garbage collector finds little to walk through.

A decoded module is 75,000 objects and more. With the usual thresholds and the 48 modules that a session keeps, the collector took a
third of the time. What a file leaves stays long, in caches: the collector does not look at it again until the process has grown by a GB.
"""

from __future__ import annotations

import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sampled import mark_samples
from twin_file import COMPILED

from consan.adapters.importhook import ImportHook
from consan.backends import driver
from consan.backends.virtual import VirtualBackend
from consan.instrument.collection import HELD
from consan.options import RECORD
from consan.session.modules import device as devices
from consan.session.planning.options import SessionOptions

MODULES_KEPT = 4  # by a session on the virtual machine, for tests that say nothing else
TESTS = Path(__file__).parent
HOOKS = frozenset({"device", "oracle", "real", "suites"})  # folders that test called hooks, with their figures: `auto` means hooks there
GROWTH = 1 << 30  # bytes
GENERATIONS = 200_000, 2, 2  # thresholds of the collector: objects of some modules, and now and then all that are not frozen


def pytest_configure(config: pytest.Config) -> None:
    """The first process makes the folder; its workers inherit the name."""
    if not hasattr(config, "workerinput"):
        os.environ["CONSAN_EXPLORE"] = "0"  # a test asks for the schedule that it names; those of other schedules say so
        os.environ["CONSAN_UNOPTIMIZED"] = "off"  # tests/kernels/test_unoptimised.py asks for it
        folder = os.environ[COMPILED] = tempfile.mkdtemp(prefix="consan-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before cases are chosen by their markers."""
    mark_samples(items, TESTS)


def pytest_collection_finish() -> None:
    """Tests and imported modules stay to the end."""
    VirtualBackend.modules_kept = MODULES_KEPT
    HELD.of_program = True  # what `_collect` puts apart stays there
    _collect()
    gc.set_threshold(*GENERATIONS)


def _collect() -> None:
    """Free what is not used any more. The collector does not look at the rest again until the process has grown by `GROWTH`."""
    grown = _resident() > _Kept.nbytes + GROWTH
    if grown:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    if grown:
        _Kept.nbytes = _resident()


class _Kept:
    """The bytes of the process when the collector looked at everything last."""

    nbytes = 0


def _resident() -> int:
    """The bytes of this process that are in memory; 0 where nothing tells."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


@pytest.fixture(autouse=True, scope="module")
def _own_machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """A GPU's shadow memory stays: it is one allocation, and is used again."""
    folder = request.path.relative_to(TESTS).parts[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionOptions, "remembers", False)  # tests look at each pass and replay
        if folder in HOOKS:
            patch.setattr(SessionOptions, "records", property(lambda self: self.engine == RECORD or self.global_required))
        yield
    left = [finder for finder in sys.meta_path if isinstance(finder, ImportHook)]
    for name in [name for name, device in devices.DEVICES.items() if device.backend.choice == "cpu"]:
        del devices.DEVICES[name]
    _collect()  # machines and their modules refer to each other, and a machine has up to 100 MB
    assert not left, "an adapter waits for its framework's import, and would change what later files import"


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C works, here and in processes that the test starts: `nohup` and background jobs of a shell ignore it, and that is inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def gpu() -> None:
    """Skips the test that asks for it where there is no GPU."""
    problem = driver.why_unavailable()
    if problem:
        pytest.skip(f"no GPU: {problem}")
