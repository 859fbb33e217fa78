"""cuda.core on the GPU: what `Program` compiles and `ObjectCode.from_ptx` takes is launched instrumented.

Read against cuda.core 1.2. Its classes are extension types whose methods cannot be replaced, so the names in `cuda.core` are:

- `Program` is a subclass: C++ and NVVM IR are compiled to PTX with line information, PTX is taken as it is, and the result holds the
  instrumented cubin; a program cache given to `compile` is neither read nor written;
- `ObjectCode` is a subclass too, for `from_ptx`; all objects count as its instances;
- `Linker` is given the plain PTX of such objects, since the assembler of the instrumented ones sees one module only;
- `launch` gives each launch of a recorded kernel a log and waits for it (core_launch.py). Before the first launch of a module with called
  hooks it plants the control block: only then is a context sure to be current. It lists kernels whose library is none of ours: cubins
  and fat binaries that the program brings, linked objects, relocatable and LTO programs.

Kernels run as they are where cuda.core was imported before the first session: the program may hold the `launch` that gives no log. The
driver starts the nodes of a graph definition, and gives none: kernels that are made once a program has taken the name GraphDefinition run
as they are, too. A graph definition beside kernels that were recorded before cannot be made.

Numba's use of cuda.core is left to its own adapter. Not handled: names imported from `cuda.core` before the session (noted),
how often the nodes of a graph definition run, and `debug` programs that cuda-gdb is to see.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from consan._errors import NotSupported, UsageError
from consan.adapters import sources
from consan.adapters.base import PreparedLike, SessionLike, cubin_of, renewed
from consan.adapters.buffers import buffers
from consan.adapters.core_launch import Buffers, CoreLaunches, checked, driver, kernel_name, library_of
from consan.adapters.seam import Seam, lacking
from consan.dataclass import dataclass
from consan.session.without_optimisation import CudaText

_OLDEST = _NEWEST = (1, 2)
_SEAMS = ("Program.compile", "ProgramOptions", "ObjectCode.from_ptx", "ObjectCode.from_cubin", "Linker", "launch")
OWN_ADAPTER = ("numba", "numba_cuda")  # packages that use cuda.core and have an adapter of their own
_DEFINITION = "GraphDefinition"
# Why kernels run as they are.
_IMPORTED = "cuda.core was imported before consan was installed: import it later"
_DEFINES = "nodes of a GraphDefinition are not recorded: capture the launches by Device.create_graph_builder()"
_RELOCATABLE = ("relocatable_device_code", "link_time_optimization")


@dataclass(eq=False, repr=False)
class _Made:
    """An object that holds an instrumented cubin, and what it would hold without consan."""

    prepared: PreparedLike
    session: SessionLike  # to which it belongs
    shown: Any
    plain: Any
    planted: bool = False


class CudaCoreAdapter(Seam):
    """Instruments the programs of the cuda.core that the program imports."""

    name = "cuda.core"
    title = "cuda.core"
    package = "cuda.core"
    distribution = "cuda-core"
    covers = "programs that it compiles and PTX that it loads; binaries and linked objects are listed"

    def __init__(self) -> None:
        super().__init__()
        self._met = False  # whether cuda.core has been taken over before: names taken from it are ours then
        self._made: list[_Made] = []  # kept alive: a later session attaches to it again
        self._launches = CoreLaunches()
        self._unseen = ""  # why not all launches are seen
        self._defines = False  # whether the program has graph definitions, whose nodes are not launched by it

    def install(self, session: Any) -> None:
        """Take over cuda.core now or when it is imported."""
        if self.package in sys.modules and not self._met:
            self._unseen = _IMPORTED
            session.note("cuda.core was imported before consan was installed: names taken from it before are not checked")
        super().install(session)
        for made in self._made:
            made.planted = False

    def _begin(self, core: ModuleType) -> None:
        known = self._known(_OLDEST, _NEWEST, lacking(core, *_SEAMS))
        if hasattr(core, "launch"):
            self._wrap(core, "launch", self._launch)
        if known:
            self._met = True
            self._patches.set(core, "Program", _checked_program(self, core.Program, core.ProgramOptions))
            self._patches.set(core, "Linker", _checked_linker(self, core.Linker))
            self._patches.set(core, "ObjectCode", _checked_object_code(self, core.ObjectCode))
            if hasattr(getattr(core, "graph", None), _DEFINITION):
                named = functools.partial(self._named, core.graph.__name__, _checked_definition(self, core.graph.GraphDefinition))
                self._patches.take_away(core.graph, _DEFINITION)
                self._patches.set(core.graph, "__getattr__", named)

    def _named(self, module: str, definition: Any, name: str) -> Any:
        """A name of the module of graphs that it lacks: that of graph definitions was taken away, to see who takes it."""
        if name != _DEFINITION:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        self._unseen = self._unseen or _DEFINES
        return definition

    # -- asked by the subclasses ----------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether there is a session, and the calling package has no adapter of its own."""
        return self._session is not None and caller() not in OWN_ADAPTER

    def place(self, code: str) -> sources.SourceStart:
        """The place at which the C++ source can be read."""
        return sources.place(code, sources.source_folder(self._session))

    def made(self, plain: Any, text: str, name: str, mapping: Any = None, source: CudaText | None = None) -> Any:
        """The object to load in place of the plain one, whose PTX is the text. `source`: what that was compiled from."""
        session = self._open
        prepared = session.instrument_for_framework(text, name=name, unseen=self._unseen)
        if source is not None:
            session.unoptimised.texts[prepared.plain] = source
        shown = type(plain).from_cubin(cubin_of(prepared), name=name, symbol_mapping=dict(mapping or {}))
        self._made.append(_Made(prepared, session, shown, plain))
        if self._defines:
            self._ready(self._made[-1])
        return shown

    def plain(self, code: Any) -> Any:
        """The object as it would be without consan."""
        return next((made.plain for made in self._made if made.shown is code), code)

    def defines(self) -> None:
        """A graph definition is made. The driver starts its nodes: recorded kernels would have no log, and hooks must be planted."""
        if any(made.prepared.gets_logs for made in self._made):
            raise NotSupported(f"cuda.core: {_DEFINES}, or use --engine inline")
        self._defines = True
        for made in self._made if self._session is not None else ():
            self._ready(made)

    # -- launches ------------------------------------------------------------------------------------------------------------------

    def _launch(self, original: Callable[..., Any], stream: Any, config: Any, kernel: Any, *args: Any) -> Any:
        if caller() in OWN_ADAPTER:
            return original(stream, config, kernel, *args)
        return self._launches.launch(self._session, functools.partial(self._new, kernel, args), original, stream, config, kernel, *args)

    def _new(self, kernel: Any, args: tuple[Any, ...]) -> Buffers:
        """A launch that is unlike those before it."""
        library, named = library_of(kernel), functools.partial(buffers, args)
        found = next((made for made in self._made if int(made.shown.handle) == library), None)
        if self._session is not None:
            if found is None or not self._ready(found):
                self._open.uninstrumented(kernel_name(kernel))
            elif not found.prepared.gets_logs:
                self._open.launched(found.prepared, kernel_name(kernel), named())
        if found is not None and not found.planted:  # no session wants it
            self._see(found)
        return named

    def _ready(self, made: _Made) -> bool:
        """Attach a module to this session; False where it was made under other settings."""
        if not made.planted:
            prepared = renewed(self._open, made.prepared)
            if prepared is None:
                return False
            made.prepared, made.session, made.planted = prepared, self._open, True
            self._open.attach(prepared, _symbol_writer(made.shown))
            self._see(made)
        return True

    def _see(self, made: _Made) -> None:
        if made.prepared.gets_logs:
            self._launches.add(made.session, made.prepared, made.shown.handle)


@functools.cache  # the class must outlive its instances: cuda.core calls methods when it frees them
def _checked_program(adapter: CudaCoreAdapter, base: Any, options_type: Any) -> Any:
    class Program(base):  # type: ignore[misc]
        """cuda.core's Program; in a session of consan it compiles to instrumented code."""

        def __init__(self, code: Any, code_type: str, options: Any = None) -> None:
            given = options if isinstance(options, options_type) or options is None else options_type(**options)
            self._consan = adapter.active and not any(getattr(given, name, None) for name in _RELOCATABLE)
            self._consan_name = str(getattr(given, "name", None) or "program")
            self._consan_ptx = text_of(code) if str(code_type).lower() == "ptx" else None
            self._consan_text: Callable[..., CudaText] | None = None
            if self._consan and str(code_type).lower() == "c++":
                self._consan_name, at = sources.kernel_name(code), adapter.place(code)
                code = at.spread(code)
                self._consan_text = functools.partial(cuda_text, base, given or options_type(), options_type, at, code)
                code, options = at.directive() + code, with_lines(given, options_type)
            super().__init__(code, code_type, options)

        def compile(self, target_type: Any, name_expressions: Any = (), logs: Any = None, **kwargs: Any) -> Any:
            """As cuda.core's, but kernels of the result run instrumented."""
            if not (self._consan and adapter.active and str(target_type).lower() in ("cubin", "ptx")):
                return super().compile(target_type, name_expressions, logs, **kwargs)
            if self._consan_ptx is not None:
                return adapter.made(super().compile(target_type, name_expressions, logs), self._consan_ptx, self._consan_name)
            began = time.process_time()
            with warnings.catch_warnings():  # "the driver is too old for this PTX": the driver never gets it
                warnings.simplefilter("ignore")
                ptx = super().compile("ptx", name_expressions, logs)
            source = self._consan_text and self._consan_text(name_expressions, time.process_time() - began)
            return adapter.made(ptx, text_of(ptx.code), self._consan_name, ptx.symbol_mapping, source)

    return Program


@functools.cache
def _checked_linker(adapter: CudaCoreAdapter, base: Any) -> Any:
    class Linker(base):  # type: ignore[misc]
        """cuda.core's Linker, which gets plain PTX."""

        def __init__(self, *object_codes: Any, **kwargs: Any) -> None:
            super().__init__(*(adapter.plain(code) for code in object_codes), **kwargs)

    return Linker


@functools.cache
def _checked_object_code(adapter: CudaCoreAdapter, base: Any) -> Any:
    class AllObjects(type(base)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, base)

    class ObjectCode(base, metaclass=AllObjects):  # type: ignore[misc]
        """cuda.core's ObjectCode; in a session of consan, PTX is instrumented."""

        @staticmethod
        def from_ptx(module: Any, *, name: str = "", symbol_mapping: Any = None) -> Any:
            """As cuda.core's; the result holds a cubin."""
            plain = base.from_ptx(module, name=name, symbol_mapping=symbol_mapping)
            if not adapter.active:
                return plain
            from_file = not isinstance(module, bytes)
            text = Path(module).read_text() if from_file else text_of(module)
            return adapter.made(plain, text, name or (str(module) if from_file else "<ptx>"), symbol_mapping)

    return ObjectCode


def _checked_definition(adapter: CudaCoreAdapter, base: Any) -> Any:
    class AllDefinitions(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            adapter.defines()
            return base(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, base)

        def __getattr__(cls, name: str) -> Any:
            return getattr(base, name)

    return AllDefinitions("GraphDefinition", (), {})


def with_lines(options: Any, options_type: Any) -> Any:
    """Options with line information."""
    if options is None:
        return options_type(lineinfo=True)
    return options if options.lineinfo or options.debug else dataclasses.replace(options, lineinfo=True)


def cuda_text(base: Any, given: Any, options_type: Any, at: sources.SourceStart, code: str, names: Any, took: float) -> CudaText:
    """The text that a `Program` was compiled from. `base`: cuda.core's. `took`: seconds of processor time."""

    def compiled(text: str, optimised: bool) -> str:
        options = with_lines(given, options_type) if optimised else dataclasses.replace(given, lineinfo=True, debug=True)
        try:
            return text_of(base(at.directive() + text, "c++", options).compile("ptx", names).code)
        except Exception as error:  # as cuda.core raises it
            raise UsageError(str(error)) from None

    return CudaText(at.path, at.line, code, compiled, took)


def text_of(code: Any) -> str:
    """The text of a module or of an object."""
    return (code if isinstance(code, str) else bytes(code).decode()).rstrip("\0")


def caller() -> str:
    """The package that called into cuda.core: the first frame that is not ours."""
    return next(name for name in _callers() if name != "consan")


def _callers() -> Iterator[str]:
    frame = sys._getframe(1)
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back  # type: ignore[assignment]
    yield ""


def _symbol_writer(code: Any) -> Callable[[str, bytes], None]:
    def write(name: str, data: bytes) -> None:
        address, _ = checked(driver().cuLibraryGetGlobal(code.handle, name.encode()))
        checked(driver().cuMemcpyHtoD(address, data, len(data)))

    return write
