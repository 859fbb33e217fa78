"""Warp on a machine without a GPU: its kernels run on consan's stand-in driver.

Read against Warp 1.19. Its library loads modules and launches by the driver, but copies, fills and allocates by a static copy of the
CUDA runtime, which the stand-in cannot serve: these functions are replaced in the library's table. Kernels are compiled to PTX with lines,
into a cache of the run (an earlier run's code may have none).

Not handled: textures, BVHs and other structures that the library builds but for hash grids (warp_library.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from consan.adapters.base import SessionLike
from consan.adapters.buffers import buffers
from consan.adapters.driven import warp_library, warp_snippets
from consan.adapters.driven.seam import DrivenSeam
from consan.adapters.seam import lacking
from consan.libcuda import library, memory_calls
from consan.libcuda.calls import CALLS, CallFailed
from consan.libcuda.driver import StandInDriver
from consan.libcuda.graphs import graph_calls
from consan.libcuda.graphs.conditional_calls import IF, WHILE, ConditionalNode, GraphCondition
from consan.libcuda.graphs.graph import DriverGraph
from consan.libcuda.memory import allocation_calls

_TRIED: Final = (1, 19)
_CURRENT: Final = (1 << 64) - 1  # WP_CURRENT_STREAM
_NEEDS: Final = ("Runtime.load_dll", "Device.set_stream", "Stream.wait_stream")
_EDGE: Final = " (second.wait_stream(first))"


class WarpStandIn(DrivenSeam):
    """Runs programs of Warp on the virtual machine."""

    name = "warp"
    title = "Warp"
    package = "warp._src.context"
    distribution = "warp-lang"
    covers = "kernels on consan's stand-in driver"

    def install(self, session: SessionLike) -> None:
        """Its configuration is read when it starts."""
        super().install(session)
        self._when("warp.config", self._configure)
        self._when("warp", self._begin_package)

    def _begin_package(self, warp: ModuleType) -> None:
        self._wrap(warp, "launch", _named)
        self._wrap(warp, "func_native", warp_snippets.with_lines)

    def _configure(self, config: ModuleType) -> None:
        for name, value in (("cuda_output", "ptx"), ("lineinfo", True), ("kernel_cache_dir", str(self._own_folder()))):
            self._patches.set(config, name, value)
        self._enter()

    def _begin(self, context: ModuleType) -> None:
        if self._known(_TRIED, _TRIED, lacking(context, *_NEEDS)):
            self._wrap(context.Runtime, "load_dll", _replaced)
            self._wrap(context.Stream, "__init__", _spelled)


def _replaced(original: Callable[..., Any], runtime: Any, path: str) -> Any:
    """`Runtime.load_dll`: the library, with functions of our own."""
    loaded = original(runtime, path)
    if hasattr(loaded, "wp_memset_device"):  # not Warp's compiler for the CPU
        for name, function in {**_Memory(loaded).functions(), **_graphs(), **warp_library.functions(loaded, runtime)}.items():
            setattr(loaded, name, _Function(function))
    return loaded


def _named(original: Callable[..., Any], kernel: Any, dim: Any, inputs: Any = (), outputs: Any = (), *others: Any, **named: Any) -> Any:
    """`warp.launch`: reports name memory by the arguments."""
    names = [each.label for each in getattr(getattr(kernel, "adj", None), "args", ())]
    with library.launching(buffers([*inputs, *outputs], names)):
        return original(kernel, dim, inputs, outputs, *others, **named)


def _spelled(original: Callable[..., None], stream: Any, *args: Any, **named: Any) -> None:
    """`Stream.__init__`: reports say how Warp lets one stream wait for another."""
    original(stream, *args, **named)
    if getattr(stream, "cuda_stream", None):
        _driver().session.streams.of(stream.cuda_stream).edge = _EDGE


class _Function:
    """A function in place of one of ctypes: what is set about it (`argtypes`) is not needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        try:
            return self._function(*(getattr(each, "value", each) for each in args))
        except CallFailed:
            return None


class _Memory:
    """Memory of the device, as Warp's library allocates, copies and fills it."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded

    def functions(self) -> dict[str, Callable[..., Any]]:
        """By their names in the library."""
        free, free_async = CALLS["cuMemFree_v2"].function, CALLS["cuMemFreeAsync"].function
        return {
            **dict.fromkeys(("wp_alloc_device", "wp_alloc_device_default"), lambda context, size, tag: self._given(size, 0)),
            "wp_alloc_device_async": lambda context, size, stream, tag: self._given(size, self._stream(context, stream)),
            **dict.fromkeys(("wp_free_device", "wp_free_device_default"), lambda context, address: free(_driver(), address)),
            "wp_free_device_async": lambda context, address, stream: free_async(_driver(), address, self._stream(context, stream)),
            "wp_alloc_pinned": self._loaded.wp_alloc_host,
            "wp_free_pinned": self._loaded.wp_free_host,
            "wp_memcpy_h2d": self._copier(memory_calls.TO_DEVICE),
            "wp_memcpy_d2h": self._copier(memory_calls.TO_HOST),
            "wp_memcpy_d2d": self._copier(memory_calls.WITHIN),
            "wp_memset_device": self._fill,
            "wp_memtile_device": self._tile,
            "wp_cuda_context_check": lambda context: 0,
            "wp_cuda_context_set_stream": self._quiet(self._loaded.wp_cuda_context_set_stream),
        }

    def _quiet(self, function: Any) -> Callable[..., Any]:
        """A function that asks the runtime, when a context is new, for what Warp can do without: the failure is no news."""

        def called(*args: Any) -> Any:
            said = self._loaded.wp_is_error_output_enabled()
            self._loaded.wp_set_error_output_enabled(0)
            try:
                return function(*map(ctypes.c_void_p, args[:2]), *args[2:])
            finally:
                self._loaded.wp_set_error_output_enabled(said)

        return called

    def _stream(self, context: Any, stream: int | None) -> int:
        """The stream that a parameter names."""
        return (self._loaded.wp_cuda_context_get_stream(context) if stream == _CURRENT else stream) or 0

    def _given(self, size: int, stream: int) -> int:
        return allocation_calls.given(_driver(), size, stream) if size else 0

    def _copier(self, ends: memory_calls.Ends) -> Callable[..., bool]:
        copy = memory_calls.copier(ends, waits=False)

        def copied(context: Any, to: int, source: int, size: int, stream: int | None) -> bool:
            copy(_driver(), to, source, size, self._stream(context, stream))
            return True

        return copied

    def _fill(self, context: Any, address: int, value: int, size: int, stream: int | None) -> bool:
        CALLS["cuMemsetD8Async"].function(_driver(), address, value, size, self._stream(context, stream))
        return True

    def _tile(self, context: Any, address: int, source: int, size: int, count: int) -> None:
        """The bytes at an address of the host, repeated in device memory, in the order of the current stream."""
        driver = _driver()
        value = int.from_bytes(driver.memory.read(source, size), "little")
        driver.work(self._stream(context, _CURRENT), memory_calls.filling(driver, size, address, value, count))


def _graphs() -> dict[str, Callable[..., Any]]:
    """Functions that capture graphs and launch them, by their names in the library."""
    return {
        "wp_cuda_graph_begin_capture": _begin_capture,
        "wp_cuda_graph_end_capture": _end_capture,
        "wp_cuda_graph_create_exec": _instantiate,
        "wp_cuda_graph_launch": _launch_graph,
        "wp_cuda_graph_pause_capture": _pause_capture,
        "wp_cuda_graph_resume_capture": _resume_capture,
        "wp_cuda_graph_insert_child_graph": _insert_child,
        "wp_cuda_graph_insert_if_else": _insert_if_else,
        "wp_cuda_graph_insert_while": _insert_while,
        "wp_cuda_graph_set_condition": _set_condition,
        "wp_cuda_graph_check_conditional_body": lambda graph: True,
        **dict.fromkeys(("wp_cuda_graph_destroy", "wp_cuda_graph_exec_destroy"), lambda context, handle: True),
        "wp_cuda_stream_is_capturing": lambda stream: int(stream in _driver().captures),
        "wp_cuda_stream_get_capture_id": lambda stream: graph_calls.graph_of(_driver(), stream),
        "wp_cuda_thread_exchange_capture_mode": lambda mode: mode,
    }


def _begin_capture(context: Any, stream: int, external: int, mode: int) -> bool:
    if not external:
        CALLS["cuStreamBeginCapture_v2"].function(_driver(), stream, mode)
    return True


def _end_capture(context: Any, stream: int, place: Any) -> bool:
    """Warp joins what the program has not joined."""
    graph_calls.join_all(_driver(), stream)
    place._obj.value = CALLS["cuStreamEndCapture"].function(_driver(), stream)
    return True


def _pause_capture(context: Any, stream: int, place: Any) -> bool:
    place._obj.value = CALLS["cuStreamEndCapture"].function(_driver(), stream)
    return True


def _resume_capture(context: Any, stream: int, graph: int) -> bool:
    graph_calls.resume(_driver(), stream, graph)
    return True


def _insert_child(context: Any, stream: int, graph: int) -> bool:
    _driver().work(stream, graph_calls.child_node(_driver(), graph))
    return True


def _insert_if_else(context: Any, stream: int, arch: int, ptx: bool, word: Any, on_true: Any, on_false: Any) -> bool:
    condition = _condition(stream, word)
    bodies = [None if place is None else _body(place) for place in (on_true, on_false)]
    _driver().work(stream, ConditionalNode(_driver(), condition, IF, bodies, reads=False))
    return True


def _insert_while(context: Any, stream: int, arch: int, ptx: bool, word: Any, place: Any, handle: Any) -> bool:
    condition = _condition(stream, word)
    handle._obj.value = _driver().made(condition)
    _driver().work(stream, ConditionalNode(_driver(), condition, WHILE, [_body(place)], reads=False))
    return True


def _set_condition(context: Any, stream: int, arch: int, ptx: bool, word: Any, handle: int) -> bool:
    _driver().work(stream, _driver().of(handle, GraphCondition).read)
    return True


def _condition(stream: int, word: Any) -> GraphCondition:
    """A condition that a stream reads now, from a word of device memory."""
    condition = GraphCondition(_driver(), ctypes.cast(word, ctypes.c_void_p).value or 0)
    _driver().work(stream, condition.read)
    return condition


def _body(place: Any) -> DriverGraph:
    """A new graph, whose handle goes to a place of the program."""
    graph = DriverGraph()
    place._obj.value = _driver().made(graph)
    return graph


def _instantiate(context: Any, stream: int, graph: int, place: Any) -> bool:
    place._obj.value = CALLS["cuGraphInstantiateWithFlags"].function(_driver(), graph)
    return True


def _launch_graph(executable: int, stream: int) -> bool:
    CALLS["cuGraphLaunch"].function(_driver(), executable, stream)
    return True


def _driver() -> StandInDriver:
    return library.driver()
