"""How a program ended, in words (consan/audit/child/endings.py), and the reason of what does not compile."""

from __future__ import annotations

from consan.audit.child.endings import inputs_without_file
from consan.audit.host.building import first_error


def test_arguments_that_are_paths() -> None:
    given = ("-i", "./data/a.su", "8388608", "0.002", "1.98e-7", "matrix.txt", "--deck=data/x", "/there", "-v", "fast", "../../data/b")
    assert inputs_without_file(given) == ["./data/a.su", "matrix.txt", "../../data/b"]


def test_the_reason_of_what_does_not_compile_is_behind_the_heading() -> None:
    missing = 'k.cu does not compile:\nalgorithm:2: catastrophic error: cannot open source file "cuda/std/algorithm"\n  #include\n'
    assert first_error(missing) == 'algorithm:2: cannot open source file "cuda/std/algorithm"'
    error = first_error(missing + "note: libcu++ is missing: pip install nvidia-cuda-cccl")
    assert error.endswith('"cuda/std/algorithm" (libcu++ is missing: pip install nvidia-cuda-cccl)')
    assert first_error("k.cu does not compile:\n\n  its reason\n") == "its reason"
    assert first_error("one line") == "one line"
    assert first_error("") == "no message"
