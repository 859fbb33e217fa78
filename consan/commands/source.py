"""A kernel's file as PTX: `.cu` is compiled with NVRTC, `.ptx` is read. Shared by check and ptx."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from consan._errors import UsageError
from consan.commands.base import read_file

CUDA_SUFFIXES: Final = (".cu", ".cuh")
DEFAULT_ARCH: Final = "sm_90a"
DEFAULT_STD: Final = "c++17"


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """Options of the CUDA C++ compiler."""
    group = parser.add_argument_group("compiling .cu files")
    group.add_argument("--define", "-D", dest="defines", action="append", default=[], metavar="NAME=VALUE", help="define a macro")
    group.add_argument("-I", dest="include_dirs", action="append", default=[], metavar="DIR", help="look for headers here")
    group.add_argument("--std", metavar="STD", help=f"dialect [{DEFAULT_STD}]")
    group.add_argument("--arch", metavar="ARCH", help="architecture to compile for [that of the device]")


def load_ptx(args: argparse.Namespace, arch: str = DEFAULT_ARCH) -> str:
    """The PTX of `args.file`; the compiler's warnings go to standard error."""
    suffix = Path(args.file).suffix.lower()
    if suffix in CUDA_SUFFIXES:
        return _compile(args, arch)
    if suffix != ".ptx":
        raise UsageError(f"{args.file}: expected a .cu or a .ptx file")
    text = read_file(args.file)
    if args.defines or args.include_dirs or args.std:
        raise UsageError("--define, -I and --std are for .cu files")
    return text


def _compile(args: argparse.Namespace, arch: str) -> str:
    text = read_file(args.file)
    for folder in args.include_dirs:
        if not Path(folder).is_dir():
            raise UsageError(f"-I: there is no folder {folder}")
    from consan.toolchain.nvrtc import compile_ptx

    result = compile_ptx(
        text,
        name=args.file,
        arch=args.arch or arch,
        std=args.std or DEFAULT_STD,
        defines=parse_defines(args.defines),
        include_dirs=args.include_dirs,
    )
    if result.log:
        print(result.log, file=sys.stderr)
    return result.ptx


def parse_defines(texts: Sequence[str]) -> dict[str, str | None]:
    """NAME=VALUE or NAME, the last of each name in force."""
    defines: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name.isidentifier():
            raise UsageError(f"--define: expected NAME=VALUE, got '{text}'")
        defines[name] = value if equals else None
    return defines
