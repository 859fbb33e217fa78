"""Assembles PTX to a cubin, with nvJitLink in process or with the `ptxas` program.

It chooses the assembler and handles PTX that is newer than the assembler (PTX ISA, "PTX Module Directives: .version"). A newer
version only adds instructions, so the text is assembled under the assembler's own version if that accepts every
instruction. Otherwise the error names both versions and what to install. A tool that is new enough is
preferred over lowering.

nvJitLink always compiles relocatable code, in which a `.func` of the same module is called by the fixed ABI. For a kernel with shadow
hooks that costs half again as many registers (48 for 32) and serialises its wgmma (C7509). An option to clone functions for each entry
gives back the code of whole-program `ptxas`: so nvJitLink comes first (one shared library, no subprocess) where it knows the option,
else `ptxas`. That code also takes most of the time: a Hopper kernel with hooks 12 s, relocatable code 2 of them. `fast` is that.

Not handled: linking several modules, device libraries (`libcudadevrt`), and versions before 7.0, whose meaning differs.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from consan._errors import EnvironmentFailure, InternalError, UsageError
from consan.dataclass import dataclass
from consan.toolchain import find
from consan.toolchain.cache import CACHE, Cache, key
from consan.toolchain.extras import install
from consan.toolchain.log import AssembledEntry, entry_info

Tool = Literal["nvjitlink", "ptxas"]
_INPUT_PTX = 2
_OLDEST = (7, 0)
_FAST = "--Ofast-compile=min"  # of ptxas 13: functions are called by the fixed ABI; tried, never assumed
_CLONE = "--enable-func-clone-sc=true"  # found in nvJitLink 13.5 but not in its manual: tried, never assumed
_PATIENCE = 300.0  # seconds
_PROBE = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
_ARCH = re.compile(r"sm_\d{2,3}[af]?")
_VERSION = re.compile(r"^([ \t]*\.version[ \t]+)(\d+\.\d+)", re.MULTILINE)
_TOO_NEW = re.compile(r"Unsupported \.version (\d+\.\d+); current version is '(\d+\.\d+)'")
_ERROR_LINE = re.compile(r"^ptxas \S.*?, line (\d+); (?:error|fatal)\s*: (.*)$", re.MULTILINE)
_OF_TARGET = re.compile(
    r"requires (PTX ISA|\.target)|not supported on \.target|Unsupported \.version|not supported for target|does not support \.target"
)
_ERROR = re.compile(r"^(?:ptxas )?(?:error|fatal)\s*: (.*)$", re.MULTILINE)
# Advisories about slow or changed code: C75xx concern wgmma (serialised) and setmaxnreg (ignored).
_WARNING = re.compile(r"^.*\((C7\d{3})\).*$|^.*\bwarning\s*: .*$", re.MULTILINE)


@dataclass(frozen=True)
class Assembled:
    """A cubin and what the assembler said about it."""

    cubin: bytes
    log: str
    used: Tool
    version: tuple[int, int]
    lowered_from: tuple[int, int] | None = None
    info: dict[str, AssembledEntry] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Outcome:
    """The result of one assembler run: a cubin, or only a log."""

    cubin: bytes | None
    log: str


def assemble(ptx: str, arch: str, *, name: str = "<ptx>", options: Sequence[str] = (), fast: bool = False) -> Assembled:
    """Assemble a PTX module for `arch` ("sm_90a"); `options` are ptxas options such as `--maxrregcount=64`.

    `fast`: take a fraction of the time, if the assembler can; the code may need more registers and run slower.
    """
    if _ARCH.fullmatch(arch) is None:  # nvJitLink crashes on "sm_1"
        raise UsageError(f"'{arch}' is not an architecture; write it like sm_90a")
    wanted = ptx_version(ptx, name)
    limits: list[tuple[tuple[int, int], Tool]] = []
    for tool in _ordered(ptx):
        outcome = _RUN[tool](ptx, arch, options, fast)
        if outcome.cubin is not None:
            return _result(outcome, tool, wanted)
        limit = _limit(outcome.log)
        if limit is None:
            raise _failure(outcome.log, arch, name)
        limits.append((limit, tool))
    return _assemble_lowered(ptx, arch, name, options, fast, wanted, *max(limits))


def assemble_cached(
    ptx: str, arch: str, *, name: str = "<ptx>", options: Sequence[str] = (), fast: bool = False, cache: Cache = CACHE
) -> Assembled:
    """`assemble` with a disk cache. The key holds the text, the options and the assemblers' identity."""
    wanted = key("cubin", ptx, arch, *options, *(("fast",) if fast else ()), identity())
    return _unpack(cache.fetch(wanted, lambda: _pack(assemble(ptx, arch, name=name, options=options, fast=fast))))


def _pack(done: Assembled) -> bytes:
    head = {"log": done.log, "used": done.used, "version": done.version, "lowered_from": done.lowered_from}
    return json.dumps(head).encode() + b"\n" + done.cubin


def _unpack(data: bytes) -> Assembled:
    line, cubin = data.split(b"\n", 1)
    head = json.loads(line)
    lowered = tuple(head["lowered_from"]) if head["lowered_from"] else None
    return _result(_Outcome(cubin, head["log"]), head["used"], tuple(head["version"]), lowered)


@functools.lru_cache(maxsize=1)
def identity() -> str:
    """The available assemblers: paths, sizes and dates. `ptxas --version` would cost a process."""
    paths = [find.locate(find.NVJITLINK), find.ptxas()]
    facts = [(path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in paths if path and os.path.exists(path)]
    return repr(facts)


def _assemble_lowered(
    ptx: str,
    arch: str,
    name: str,
    options: Sequence[str],
    fast: bool,
    wanted: tuple[int, int],
    limit: tuple[int, int],
    tool: Tool,
) -> Assembled:
    if limit < _OLDEST:
        raise UsageError(f"{name} needs PTX ISA {_dotted(wanted)}; {tool} here stops at {_dotted(limit)}; upgrade: {install('cpu')}")
    outcome = _RUN[tool](with_version(ptx, limit), arch, options, fast)
    if outcome.cubin is None:
        reason = _failure(outcome.log, arch, name)
        raise UsageError(
            f"{reason}\nnote: {name} is PTX ISA {_dotted(wanted)}, newer than {tool}'s {_dotted(limit)}; a newer assembler may accept it: "
            f"pip install -U nvidia-nvjitlink"
        )
    return _result(outcome, tool, limit, wanted)


@dataclass(frozen=True)
class AssemblerRefusal:
    """The first thing in a module that an assembler refuses. `line` and `column` are 0 if unknown."""

    line: int
    column: int
    reason: str


def why_broken(ptx: str, arch: str, *, wild: bool = True) -> AssemblerRefusal | None:
    """The message of an assembler that refuses a module. None if it accepts it, or if nothing can judge:

    no assembler, or an unknown version or target. Instructions are not refused for their target: the virtual
    machine has none. `wild`: no compiler made the text. Assemblers may crash on such text, so another process tries.
    """
    if _ARCH.fullmatch(arch) is None or not (find.locate(find.NVJITLINK) or find.ptxas()):
        return None
    judge = _first_error_elsewhere if wild else _first_error
    done = CACHE.fetch_text(key("judged", ptx, arch, identity()), lambda: json.dumps(judge(ptx, arch)))
    line, count, reason = json.loads(done)
    if not count:
        return None
    more = f" (and {count - 1} more)" if count > 1 else ""
    lines = ptx.splitlines()
    line = min(line, len(lines))  # a truncated text is refused after its last line
    return AssemblerRefusal(line, _column(lines[line - 1], reason) if line else 0, reason + more)


_Judgement = tuple[int, int, str]  # line of the first error, how many there are, and what the assembler says of it
_NOTHING: _Judgement = (0, 0, "")


def _first_error(ptx: str, arch: str) -> _Judgement:
    outcome = _RUN[_ordered(ptx)[0]](ptx, arch, ("--opt-level=0",), False)
    found = [(int(line), reason) for line, reason in _ERROR_LINE.findall(outcome.log) if not _OF_TARGET.search(reason)]
    return (found[0][0], len(found), found[0][1]) if found and outcome.cubin is None else _NOTHING


def _first_error_elsewhere(ptx: str, arch: str) -> _Judgement:
    command = [sys.executable, "-m", __name__, arch]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(command, input=ptx.encode(), capture_output=True, env=environment, timeout=_PATIENCE, check=False)
        if done.returncode < 0:
            return 0, 1, f"the assembler crashes on this PTX ({signal.strsignal(-done.returncode)})"
        line, count, reason = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return _NOTHING  # the other process cannot start
    return line, count, reason


def _column(text: str, reason: str) -> int:
    """The column of the text that the reason quotes, else that of the first word."""
    quoted = (text.find(word) for word in re.findall(r"'([^']+)'", reason))
    return next((at for at in quoted if at >= 0), len(text) - len(text.lstrip())) + 1


def ptx_version(ptx: str, name: str = "<ptx>") -> tuple[int, int]:
    """The `.version` of a module."""
    match = _VERSION.search(ptx)
    if match is None:
        raise UsageError(f"{name}: no .version directive; is this PTX?")
    return _pair(match.group(2))


def with_version(ptx: str, version: tuple[int, int]) -> str:
    """The module with another `.version`; nothing else changes, so lines keep their numbers."""
    return _VERSION.sub(lambda match: match.group(1) + _dotted(version), ptx, count=1)


def _pair(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _tools() -> list[Tool]:
    found: list[Tool] = []
    if find.locate(find.NVJITLINK):
        found.append("nvjitlink")
    if find.ptxas():
        found.append("ptxas")
    if len(found) == 2 and not _clone_option():
        found.reverse()
    if not found:
        raise EnvironmentFailure(f"no PTX assembler was found (libnvJitLink or ptxas); install one with: {install('cpu')}")
    return found


def _ordered(ptx: str) -> list[Tool]:
    """The assemblers, best first. nvJitLink ignores setmaxnreg in a kernel that calls functions (C7504); ptxas does not."""
    tools = _tools()
    return sorted(tools, key=lambda tool: tool != "ptxas") if "setmaxnreg" in ptx else tools


def _limit(log: str) -> tuple[int, int] | None:
    match = _TOO_NEW.search(log)
    return _pair(match.group(2)) if match else None


def _result(outcome: _Outcome, tool: Tool, version: tuple[int, int], lowered_from: tuple[int, int] | None = None) -> Assembled:
    assert outcome.cubin is not None
    warnings = tuple(match.group(0).strip() for match in _WARNING.finditer(outcome.log))
    return Assembled(outcome.cubin, outcome.log, tool, version, lowered_from, entry_info(outcome.log), warnings)


def _failure(log: str, arch: str, name: str) -> UsageError:
    """One error naming the first lines that the assembler rejects."""
    located = [f"{name}:{line}: {text}" for line, text in _ERROR_LINE.findall(log)]
    general = [text for text in _ERROR.findall(log) if "aborted due to errors" not in text and not text.startswith("NVJITLINK")]
    lines = located or [f"{name}: {text}" for text in general] or [f"{name}: {log.strip()}"]
    more = f"\n... and {len(lines) - 5} more errors" if len(lines) > 5 else ""
    return UsageError(f"{name} does not assemble for {arch}:\n" + "\n".join(lines[:5]) + more)


# -- ptxas -----------------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _ptxas_knows_fast() -> bool:
    return _with_ptxas(_PROBE, "sm_80", (_FAST,), False).cubin is not None


def _with_ptxas(ptx: str, arch: str, options: Sequence[str], fast: bool) -> _Outcome:
    program = find.ptxas()
    assert program is not None
    if fast and _ptxas_knows_fast():
        options = (*options, _FAST)
    try:
        with tempfile.TemporaryDirectory(prefix="consan-") as folder:
            source, cubin = Path(folder, "module.ptx"), Path(folder, "module.cubin")
            source.write_text(ptx)
            done = _run_ptxas([program, "-v", f"-arch={arch}", *options, str(source), "-o", str(cubin)])
            log = (done.stdout + done.stderr).replace(f"{source}", "module.ptx")
            return _Outcome(cubin.read_bytes() if done.returncode == 0 else None, log)
    except OSError as error:  # no temporary folder, or no room in it
        raise EnvironmentFailure(f"cannot assemble with {program}: {error.strerror or error}") from error


def _run_ptxas(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise EnvironmentFailure(f"cannot run {command[0]}: {error}") from error
    if done.returncode < 0:
        raise EnvironmentFailure(f"{command[0]} was killed by signal {-done.returncode} ({signal.strsignal(-done.returncode)})")
    if done.returncode and not (done.stdout + done.stderr).strip():
        raise EnvironmentFailure(f"{command[0]} ended with status {done.returncode} and said nothing")
    return done


# -- nvJitLink -------------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def _jitlink() -> ctypes.CDLL:
    return find.load(find.NVJITLINK)


@functools.lru_cache(maxsize=1)
def _clone_option() -> tuple[str, ...]:
    """The option that makes nvJitLink compile local functions with each entry, if this version knows it."""
    return (_CLONE,) if _run_jitlink(_PROBE, "sm_80", (_CLONE,)).cubin else ()


def _with_jitlink(ptx: str, arch: str, options: Sequence[str], fast: bool) -> _Outcome:
    return _run_jitlink(ptx, arch, options if fast else (*_clone_option(), *options))


def _run_jitlink(ptx: str, arch: str, options: Sequence[str]) -> _Outcome:
    library, handle = _jitlink(), ctypes.c_void_p()
    arguments = [f"-arch={arch}".encode(), b"-verbose", *(f"-Xptxas={option}".encode() for option in options)]
    status = library.nvJitLinkCreate(ctypes.byref(handle), len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
    if status:
        return _Outcome(None, f"error : nvJitLink rejects one of these options: {b' '.join(arguments).decode()} (error {status})")
    try:
        return _link(library, handle, ptx.encode() + b"\0")
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))


def _link(library: ctypes.CDLL, handle: ctypes.c_void_p, data: bytes) -> _Outcome:
    status = library.nvJitLinkAddData(handle, _INPUT_PTX, data, ctypes.c_size_t(len(data)), b"module.ptx")
    status = status or library.nvJitLinkComplete(handle)
    log = _jitlink_log(library, handle, "Error") + _jitlink_log(library, handle, "Info")
    return _Outcome(None if status else _linked_cubin(library, handle), log)


def _jitlink_log(library: ctypes.CDLL, handle: ctypes.c_void_p, which: str) -> str:
    size = ctypes.c_size_t()
    if getattr(library, f"nvJitLinkGet{which}LogSize")(handle, ctypes.byref(size)):
        return ""
    buffer = ctypes.create_string_buffer(size.value + 1)
    getattr(library, f"nvJitLinkGet{which}Log")(handle, buffer)
    return buffer.value.decode(errors="replace")


def _linked_cubin(library: ctypes.CDLL, handle: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    status = library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    status = status or library.nvJitLinkGetLinkedCubin(handle, buffer)
    if status or not size.value:
        raise InternalError(f"nvJitLink linked the module but gives no cubin (error {status})")
    return buffer.raw[: size.value]


_RUN: dict[Tool, Callable[[str, str, Sequence[str], bool], _Outcome]] = {"nvjitlink": _with_jitlink, "ptxas": _with_ptxas}

if __name__ == "__main__":  # the other process of _first_error_elsewhere
    print(json.dumps(_first_error(sys.stdin.buffer.read().decode(), sys.argv[1])))
