"""Small kernels, and the `consan` command as a user meets it: in this process, or as one that signals and limits can reach."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consan.__main__ import main

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"

# Each thread reads the word of its partner in the other warp, with or without a barrier in between.
_SHIFT = """
.visible .entry {name}(.param .u64 out, .param .u32 n)
{{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r7, [n];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.u32 %r4, %r3, %r2;
  add.u32 %r6, %r1, %r7;
  st.shared.u32 [%r4], %r6;
  {barrier}
  xor.b32 %r2, %r2, 128;
  add.u32 %r4, %r3, %r2;
  ld.shared.u32 %r5, [%r4];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}}
"""
CLEAN = _SHIFT.format(name="clean", barrier="bar.sync 0;")
RACY = _SHIFT.format(name="racy", barrier="")
# A race first, then a loop without end that counts: nothing proves that it has none.
SPIN = RACY.replace("racy", "spin").replace("  ret;", "AGAIN:\n  add.u32 %r1, %r1, 1;\n  bra AGAIN;")
TRAP = RACY.replace("racy", "ends_in_trap").replace("  ret;", "  trap;")
MODULE = HEAD + CLEAN + RACY + SPIN + TRAP
LAUNCH = ("--device", "cpu", "--grid", "1", "--block", "64")
ARGS = ("--arg", "u32[64]=zeros", "--arg", "u32=5")


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    def refused(self) -> str:
        """The one line of an error of the user's; anything else is a failure of the test."""
        assert self.status == 2, self
        assert self.out == "", self
        assert self.err.startswith("consan: error: "), self
        assert self.err.count("\n") == 1, self
        return self.err.removeprefix("consan: error: ").strip()

    @property
    def crashed(self) -> bool:
        """Whether a user would call it a crash."""
        return self.status in (1, 70) or "Traceback" in self.out + self.err or "internal error" in self.err


def consan(*words: str) -> Outcome:
    """The command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    return Outcome(status, out.getvalue(), err.getvalue())


def check(entry: str, *words: str, file: str = "k.ptx", launch: Sequence[str] = (*LAUNCH, *ARGS)) -> Outcome:
    """`consan check` of a kernel with the usual launch."""
    return consan("check", file, "--entry", entry, *launch, *words)


def start(*words: str, environment: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """The command as a process, in a session of its own."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ, **(environment or {})}, **options}
    return subprocess.Popen([sys.executable, "-m", "consan", *words], text=True, start_new_session=True, **given)


def finish(process: subprocess.Popen[str], seconds: float = 60) -> Outcome:
    """What a process left behind; it does not outlive the test."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return Outcome(process.returncode, out or "", err or "")
