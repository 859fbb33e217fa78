"""All options that commands share: flags, environment variable, default, reader, help text.

This table drives the parsers, the keys of `[tool.consan]` (consan/config.py), the environment, `consan doctor` and the warning about
unknown variables. Precedence, lowest first: `[tool.consan]`, `CONSAN_OPTIONS` (a command line), the option's own
variable (`CONSAN_SEED`), the command line. Values stay text until `fill`, so that all sources give the same error text.

Options of a single command are in that command's file; the grammar of `--arg` is in consan/launching/arguments.py.
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NoReturn, TypeVar

from consan._errors import UsageError, did_you_mean
from consan.dataclass import dataclass
from consan.reports.formats.look import COLORS

T = TypeVar("T")
PREFIX: Final = "CONSAN_"
VARIABLE: Final = "CONSAN_OPTIONS"
DEVICES: Final = ("auto", "gpu", "cpu")
ISA: Final = "isa"
POLICIES: Final = ("default", ISA)
ASSEMBLIES: Final = ("best", "fast")
AUTO: Final = "auto"
RECORD: Final = "record"
INLINE: Final = "inline"
ENGINES: Final = (AUTO, RECORD, INLINE)
GLOBALS: Final = ("auto", "on", "off")
FORMATS: Final = ("text", "short", "json", "sarif", "html")

Texts = Mapping[str, tuple[str, str]]  # option name -> (source of the value, value)

# Variables that are not options: (name, what it does, where it is read).
OTHER_VARIABLES: Final = {
    "CONSAN_CACHE_DIR": "folder for compiled runtimes and kernels",
    "CONSAN_DEBUG": "1: print the traceback of an error",
    VARIABLE: "options added before those of the command line, such as '--device cpu --strict'",
}


@dataclass(frozen=True)
class KernelFilter:
    """`kns=TEXT` (the name contains TEXT) or `regex=PATTERN` (the pattern matches somewhere in the name)."""

    text: str
    pattern: re.Pattern[str] = field(repr=False)

    def matches(self, name: str) -> bool:
        """Whether a kernel of this name is to be sanitized."""
        return self.pattern.search(name) is not None


def read_as(option: str, text: str, read: Callable[[str], T]) -> T:
    """The value of an option; an error names the option."""
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def read_text(text: str) -> str:
    """Any text."""
    return text


def read_integer(text: str) -> int:
    """A whole number, in decimal or 0x notation."""
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(f"expected a whole number, got '{text}'") from None


def read_count(text: str) -> int:
    """A whole number, 0 or more."""
    number = read_integer(text)
    if number < 0:
        raise UsageError(f"expected a number that is not negative, got '{text}'")
    return number


def read_positive(text: str) -> int:
    """A whole number, 1 or more."""
    number = read_count(text)
    if number == 0:
        raise UsageError("expected a number above zero, got '0'")
    return number


def read_seconds(text: str) -> float:
    """A time above zero, in seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise UsageError(f"expected a time in seconds above zero, got '{text}'")
    return seconds


def read_budget(text: str) -> float:
    """A time in seconds, 0 or more, with or without an s."""
    number = text.removesuffix("s")
    return 0.0 if re.fullmatch(r"0+(\.0*)?", number) else read_seconds(number)


_SIZE: Final = re.compile(r"(0X[0-9A-F]+|\d+)([KMG]?)")


def read_size(text: str) -> int:
    """A size in bytes, or in KiB, MiB or GiB with K, M or G at the end."""
    found = _SIZE.fullmatch(text.upper())
    if found is None:
        raise UsageError(f"expected a size, such as 49152 or 64K, got '{text}'")
    return int(found[1], 16 if found[1].startswith("0X") else 10) << 10 * " KMG".index(found[2] or " ")


def read_bytes(text: str) -> int:
    """A size above zero."""
    if _SIZE.fullmatch(text.upper()) is None or read_size(text) == 0:
        raise UsageError(f"expected a size above zero, such as 512M or 2G, got '{text}'")
    return read_size(text)


def read_share(text: str) -> float:
    """A percentage above zero, as a share."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share < math.inf:
        raise UsageError(f"expected a percentage above zero, such as 5%, got '{text}'")
    return share


def read_switch(text: str) -> bool:
    """The value of an environment variable for a flag."""
    values = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False, "": False}
    if text.lower() not in values:
        raise UsageError(f"expected 1 or 0, got '{text}'")
    return values[text.lower()]


def read_kernel_filter(text: str) -> KernelFilter:
    """`kns=TEXT` or `regex=PATTERN`."""
    mode, equals, value = text.partition("=")
    if not equals or mode not in ("kns", "regex") or not value:
        raise UsageError(f"expected kns=TEXT or regex=PATTERN, got '{text}'")
    try:
        return KernelFilter(text, re.compile(re.escape(value) if mode == "kns" else value))
    except re.error as error:
        raise UsageError(f"'{value}' is not a regular expression: {error}") from None


@dataclass(frozen=True)
class Option:
    """One option. `words`: its flags. `choices` are checked before `read`. A `switch` takes no value on the command line."""

    words: str
    help: str
    read: Callable[[str], Any] = read_text
    default: Any = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    switch: bool = False
    key: str = ""  # the name, where it is not that of the flag

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags on the command line, the long one last."""
        return tuple(self.words.split())

    @property
    def name(self) -> str:
        """The name in `[tool.consan]` and among the arguments of a command."""
        return self.key or self.flags[-1].removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable for this option."""
        return PREFIX + self.name.upper()

    def value(self, given: Any, environ: Mapping[str, str], below: Sequence[Texts] = ()) -> Any:
        """The value in force: command line, then environment, then `below` in order, then the default."""
        said = ((self.flags[-1], given), (self.variable, environ.get(self.variable) or None), *(texts.get(self.name) for texts in below))
        source, text = next((one for one in said if one is not None and one[1] is not None), ("", None))
        if text is None:
            return self.default
        try:
            if self.choices and text not in self.choices:
                raise UsageError(f"expected one of {', '.join(self.choices)}, got '{text}'{did_you_mean(text, self.choices)}")
            return text if text is True else self.read(text)
        except UsageError as error:
            raise UsageError(f"{source}: {error}") from None


def _switch(words: str, meaning: str) -> Option:
    return Option(words, meaning, read_switch, default=False, switch=True)


SESSION: Final = (
    Option("--device", "where kernels run; auto: the GPU if there is one", default="auto", choices=DEVICES),
    Option("--seed", "seed of the schedule and of random arguments", read_integer, 0, metavar="N"),
    Option(
        "--policy",
        "isa: also report missing proxy fences that only a strict reading of the ISA requires, as warnings and notes",
        default="default",
        choices=POLICIES,
    ),
    Option("--kernel-name", "check only these kernels", read_kernel_filter, metavar="kns=TEXT|regex=PATTERN"),
    Option("--launch-skip", "do not check the first N launches", read_count, 0, metavar="N"),
    Option("--launch-count", "check N launches at most", read_positive, metavar="N"),
    Option(
        "--timeout",
        "stop a launch that takes longer: the run is then incomplete, and says where the threads were; if not given, only the virtual"
        " machine stops a launch: when its threads poll for 60 s while no memory changes",
        read_seconds,
        metavar="SECONDS",
    ),
    Option(
        "--shadow-memory",
        "limit on the memory for shadow cells (512M, 2G); CTAs beyond it are not checked, and the verdict is incomplete",
        read_bytes,
        metavar="SIZE",
    ),
    Option(
        "--assembly",
        "fast: assemble instrumented kernels in a fraction of the time; the code may run slower (GPU only)",
        default="best",
        choices=ASSEMBLIES,
    ),
    Option(
        "--engine",
        "record: the kernel logs what it does, and the host checks the log; inline: calls in the kernel check it while it runs; auto:"
        " record, but inline for launches into graphs on a GPU. Launches that record does not take are incomplete, and the report says why",
        default="auto",
        choices=ENGINES,
    ),
    Option(
        "--global",
        "look for races in global memory. auto: in recorded launches, but of those that a program makes on a GPU only in the first of each"
        " shape and in those that arithmetic proves free of races; on: in all, else the verdict is incomplete; off: in none",
        default="auto",
        choices=GLOBALS,
        key="global_memory",
    ),
    Option(
        "--trace-memory",
        "limit on the memory for the logs of a recorded launch, and on what is kept for later ones; a launch whose logs do not fit is"
        " looked at in slices of its CTAs, and the verdict is incomplete until all were",
        read_bytes,
        metavar="SIZE",
    ),
    Option(
        "--explore",
        "virtual machine: repeat a launch whose threads observe each other under other schedules, for so long in all (2s; 0: not at all);"
        " the default is 2s in consan check, and 0 elsewhere",
        read_budget,
        metavar="SECONDS",
    ),
    _switch("--exhaustive", "replay each CTA, also those that did the same as others (recorded launches)"),
    Option(
        "--sample",
        "replay at most N CTAs of a recorded launch, spread over the grid; CTAs that did the same count as checked; if others are left,"
        " the verdict is incomplete; in global memory these CTAs are compared with each other (two at least), and the report says so",
        read_positive,
        metavar="N",
    ),
    _switch("--keep-histories", "write what each distinct CTA did to a file that consan replay checks again (recorded launches)"),
)
EXIT: Final = (
    _switch("--strict", "warnings give status 66"),
    _switch("--allow-incomplete", "an incomplete verdict gives status 0, not 67"),
)
STATUS: Final = (
    *EXIT,
    Option("--baseline", "a stored run: findings that it has are marked and do not count, so that only new ones fail", metavar="FILE"),
    Option("--suppress", "a file with [[tool.consan.suppressions]], beside those of pyproject.toml", metavar="FILE"),
    Option("--skip", "do not report findings of these kinds, as data-race,scope; the coverage says so", metavar="KIND[,KIND]"),
    Option("--checks", "report findings of these kinds only; a deadlock and a fault are always reported", metavar="KIND[,KIND]"),
)
NOTES: Final = _switch("--notes", "print findings of severity note in full; by default the text only counts them")
DETAILED: Final = _switch("--details", "text: print all of the report, not a screen: lines around places, warps, what was checked")
OUTPUT: Final = (
    Option("--format", "format of the report", choices=FORMATS),
    Option("-o --output", "write to this file", metavar="FILE"),
    NOTES,
)
PICTURE: Final = (DETAILED, _switch("--timeline", "text: draw each finding as lanes of time, with the missing order (HTML always does)"))
PROVE: Final = Option(
    "--prove",
    "try for so long to prove that no launch of a kernel has a race, as consan prove does (20s; the default is 0: not at all); consan run"
    " does not record later launches that a proof covers",
    read_budget,
    0.0,
    metavar="SECONDS",
)
UNOPTIMIZED: Final = Option(
    "--unoptimized",
    "virtual machine: compile CUDA C++ a second time without optimisation, and warn of races that only that text has; in consan run that"
    " of CuPy and cuda.core, for the first launch of each kernel. auto: where it takes some tenths of a second; on: always; off: never",
    default=AUTO,
    choices=GLOBALS,
)
RUN: Final = (
    PROVE,
    UNOPTIMIZED,
    Option(
        "--triton-arch",
        "what Triton and other compilers compile for with --device cpu: sm_80 (cp.async), sm_90 (TMA, wgmma) or sm_100 (TMA, tcgen05);"
        " default: sm_90",
        default="sm_90",
        choices=("sm_80", "sm_90", "sm_100"),
    ),
    Option("--gpus", "with --device cpu: the virtual machine has N devices (1 to 16; default: 1)", read_positive, 1, metavar="N"),
    Option(
        "--overhead",
        "check fewer launches, so that the time that consan takes in the program's threads slows it by so many percent at most; the first"
        " launches of each kernel and shape are always checked, and the coverage says how many were; default: all are",
        read_share,
        metavar="PERCENT",
    ),
    _switch("--skip-benchmarks", "run one call of each of Triton's benchmarks, and none of perf_report's; always on with --device cpu"),
)
RANKS: Final = (
    Option(
        "--ranks",
        "with --device cpu: run the program N times at once, as torchrun does, and check the launches of all ranks together (N: 1 to 16)",
        *(read_positive, 1),
        metavar="N",
    ),
)
TERMINAL: Final = (
    _switch("-q --quiet", "print only findings and the verdict, no progress"),
    Option("--color", "colour; auto: on a terminal or if FORCE_COLOR is set, but not if NO_COLOR is set", default="auto", choices=COLORS),
)
COMPILING: Final = (_switch("-v --verbose", "show the warnings of the CUDA C++ compiler"),)
ALL: Final = (*SESSION, *STATUS, *OUTPUT, *PICTURE, *RUN, *RANKS, *TERMINAL, *COMPILING)


def add(parser: argparse.ArgumentParser, options: Iterable[Option], title: str) -> None:
    """Give a command a group of shared options."""
    add_to(parser.add_argument_group(title), options)


def add_to(group: Any, options: Iterable[Option]) -> None:
    """Add options to an existing group."""
    for option in options:
        shown = f"{option.help} [{option.variable}]"
        if option.switch:
            group.add_argument(*option.flags, dest=option.name, action="store_true", default=None, help=shown)
        else:
            metavar = option.metavar or "|".join(option.choices)
            group.add_argument(*option.flags, dest=option.name, metavar=metavar, help=shown)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{VARIABLE}: {message}")


def texts_of_variable(environ: Mapping[str, str]) -> Texts:
    """The options in CONSAN_OPTIONS."""
    parser = _Parser(prog=VARIABLE, add_help=False, allow_abbrev=False)
    add(parser, ALL, "options")
    try:
        words = shlex.split(environ.get(VARIABLE, ""))
    except ValueError as error:
        raise UsageError(f"{VARIABLE}: {error}") from None
    given = vars(parser.parse_args(words))
    flags = {option.name: option.flags[-1] for option in ALL}
    return {name: (f"{VARIABLE}: {flags[name]}", value) for name, value in given.items() if value is not None}


def fill(arguments: argparse.Namespace, environ: Mapping[str, str], configured: Texts | None = None) -> None:
    """Replace the texts of the shared options with their values."""
    below = (texts_of_variable(environ), configured or {})
    for option in ALL:
        if hasattr(arguments, option.name):
            setattr(arguments, option.name, option.value(getattr(arguments, option.name), environ, below))


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """CONSAN_* variables that nothing reads: most likely misspelt."""
    known = {option.variable for option in ALL} | set(OTHER_VARIABLES)
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """A misspelt keyword is refused by its name."""
    names = set(known)
    for name in (name for name in given if name not in names):
        raise UsageError(f"there is no option '{name}'{did_you_mean(name, names)}")
