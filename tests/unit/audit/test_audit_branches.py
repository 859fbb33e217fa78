"""Branches of `#if` that no CUDA compiler takes are spaces before the text is searched; all others stay."""

from __future__ import annotations

import pytest

from consan.audit.host import sources, text as cuda
from consan.audit.host.branches import for_this_compiler

OURS, OTHERS = "int ours;", "int others;"
KNOWN = {
    "a macro of another compiler": f"#ifdef USE_ROCM\n{OTHERS}\n#else\n{OURS}\n#endif",
    "without it": f"#ifndef USE_ROCM\n{OURS}\n#else\n{OTHERS}\n#endif",
    "defined": f"#if defined(USE_ROCM) || defined __HIP_PLATFORM_AMD__\n{OTHERS}\n#else\n{OURS}\n#endif",
    "an old GPU": f"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800\n{OTHERS}\n#else\n{OURS}\n#endif",
    "a later branch": f"#if 0\n{OTHERS}\n#elif !defined(_WIN32)\n{OURS}\n#else\n{OTHERS}\n#endif",
    "two levels": f"#if 1\n{OURS}\n#else\n#ifdef X\n{OTHERS}\n#else\n{OTHERS}\n#endif\n#endif",
    "a line that goes on": f"#if defined(USE_ROCM) && \\\n  1\n{OTHERS}\n#else\n{OURS}\n#endif",
}
UNKNOWN = {
    "a macro of the source": f"#ifdef FAST\n{OTHERS}\n#else\n{OURS}\n#endif",
    "the device alone": f"#if defined(__CUDA_ARCH__)\n{OTHERS}\n#else\n{OURS}\n#endif",
    "a macro with a value": f"#if CUDA_VERSION >= 12000\n{OTHERS}\n#else\n{OURS}\n#endif",
    "known after unknown": f"#if FAST\n{OTHERS}\n#elif 0\n{OTHERS}\n#else\n{OURS}\n#endif",
    "in a comment": f"/*\n#if 0\n*/\n{OTHERS} {OURS}\n/*\n#endif\n*/",
    "a number without end": f"#if 9**9**9**9 > 1\n{OTHERS}\n#elif 1 << 9999999999999\n{OTHERS}\n#endif",
    "a guard of a header": f"#ifndef HEADER\n#define HEADER\n{OTHERS} {OURS}\n#endif",
}


def _left(text: str) -> str:
    return for_this_compiler(text, cuda.uncommented(text))


@pytest.mark.parametrize("text", KNOWN.values(), ids=KNOWN)
def test_a_branch_that_is_not_taken_is_blank(text: str) -> None:
    left = _left(text)
    assert left.split() == OURS.split()
    assert left.count("\n") == text.count("\n")


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_a_branch_that_may_be_taken_stays(text: str) -> None:
    assert _left(text) == text


def test_parameters_of_two_compilers_are_those_of_one() -> None:
    text = "#ifndef USE_ROCM\n__global__ void k(int *p) {}\n#else\n__global__ void k(int *p, int n) {}\n#endif\n"
    (item,) = sources.whole("k.cu", text).items
    assert item.head.strip().endswith("k(int *p)")
