"""Runs the user's program as `python` would: same argv, sys.path[0], `__main__`, tracebacks, status.

Modelled on coverage's PyRunner: the program runs in a fresh `__main__` module, consan's frames are removed from its
tracebacks, SystemExit keeps its status, and non-daemon threads are waited for.

Its `atexit` functions (exit_functions.py) run before the report. PYTHONSTARTUP and -i are not supported.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.machinery
import importlib.util
import os
import re
import shutil
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from concurrent.futures import thread as pools
from pathlib import Path
from typing import TYPE_CHECKING, Final

from consan import late
from consan._errors import ConsanError, ExitCode, UsageError
from consan.dataclass import dataclass
from consan.native.program import NativeProgram
from consan.process.collector import collecting_as_given
from consan.process.exit_functions import ExitFunctions
from consan.process.lines import located, place, users
from consan.ranks.crew import Crew, begin, current
from consan.session.left_threads import OF_CONSAN

if TYPE_CHECKING:
    from consan.session.session import Session

_KERNELS: Final = (".cu", ".cuh", ".ptx")
_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
_STREAM: Final = re.compile(
    r"(External)?Stream|(create_)?stream|cu(da)?StreamCreate\w*"
)  # of CuPy, torch, Warp, Numba, cuda.core, the driver
_ELF: Final = b"\x7fELF"
_MAGIC: Final = (_ELF, b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")  # ELF, Mach-O, universal Mach-O, PE
_NATIVE: Final = "of those, consan run takes programs for Linux, on a GPU"
_INTERPRETER: Final = "without the word python, consan run knows the frameworks of the script, and checks more of their kernels"


@dataclass(frozen=True)
class PythonProgram:
    """A program ready to run: code, argv, sys.path[0], and the module attributes for its origin."""

    code: types.CodeType
    argv: tuple[str, ...]
    path: str
    label: str  # for the name of the stored run
    file: str | None = None
    spec: importlib.machinery.ModuleSpec | None = None
    package: str | None = None


@dataclass(frozen=True)
class ProgramEnd:
    """How a program has ended. `failure`: consan's own error, if one ended it. `uncaught`: other exceptions that did, of each rank.

    `in_threads`: exceptions that have ended its threads.
    """

    status: int
    failure: ConsanError | None = None
    uncaught: tuple[BaseException, ...] = ()
    in_threads: tuple[BaseException, ...] = ()

    def cut_short(self, *, replaced: bool, what: str = "the program") -> list[str]:
        """Why the program may not have done all that it does without consan. `replaced`: consan stands in for its GPU."""
        ended = (what, (*filter(None, (self.failure,)), *self.uncaught)), (f"a thread of {what}", self.in_threads)
        own = [(who, _own_error(error)) for who, errors in ended for error in errors]
        reasons = [f"consan ended {who}: {each}" for who, each in own if each is not None and each.exit_code != ExitCode.INTERRUPTED]
        others = [(who, type(each).__name__) for who, errors in ended for each in errors if replaced and _own_error(each) is None]
        return list(dict.fromkeys([*reasons, *(f"{who} ended by {each}, and consan stands in for its GPU" for who, each in others)]))


def _own_error(error: BaseException | None) -> ConsanError | None:
    """The error of consan that an exception comes from."""
    while error is not None and not isinstance(error, ConsanError):
        error = error.__cause__ or error.__context__
    return error


def add_words(parser: argparse.ArgumentParser) -> None:
    """Declare a program and its words: all after the program belong to it."""
    rest = argparse.REMAINDER
    parser.add_argument("-m", dest="module", nargs=rest, metavar="module", help="run a module, as python -m does")
    parser.add_argument("-c", dest="code", nargs=rest, metavar="code", help="run code given as text")
    parser.add_argument("program", nargs=rest, metavar="script.py", help="the program and its arguments")


def drop_idle_words(args: argparse.Namespace) -> None:
    """`-- ./program`: the dashes only end the options. `python script.py`: consan runs it, where that is the interpreter of consan."""
    if args.program[:1] == ["--"]:
        del args.program[0]
    word, *rest = args.program or [""]
    if not _PYTHON.fullmatch(word) or os.path.exists(word) or not _runs_consan(shutil.which(word)) or not rest:
        return
    if rest[0] in ("-m", "-c"):
        args.program, (option, *words) = [], rest
        setattr(args, {"-m": "module", "-c": "code"}[option], words)
    elif not rest[0].startswith("-"):
        args.program = rest


def _runs_consan(interpreter: str | None) -> bool:
    """Whether a path is that of the running interpreter, and of its environment."""
    places = [os.path.abspath(each) for each in (interpreter, sys.executable) if each]
    return len(places) == 2 and len({(os.path.dirname(each), os.path.realpath(each)) for each in places}) == 1


def find_program(args: argparse.Namespace) -> PythonProgram:
    """The program: exactly one of a module, code and a script."""
    if args.module is not None:
        return from_module(*_head(args.module, "-m: the name of a module"))
    if args.code is not None:
        return from_code(*_head(args.code, "-c: code"))
    return from_script(*_head(args.program, "a program to run: script.py, ./program, -m module or -c code"))


def find_native(args: argparse.Namespace) -> NativeProgram | None:
    """The program, if it is machine code for Linux or a script of another interpreter: a file here, or a command."""
    words = args.program
    if args.module is not None or args.code is not None or not words or not words[0]:
        return None
    file = words[0] if os.path.exists(words[0]) else shutil.which(words[0]) or ""
    interpreter = _PYTHON.fullmatch(words[0]) is not None and file != words[0]
    if not _is_native(file, (_ELF,)) or (interpreter and args.device == "cpu"):
        return None
    return NativeProgram(os.path.abspath(file), tuple(words), _INTERPRETER if interpreter else "")


def _head(words: list[str], expected: str) -> tuple[str, list[str]]:
    if not words or not words[0]:
        raise UsageError(f"expected {expected}")
    return words[0], words[1:]


def from_script(name: str, argv: Sequence[str]) -> PythonProgram:
    """`script.py`, or a folder with a `__main__.py`. `__file__` is absolute, as it is since Python 3.9."""
    refuse_other(name)
    folder = os.path.isdir(name)
    path = Path(os.path.abspath(name), *(["__main__.py"] if folder else []))
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None
    first = str(path.parent if folder else path.resolve().parent)
    code, package = _compile(source, str(path)), "" if folder else None
    return PythonProgram(code, (name, *argv), first, Path(name).stem or "main", str(path), package=package)


def refuse_other(name: str) -> None:
    """Raise UsageError for a file that is no Python program, and say what to do instead."""
    if Path(name).suffix.lower() in _KERNELS:
        raise UsageError(f"{name} holds kernels, and no Python program; launch one with consan check {name}")
    if os.path.isdir(name):
        if not os.path.isfile(os.path.join(name, "__main__.py")):
            raise UsageError(f"{name} is a folder without __main__.py; name a script in it, or a module with -m")
    elif not os.path.exists(name):
        _refuse_command(name)
    elif _is_native(name):
        raise UsageError(f"{name} is no Python program: {_NATIVE}")


def _refuse_command(name: str) -> None:
    """`consan run python script.py`, `consan run pytest`: the word is a shell command, and no such file exists."""
    found = shutil.which(name)
    if found is None:
        return
    if _PYTHON.fullmatch(name):
        raise UsageError(f"{name} is an interpreter, and consan is one itself: leave it out, as in consan run script.py")
    if _is_native(found):
        raise UsageError(f"{name} is no Python program: {_NATIVE}")
    raise UsageError(f"{name} is a command, and no file here; name its module with -m, or its file: consan run {found}")


def _is_native(name: str, magic: tuple[bytes, ...] = _MAGIC) -> bool:
    """Whether a file is machine code or a script for another interpreter. A pipe is not opened: that would consume it."""
    try:
        if not os.path.isfile(name):
            return False
        with open(name, "rb") as file:
            head = file.readline(256)
    except OSError:
        return False
    return head.startswith(magic) or (head.startswith(b"#!") and b"python" not in head and not name.endswith(".py"))


def from_code(code: str, argv: Sequence[str]) -> PythonProgram:
    """`-c code`."""
    return PythonProgram(_compile(code, "<string>"), ("-c", *argv), "", "c")


def from_module(name: str, argv: Sequence[str]) -> PythonProgram:
    """`-m module`: the module, or the `__main__` of a package."""
    sys.path.insert(0, os.getcwd())  # -m looks in the working directory first
    try:
        spec = _find(name)
    finally:
        sys.path.remove(os.getcwd())
    code = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    if code is None:
        raise UsageError(f"-m: there is no module '{name}' that can be run")
    return PythonProgram(code, (spec.origin or name, *argv), os.getcwd(), name, spec.origin, spec)


def _find(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise UsageError(f"-m: {error}") from None
    if spec is None or not hasattr(spec.loader, "get_code"):
        raise UsageError(f"-m: there is no module '{name}' that can be run")
    return spec


def _compile(source: str | bytes, name: str) -> types.CodeType:
    try:
        return compile(source, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(f"{name}{line}: {getattr(error, 'msg', None) or error}") from None


def execute(program: PythonProgram, uncaught: list[BaseException]) -> int:
    """Run it, or once for each rank, and return its exit status. An uncaught ConsanError is raised with the user's line in front.

    Other exceptions are added to `uncaught`.
    """
    saved, exits = (sys.argv, sys.path[:], sys.modules["__main__"]), ExitFunctions()
    # `python -m consan` and the `consan` script put their own folder first; the program's folder replaces it.
    sys.argv, sys.path[0:1] = list(program.argv), [program.path]
    try:
        try:
            crew = current()
            return _of_ranks(program, crew, uncaught) if crew is not None else _alone(program, uncaught)
        finally:
            join_threads()
            uncaught += exits.run()
    finally:
        with contextlib.suppress(OSError, ValueError):  # a full disk, a closed pipe or file must not cost the findings
            sys.stdout.flush()
        sys.argv, sys.path[:], sys.modules["__main__"] = saved


def _alone(program: PythonProgram, uncaught: list[BaseException]) -> int:
    module = sys.modules["__main__"] = _main_module(program)
    return _guarded(program.code, module, uncaught)


def _of_ranks(program: PythonProgram, crew: Crew, uncaught: list[BaseException]) -> int:
    """Run it once for each rank. The first status that is not 0; consan's own error of the first rank that has one."""
    mains, errors = [_main_module(program) for _ in range(crew.count)], dict[int, ConsanError]()

    def of_rank(rank: int) -> int:
        try:
            return _guarded(program.code, mains[rank], uncaught)
        except ConsanError as error:
            errors[rank] = error
            return int(error.exit_code)

    statuses = crew.run(of_rank, mains)
    if errors:
        raise errors[min(errors)]
    return next(filter(None, statuses), 0)


def run_program(program: PythonProgram, session: Session, ranks: int = 1) -> ProgramEnd:
    """Run it. With several ranks it runs once for each."""
    uncaught, in_threads = list[BaseException](), list[BaseException]()
    end = begin(Crew(ranks)) if ranks > 1 else lambda: None
    try:
        late.adapters.install(session)
        if ranks == 1 and session.backend.simulates and makes_streams(program.code):
            session.streams.expect()
        with collecting_as_given(), _watching_threads(in_threads):
            status = execute(program, uncaught)
        return ProgramEnd(status, None, tuple(uncaught), tuple(in_threads))
    except ConsanError as error:
        return ProgramEnd(int(error.exit_code), error, tuple(uncaught), tuple(in_threads))
    except KeyboardInterrupt:  # during the wait for the program's threads
        return ProgramEnd(int(ExitCode.INTERRUPTED))
    finally:
        late.adapters.remove()
        end()


@contextlib.contextmanager
def _watching_threads(ended: list[BaseException]) -> Iterator[None]:
    """Inside the block exceptions that end threads are kept. Errors of consan's own are one line each. Nothing is shown after the block.

    A program that sets `threading.excepthook` sees its exceptions itself.
    """
    before, own = threading.excepthook, set(threading.enumerate())
    runs = True

    def noted(args: threading.ExceptHookArgs) -> None:
        error = _own_error(args.exc_value)
        if error is not None and runs:
            error = located(error)
            print(f"consan: error: {error}", file=sys.stderr)
        elif error is None and runs:
            before(args)
        if args.exc_value is not None and args.exc_type is not SystemExit:
            ended.append(error or args.exc_value)

    threading.excepthook = noted
    try:
        yield
    finally:
        runs = False
        left = [each for each in threading.enumerate() if each not in own and not each.name.startswith(OF_CONSAN)]
        if threading.excepthook is noted and not left:  # else a daemon thread may still use what consan stands in for
            threading.excepthook = before


def _main_module(program: PythonProgram) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    module.__spec__ = program.spec
    module.__package__ = program.package
    if program.file is not None:
        module.__file__ = program.file
    if program.spec is not None:
        module.__package__ = program.spec.parent
        module.__loader__ = program.spec.loader
    return module


def _guarded(code: types.CodeType, module: types.ModuleType, uncaught: list[BaseException]) -> int:
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        return status_of(error)
    except ConsanError as error:
        raise located(error) from error
    except KeyboardInterrupt as error:
        print(f"consan: interrupted{place(error, ' at ')}", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BaseException as error:
        uncaught.append(error)
        sys.excepthook(type(error), error.with_traceback(users(error.__traceback__)), error.__traceback__)
        return 1
    return 0


def status_of(error: SystemExit) -> int:
    """The status that the interpreter derives from sys.exit's argument."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def makes_streams(code: types.CodeType) -> bool:
    """Whether a program's text has a name by which streams are made."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return any(map(_STREAM.fullmatch, code.co_names)) or any(map(makes_streams, inner))


def join_threads() -> None:
    """Wait for the program's threads. Workers of a pool that the program left open end when they have nothing to do, as in Python."""
    end_pools = getattr(pools, "_python_exit", None)
    if end_pools is not None:
        end_pools()
        pools._shutdown = False  # only the program has ended: consan goes on
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
