"""tilelang on a machine without a GPU: its NVRTC back end, whose host code is Python, launches on consan's stand-in driver.

Read against tilelang 0.1.15. Each kernel is compiled for the virtual machine's chip by that back end, to PTX with the lines of the program;
neither of its caches on disk is used. Generated lines have a `#line` where tilelang knows the statement; the lines behind it get the same
one, because the compiler would count on. Statements that tilelang's own macros expand to belong to the line that uses the macro.
torch's device "cuda" is the CPU (consan/adapters/triton/torch_device.py); for a launch its tensors are copied to the device and back.

Not handled: targets other than CUDA, the autotuner's timings, output tensors of a kernel that takes no tensor.
"""

from __future__ import annotations

import importlib
import os
import re
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from consan.adapters import sources
from consan.adapters.base import SessionLike
from consan.adapters.buffers import buffers
from consan.adapters.driven.seam import DrivenSeam
from consan.adapters.seam import lacking
from consan.adapters.triton import harness, torch_device
from consan.adapters.triton.driver import VirtualDriver
from consan.adapters.triton.host import HostMemory, block_of
from consan.launching.placement import placed
from consan.libcuda import library
from consan.session.comparing.launch_memory import Copied, Memory
from consan.session.modules.producers import TILELANG_MARK
from consan.toolchain import find

_TRIED: Final = (0, 1)
_NVRTC: Final = "tilelang.jit.adapter.nvrtc"
_DEVICE: Final = "tilelang.carver.arch.driver.cuda_driver"
_LINES: Final = "tl.emit_line_directives"
# nvcc has these types from the host's headers
HOST_TYPES: Final = "typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;\n"
_OF_NVCC: Final = re.compile(r"-O\d|-W\w|--?expt-(?:relaxed-constexpr|extended-lambda)|--?ptxas-options|-Xptxas|-Xcompiler")
_DIRECTIVE: Final = re.compile(r"^#line \d+ .*$")
_KERNEL: Final = re.compile(r'^extern "C" __global__ .*\{$')
_GRID_BARRIER: Final = "this_grid().sync()"  # of T.sync_grid: this back end leaves out that the launch is cooperative, and others do not
_NEEDS: Final = {
    "tilelang.backend.target": ("auto_detect_target",),
    "tilelang.backend.module": ("BackendModule.resolve_execution_backend",),
    "tilelang.cuda.target": ("_detect_torch_cuda_arch",),
    _DEVICE: ("get_cuda_device_properties",),
    "tilelang.ir": ("set_stmt_span",),
    "tilelang.jit.kernel": ("normalize_pass_configs",),
    "tilelang.language.eager.builder": ("Builder._current_stmt_frame", "tirx.frame.TIRFrame"),
}


class TilelangStandIn(DrivenSeam):
    """Runs programs of tilelang on the virtual machine."""

    name = "tilelang"
    title = "tilelang"
    package = "tilelang"
    distribution = "tilelang"
    covers = "every kernel that a program compiles, by its NVRTC back end; tensors of torch on the CPU"

    def __init__(self) -> None:
        super().__init__()
        self._driver: VirtualDriver | None = None
        self._loaded: weakref.WeakSet[Any] = weakref.WeakSet()  # what unloads its library when it goes

    def install(self, session: SessionLike) -> None:
        """Its caches hold machine code."""
        super().install(session)
        if self.available():
            self._set(TILELANG_DISABLE_CACHE="1", TILELANG_AUTO_TUNING_DISABLE_CACHE="1", TILELANG_CLEANUP_TEMP_FILES="1")

    def remove(self) -> None:
        """Restore everything."""
        self._driver = None
        for generator in self._loaded:  # the library went with the session
            generator.culib = None
        super().remove()

    def _begin(self, tilelang: ModuleType) -> None:
        modules: dict[str, Any] = {name: importlib.import_module(name) for name in _NEEDS}
        if not self._known(_TRIED, _TRIED, [each for name, needs in _NEEDS.items() for each in lacking(modules[name], *needs)]):
            return
        self._enter()
        self._driver = VirtualDriver(self._open, self._open.options.triton_arch)
        self._when("torch", self._redirect)
        self._when(f"{_NVRTC}.libgen", self._compiles)
        self._when(f"{_NVRTC}.adapter", self._launches)
        self._when("tilelang.profiler", lambda profiler: self._wrap(profiler, "do_bench", harness.run_once, self._open))
        chip = self._open.options.chip
        self._patches.set(modules["tilelang.cuda.target"], "_detect_torch_cuda_arch", lambda: chip)
        self._patches.set(modules["tilelang.backend.target"], "auto_detect_target", lambda: "cuda")
        self._wrap(modules["tilelang.backend.module"].BackendModule, "resolve_execution_backend", _nvrtc)
        keep_lines(tilelang, self._wrap)

    def _redirect(self, torch: ModuleType) -> None:
        assert self._driver is not None
        self._undo.append(torch_device.redirect(self._open, self._driver, self._patches, torch))
        self._patches.set(importlib.import_module(_DEVICE), "get_cuda_device_properties", torch.cuda.get_device_properties)

    def _compiles(self, libgen: Any) -> None:
        self._wrap(libgen.NVRTCLibraryGenerator, "compile_lib", self._compile)
        self._wrap(libgen, "compile_cuda", self._to_ptx)

    def _launches(self, adapter: Any) -> None:
        self._wrap(adapter.NVRTCKernelAdapter, "_forward_from_prebuild_lib", self._launch)

    def _compile(self, original: Callable[..., None], generator: Any, *args: Any, **kwargs: Any) -> None:
        """`NVRTCLibraryGenerator.compile_lib`: the compiler takes the current target's architecture, or asks for a GPU."""
        self._loaded.add(generator)
        with generator.target:
            original(generator, *args, **kwargs)

    def _to_ptx(self, original: Callable[..., Any], code: str, target_format: str, options: list[str], **others: Any) -> Any:
        """`compile_cuda`: PTX with lines, also where there is no CUDA toolkit."""
        given = [*of_nvrtc(options), *(f"-I{folder}" for folder in find.include_dirs()), "-lineinfo"]
        placed_code = with_each_line(code, sources.place(code, sources.source_folder(self._open)))
        made = bytes(original(HOST_TYPES + placed_code, target_format="ptx", options=given, **others)).rstrip(b"\0")
        return made + f"\n{TILELANG_MARK}\n".encode()

    def _launch(self, original: Callable[..., Any], adapter: Any, *args: Any, stream: int | None = None) -> Any:
        """The host code of a kernel, with tensors on the device."""
        assert self._driver is not None
        names = [
            str(adapter.prim_func.buffer_map[each].name) if each in adapter.prim_func.buffer_map else each.name
            for each in adapter.prim_func.params
        ]
        blocks = (block_of(each, name) for each, name in zip(args, names, strict=False) if hasattr(each, "data_ptr"))
        session: Any = self._open
        with placed(session) as placement:
            memory = HostMemory(placement, [each for each in blocks if each is not None])
            given = [_OnDevice(each, memory.address(each.data_ptr())) if hasattr(each, "data_ptr") else each for each in args]
            copies = Memory([Copied(*each) for each in placement.copies], shared=False, owners=args)
            cooperative = _GRID_BARRIER in adapter.device_kernel_source
            with library.launching(buffers(given, names), copies, cooperative=cooperative):
                return original(adapter, *given, stream=self._driver.now.get().handle)


def of_nvrtc(options: list[str]) -> list[str]:
    """A program's options for nvcc, as NVRTC takes them: those of optimisation, constexpr and lambdas go."""
    return [each for each in options if _OF_NVCC.match(each) is None]


def keep_lines(tilelang: ModuleType, wrap: Callable[..., None]) -> None:
    """Generated code names the lines of the program. `wrap`: replaces a function."""
    modules: dict[str, Any] = {name: importlib.import_module(name) for name in _NEEDS}
    wrap(modules["tilelang.jit.kernel"], "normalize_pass_configs", _with_lines)
    builder = modules["tilelang.language.eager.builder"]
    wrap(builder.Builder, "_current_stmt_frame", _innermost, builder.tirx.frame.TIRFrame)
    wrap(modules["tilelang.ir"], "set_stmt_span", _of_program, os.path.dirname(str(tilelang.__file__)) + os.sep)


class _OnDevice:
    """A tensor of the host, as the host code asks for one on the device."""

    is_cuda = True
    device: Final = SimpleNamespace(index=0)

    def __init__(self, tensor: Any, address: int) -> None:
        self._tensor, self._address = tensor, address

    def data_ptr(self) -> int:
        """The address of its copy."""
        return self._address

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)


def _nvrtc(original: Callable[..., Any], module: Any, requested: str | None, target: Any) -> Any:
    """`BackendModule.resolve_execution_backend`: the one whose host code is Python, where there is one for the target."""
    return original(module, "nvrtc" if "nvrtc" in module.allowed_execution_backends(target) else requested, target)


def _with_lines(original: Callable[..., Any], configs: Any) -> Any:
    """`normalize_pass_configs`, with `#line` directives."""
    return {**(original(configs) or {}), _LINES: True}


def _of_program(folder: str, original: Callable[..., None], statement: Any, span: Any) -> None:
    """`set_stmt_span`: a statement of tilelang's own code gets the line of the program that leads to it, later."""
    if not span.source_name.name.startswith(folder):
        original(statement, span)


def _innermost(frame_type: type, original: Callable[..., Any], builder: Any) -> Any:
    """`Builder._current_stmt_frame`, also inside of `T.ws`: else its statements get the line of the `with`."""
    frame = original(builder)
    while isinstance(inner := (list(getattr(frame, "frames", ())) or [None])[-1], frame_type):
        frame = inner
    return frame


def with_each_line(code: str, generated: sources.SourceStart) -> str:
    """The generated code; behind each `#line` directive the lines have the same number, and before the first one their own."""
    return "\n".join(_with_each_line(code, generated))


def _with_each_line(code: str, generated: sources.SourceStart) -> Iterator[str]:
    directive, number = "", generated.line
    for line in code.split("\n"):
        if _DIRECTIVE.match(line):
            directive = line
            continue
        if _KERNEL.match(line):
            directive = ""
        yield directive or f'#line {number} "{generated.path}"'
        yield line
        number += 1
