"""The callable of C before Triton's launcher: it reads arguments as Triton does, makes what is armed, and leaves all else to Python."""

from __future__ import annotations

import gc
import inspect
import itertools
import struct
import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from armed_support import bench_launch

from consan.adapters.triton.parameters import kinds_in_c
from consan.backends import armed
from consan.backends.armed import ArmedFunctions, Arming, Lent
from consan.backends.call_filter import FILTER
from consan.toolchain.host_library import loaded

GRID, STREAM, INSTEAD, UNHEARD, FUNCTIONS = (3, 1, 1), 0, 99, object(), itertools.count(7)
ON_DEVICE, ON_HOST = (SimpleNamespace(device=SimpleNamespace(type=kind), data_ptr=lambda: 1 << 47) for kind in ("cuda", "cpu"))
ADDRESS = (1 << 47).to_bytes(8, "little")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The address of work in the context of a driver that does nothing."""
    library = bench_launch.NullLibrary(str(tmp_path_factory.mktemp("driver")))
    HELD.append(bench_launch.CudaBackend(driver=bench_launch.Driver(library)))
    assert HELD[-1].work is not None
    return int(HELD[-1].work.here)


HELD: list[Any] = []


class Launcher:
    """A kernel whose arguments have these types. `made`: the arguments of launches by C; `left`: of those that it leaves to Python."""

    def __init__(self, here: int, *types: Any, values: tuple[bytes, ...] = (), **lent: Any) -> None:
        functions, kinds = armed.armed_functions(), kinds_in_c(types)
        assert functions is not None
        assert kinds is not None
        self.made, self.left, self.errors = list[Any](), list[Any](), list[Any]()
        self.function = next(FUNCTIONS)
        key = self.function, *GRID, 0, 0, 0, 0, STREAM
        self.run = functions.before(self, lambda *given: self.made.append(given), UNHEARD, kinds)
        self.armed = functions.arm(Arming(functions, key, values, here, None, functions.shares()), Lent(("",), instead=INSTEAD, **lent))

    def __call__(self, *given: Any) -> str:
        self.left.append(given)
        return "Python"

    def failed(self, error: BaseException, given: tuple[Any, ...]) -> None:
        self.errors.append(given)
        raise error

    def launch(self, *args: Any, grid: tuple[int, int, int] = GRID, heard: tuple[Any, Any, Any] = (UNHEARD, 1, 2)) -> Any:
        return self.run(*grid, STREAM, self.function, "packed", *heard, *args)

    def sets(self) -> dict[tuple[bytes, ...], int]:
        made = self.armed and self.armed.take_back()
        assert made is not None
        return dict(made.launches)


ARGUMENTS: list[tuple[str, Any, bytes | None]] = [
    ("i32", 5, b"\x05\0\0\0"),
    ("i32", -1, b"\xff\xff\xff\xff"),
    ("i32", (1 << 32) - 1, b"\xff\xff\xff\xff"),
    ("i32", 1 << 32, None),
    ("i32", -(1 << 31) - 1, None),
    ("i64", -2, (2**64 - 2).to_bytes(8, "little")),
    ("u64", (1 << 64) - 1, b"\xff" * 8),
    ("u64", 1 << 64, None),
    ("u8", 255, b"\xff"),
    ("i1", True, b"\x01"),
    ("i32", "five", None),
    ("fp32", 0.1, struct.pack("<f", 0.1)),
    ("fp32", 1e300, None),
    ("fp32", float("inf"), struct.pack("<f", float("inf"))),
    ("fp64", 3, struct.pack("<d", 3)),
    ("fp64", None, None),
    ("*fp32", None, bytes(8)),
    ("*fp32", 0x7F0000000000, (0x7F0000000000).to_bytes(8, "little")),
    ("*fp32", ON_DEVICE, ADDRESS),
    ("*fp32", ON_HOST, None),
    ("*fp32", 0.5, None),
]


@pytest.mark.parametrize("at", range(len(ARGUMENTS)))
def test_arguments(here: int, at: int) -> None:
    kind, value, wanted = ARGUMENTS[at]
    other = bytes(len(wanted) if wanted is not None else 8 if "64" in kind or kind[0] == "*" else 4)
    launcher = Launcher(here, "constexpr", kind, values=(other,))
    launcher.launch("BLOCK", value)
    assert (len(launcher.made), len(launcher.left)) == ((0, 1) if wanted is None else (1, 0))
    assert launcher.sets() == ({} if wanted is None else {(wanted,): 1})


def test_arguments_that_c_does_not_read() -> None:
    assert kinds_in_c(["i32", ("*fp32", "i32")]) is None
    assert [kinds_in_c([kind]) for kind in ("bf16", "fp16", "tensordesc<fp16[64,64]>", "i128")] == [None] * 4


def test_another_kernel_is_launched_and_nobody_hears_of_it(here: int) -> None:
    launcher = Launcher(here, "i32")
    launcher.launch(1)
    launcher.launch(2, heard=("metadata", None, None))
    assert [given[3:] for given in launcher.made] == [(STREAM, INSTEAD, "packed", None, None, None, number) for number in (1, 2)]
    assert launcher.launch(3, heard=("metadata", print, None)) == "Python"
    assert launcher.launch(3, heard=("metadata", None, print)) == "Python"
    assert launcher.sets() == {(): 2}


def test_others_are_left_to_python(here: int) -> None:
    launcher = Launcher(here, "i32", decides=[(0, 0, b"\x05\0\0\0")])
    assert [launcher.launch(5), launcher.launch(6), launcher.launch(5, grid=(4, 1, 1)), launcher.launch(5, 5)] == [None, *["Python"] * 3]
    launcher.sets()
    assert launcher.launch(5) == "Python", "it is taken back"


def test_scratch_memory_follows_the_arguments(here: int) -> None:
    launcher = Launcher(here, "i32", values=(bytes(4), bytes(8), bytes(8)))
    launcher.launch(0)
    assert launcher.sets() == {(bytes(4), bytes(8), bytes(8)): 1}


def test_parameters_of_other_sizes(here: int) -> None:
    launcher = Launcher(here, "i32", values=(bytes(8),))
    assert launcher.launch(0) == "Python"


def test_an_error_of_the_launcher(here: int) -> None:
    launcher = Launcher(here, "i32")
    launcher.run = armed.armed_functions().before(launcher, lambda *_: 1 // 0, UNHEARD, b"4")  # type: ignore[union-attr]
    with pytest.raises(ZeroDivisionError) as raised:
        launcher.launch(1)
    assert raised.traceback[-1].name == "<lambda>"
    assert len(launcher.errors) == 1
    assert launcher.sets() == {}


def test_it_stands_for_the_launcher_and_is_freed(here: int) -> None:
    launcher = Launcher(here, "i32")
    assert launcher.run.armed is launcher.armed
    assert isinstance(launcher.run, Launcher)
    alive, before = weakref.ref(launcher), sys.getrefcount(UNHEARD)
    for number in range(1000):
        launcher.launch(number)
    assert len(launcher.made) == 1000
    launcher.made.clear()
    assert sys.getrefcount(UNHEARD) == before
    launcher.run = None
    del launcher
    gc.collect()
    assert alive() is None


def test_memory_that_is_cleared_up_within_a_call_may_take_launches_back(here: int) -> None:
    """Arguments are read by functions of Python, which may do anything."""
    launcher = Launcher(here, "*fp32")
    taken: list[Any] = []
    array = SimpleNamespace(device=ON_DEVICE.device, data_ptr=lambda: taken.append(launcher.sets()) or 1)
    assert launcher.launch(array) == "Python"
    assert taken == [{}]


FAULTS: dict[str, tuple[str, str, Callable[..., None]]] = {
    "numbers of another size": ("found < 1ll << 8 * nbytes", "true", test_arguments),
    "less than there are": ("found >= -(1ll << (8 * nbytes - 1)) && ", "", test_arguments),
    "floats that overflow": ("|| !isinf(less) || isinf(found)", "|| true", test_arguments),
    "memory of the host": ('PyUnicode_CompareWithASCIIString(type, "cuda") == 0', "true", test_arguments),
    "hooks": ("python.none || PyTuple_GetItem(args, METADATA + 2)", "python.none && PyTuple_GetItem(args, METADATA + 2)",
              test_another_kernel_is_launched_and_nobody_hears_of_it),
    "the recorded kernel": ("armed->set, armed->instead}", "armed->set, NULL}", test_another_kernel_is_launched_and_nobody_hears_of_it),
    "bytes that decide": (" && has_deciding_bytes(armed, packed->places)", "", test_others_are_left_to_python),
    "sizes": ("done = packed->sizes[at] == armed->sizes[at]", "done = true", test_parameters_of_other_sizes),
    "an error counts": ("armed->times[begun->set]--", "armed->times[begun->set]++", test_an_error_of_the_launcher),
    "a reference is kept": ("Py_DecRef(own->otherwise), ", "", test_it_stands_for_the_launcher_and_is_freed),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, here: int, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, test = FAULTS[fault]
    sources = FILTER.sources()
    assert sources["launcher.h"].count(old) == 1
    functions = ArmedFunctions(loaded(FILTER.compiled(sources | {"launcher.h": sources["launcher.h"].replace(old, new)}), "faulty"))
    monkeypatch.setattr(armed, "armed_functions", lambda: functions)
    each = range(len(ARGUMENTS)) if "at" in inspect.signature(test).parameters else (None,)
    with pytest.raises(AssertionError):
        _ = [test(here, **({} if at is None else {"at": at})) for at in each]
