"""How a program ended, in words (consan/audit/child/endings.py), and the reason of what does not compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from consan.audit.child.endings import ending, inputs_without_file
from consan.audit.host.building import first_error
from consan.toolchain.nvrtc import MISSING_CURAND

if TYPE_CHECKING:
    from consan.audit.host.program import HostProgram


def test_arguments_that_are_paths() -> None:
    given = ("-i", "./data/a.su", "8388608", "0.002", "1.98e-7", "matrix.txt", "--deck=data/x", "/there", "-v", "fast", "../../data/b")
    assert inputs_without_file(given) == ["./data/a.su", "matrix.txt", "../../data/b"]


def test_a_call_that_nobody_serves_is_named() -> None:
    printed = "read\npython: symbol lookup error: /tmp/program0.so: undefined symbol: _Z4maked\n"
    said = ending(127, printed, cast("HostProgram", None))
    assert said == "main ended with status 127: it called make, which neither its sources nor consan have"


def test_headers_that_a_package_has_are_named() -> None:
    assert first_error("k.cu:3:10: fatal error: curand_kernel.h: No such file or directory").endswith(f" ({MISSING_CURAND})")
    assert first_error('k.cu:3: error: cannot open source file "curand.h"\nnote: ' + MISSING_CURAND).endswith(f" ({MISSING_CURAND})")


def test_the_reason_of_what_does_not_compile_is_behind_the_heading() -> None:
    missing = 'k.cu does not compile:\nalgorithm:2: catastrophic error: cannot open source file "cuda/std/algorithm"\n  #include\n'
    assert first_error(missing) == 'algorithm:2: cannot open source file "cuda/std/algorithm"'
    error = first_error(missing + "note: libcu++ is missing: pip install nvidia-cuda-cccl")
    assert error.endswith('"cuda/std/algorithm" (libcu++ is missing: pip install nvidia-cuda-cccl)')
    assert first_error("k.cu does not compile:\n\n  its reason\n") == "its reason"
    assert first_error("one line") == "one line"
    assert first_error("") == "no message"
