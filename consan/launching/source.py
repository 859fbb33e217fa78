"""Reads a kernel's file as PTX: `.cu` is compiled with NVRTC, `.ptx` is read. Shared by check and ptx."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from consan import late, options
from consan._errors import UsageError, did_you_mean
from consan.files import read_file
from consan.launching.declarations import kernel_names

if TYPE_CHECKING:
    from consan.instrument.ptx import Module
    from consan.toolchain.nvrtc import CompileResult

_INLINE_ASSEMBLY: Final = "// begin inline asm"
_NO_HEADER: Final = "cannot open source file"  # of the compiler
CUDA_SUFFIXES: Final = (".cu", ".cuh")
DEFAULT_ARCH: Final = "sm_90a"
DEFAULT_STD: Final = "c++17"


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """Options of the CUDA C++ compiler."""
    group = parser.add_argument_group("compiling .cu files")
    group.add_argument("--define", "-D", dest="defines", action="append", default=[], metavar="NAME=VALUE", help="define a macro")
    group.add_argument("-I", dest="include_dirs", action="append", default=[], metavar="DIR", help="folder with headers")
    group.add_argument("--std", metavar="STD", help=f"dialect [{DEFAULT_STD}]")
    group.add_argument("--arch", metavar="ARCH", help="architecture to compile for [that of the device]")
    options.add_to(group, options.COMPILING)


def is_cuda(name: str) -> bool:
    """Whether a file's name says that it is CUDA C++."""
    return Path(name).suffix.lower() in CUDA_SUFFIXES


def load_module(args: argparse.Namespace, arch: str = DEFAULT_ARCH) -> Module:
    """The module in `args.file`, as `load_ptx` and `read_module` have it."""
    return read_module(load_ptx(args, arch), args.file)


def load_ptx(args: argparse.Namespace, arch: str = DEFAULT_ARCH) -> str:
    """The PTX of `args.file`. The compiler's warnings go to standard error with --verbose.

    `args.entry` may name a template instance (`rev<float, 128>`). The compiler makes it, and its symbol replaces the name;
    `args.instance` keeps the name for other texts of the file.
    """
    if is_cuda(args.file):
        return compile_text(read_file(args.file), args, arch)
    if Path(args.file).suffix.lower() != ".ptx":
        raise UsageError(f"{args.file}: expected a .cu or a .ptx file")
    text = read_file(args.file)
    if args.defines or args.include_dirs or args.std:
        raise UsageError("--define, -I and --std are for .cu files")
    return text


def compile_text(text: str, args: argparse.Namespace, arch: str, *, optimised: bool = True) -> str:
    """The PTX of the text of `args.file`, or of another one in its place.

    A text that includes headers of the host compiles without its host code, where the command says how (`args.without_host`).
    """
    for folder in args.include_dirs:
        if not Path(folder).is_dir():
            raise UsageError(f"-I: there is no folder {folder}")
    defines, wanted = parse_defines(args.defines), getattr(args, "instance", None) or getattr(args, "entry", None)
    how = {"name": args.file, "arch": args.arch or arch, "std": args.std or DEFAULT_STD, "defines": defines, "optimised": optimised}
    try:
        result, symbol = compile_for(text, wanted, include_dirs=args.include_dirs, **how)
    except late.nvrtc.CompileError as error:
        if getattr(args, "without_host", None) is None or _NO_HEADER not in str(error):
            raise
        text, folder = args.without_host(args.file, text, wanted)
        result, symbol = compile_for(text, wanted, include_dirs=[*args.include_dirs, folder], **how)
    if result.log and getattr(args, "verbose", False):
        print(result.log, file=sys.stderr)
    if symbol is not None and symbol != wanted:
        args.entry, args.instance = symbol, wanted
    return result.ptx


def compile_for(text: str, wanted: str | None, **options: Any) -> tuple[CompileResult, str | None]:
    """Compile CUDA C++ to PTX. Returns it with the kernel's symbol; a name such as `rev<float, 128>` is instantiated."""
    expression = " ".join((wanted or "").split())
    if "<" not in expression:
        return late.nvrtc.compile_ptx(text, **options), wanted
    try:
        result = late.nvrtc.compile_ptx(text, **options, instantiate=(expression,))
    except late.nvrtc.MisnamedKernelError as error:
        raise UsageError(f"--entry '{expression}': {error}{_meant(expression, text)}") from None
    return result, result.symbols[expression]


def _meant(entry: str, source: str) -> str:
    """A hint: the nearest kernel name of the source, or the missing namespace."""
    spaces, _, name = entry.partition("<")[0].rpartition("::")
    known = kernel_names(source)
    if name in known and not spaces and re.search(r"\bnamespace\b", source):
        return f"; is {name} in a namespace? Then name that, too"
    return did_you_mean(name, known)


def read_module(ptx: str, name: str, *, wild: bool | None = None) -> Module:
    """The parsed module. Raises `UsageError` with the place if it is no PTX, its target lacks a suffix, or the assembler here refuses it.

    The output of NVRTC is trusted, except for inline assembly, which NVRTC copies unchecked. `wild`: no compiler made the text, as when
    the name says so.
    """
    module, compiled = late.ptx.parse(ptx, name), is_cuda(name)
    missing = late.isa_features.missing_target(module)
    if missing is not None:
        raise UsageError(f"{_place(module, missing[0].line, compiled)}: {missing[1]}")
    if not compiled or _INLINE_ASSEMBLY in ptx:
        refusal = late.assemble.why_broken(ptx, module.target, wild=not compiled if wild is None else wild)
        if refusal is not None:
            raise UsageError(f"{_place(module, refusal.line, compiled, refusal.column)}: {refusal.reason}{_allowed(module, refusal.line)}")
    return module


def _allowed(module: Module, line: int) -> str:
    """The modifiers that may stand in place of one that no form of the instruction in a line has."""
    every = (each for function in module.functions for each in function.instructions() if each.line == line)
    wrong, fitting = next(filter(any, (late.isa_table.alternatives(each.parts) for each in every)), ("", ()))
    return f"; in place of .{wrong} are allowed: {', '.join(f'.{word}' for word in fitting)}" if wrong else ""


def _place(module: Module, line: int, compiled: bool, column: int = 0) -> str:
    """The place in the file, or in the source of compiled code."""
    if not line:
        return module.name
    if not compiled:
        return f"{module.name}:{line}:{column}" if column else f"{module.name}:{line}"
    bodies = [function.body for function in module.functions if function.body is not None]
    found = next((i.loc for body in bodies for i in body.instructions() if i.line == line), None)
    source = f"{module.path(found.file)}:{found.line}" if found is not None else module.name
    return f"{source} (line {line} of its PTX)"


def parse_defines(texts: Sequence[str]) -> dict[str, str | None]:
    """NAME=VALUE or NAME. The last definition of a name wins."""
    defines: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.isidentifier():
            raise UsageError(f"--define: expected NAME=VALUE, got '{text}'")
        defines[name] = value if equals else None
    return defines
