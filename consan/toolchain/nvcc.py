"""CUDA C++ with host code to PTX, by the nvcc that is installed. It reads the sources of programs that are already built.

A text in place of a file's is compiled in a folder of its own, under the file's name: messages, lines and quoted includes are those of the
file. nvcc derives names of what other files cannot see from a hash of the path (`under_names_of`).

Not known: the options of the build. `NVCC_APPEND_FLAGS` in the environment adds some, as nvcc itself has it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from consan._errors import EnvironmentFailure, UsageError
from consan.toolchain.nvrtc import UNOPTIMISED

_OPTIMISED: Final = ("-lineinfo",)
_OF_ONE_FILE: Final = re.compile(r"((?:_GLOBAL__N__|_INTERNAL_|__nv_static_\d+__))([0-9a-f]{8})(?=_\d+_)")
_ERROR: Final = re.compile(r"error\s*:\s*(.*)")


def compile_file(path: Path, arch: str, *, optimised: bool, seconds: float, text: str | None = None) -> str:
    """PTX of a file, or of a text in its place. Raises `UsageError`: it does not compile, or takes longer than `seconds`."""
    program = shutil.which("nvcc")
    if program is None:
        raise EnvironmentFailure("nvcc is not installed")
    with tempfile.TemporaryDirectory(prefix="consan-nvcc-") as folder:
        made, source = Path(folder) / "made.ptx", path
        if text is not None:
            source = Path(folder) / path.name
            source.write_text(f"#line 1 {json.dumps(str(path), ensure_ascii=False)}\n{text}")
        options = _OPTIMISED if optimised else UNOPTIMISED
        words = [program, "-ptx", f"-arch={arch}", *options, "-I", str(path.parent), "-o", str(made), str(source)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise UsageError(f"{path.name} takes nvcc more than {seconds:.0f} s") from None
        if done.returncode:
            error = _ERROR.search(done.stderr)
            raise UsageError(f"{path.name} does not compile here: {error[1] if error else 'nvcc failed'}")
        return made.read_text()


def under_names_of(other: str, ptx: str) -> str:
    """PTX with the names that another text of the same file has, for what other files cannot see."""
    known = _OF_ONE_FILE.search(other)
    return ptx if known is None else _OF_ONE_FILE.sub(lambda found: found[1] + known[2], ptx)
