"""The reserved part of shared memory as a variable of the kernel (instrument/rewriting/reserved.py)."""

import pytest

from consan.instrument.ptx import parse
from consan.instrument.rewriting.reserved import with_reserved

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
TAKES = "mov.u32 %r1, %reserved_smem_offset_1;"
DECLARED = ".shared .align 16 .b8 reserved_shared_memory[288];"


def _kernel(name: str, body: str) -> str:
    return f".visible .entry {name}()\n{{\n.reg .b32 %r<4>;\n{body}\nret;\n}}\n"


def _changed(text: str) -> str:
    return with_reserved(parse(text)).text


def test_the_kernel_that_takes_the_address_sets_the_bytes() -> None:
    before = HEADER + _kernel("takes", TAKES) + _kernel("other", "mov.u32 %r1, %tid.x;")
    after = _changed(before)
    assert after.count("\n") == before.count("\n")
    assert after.count(DECLARED) == 1
    assert "mov.u32 %r1, reserved_shared_memory;" in after
    assert "%reserved_smem_offset_1" not in after
    takes, other = after.split(".visible .entry ")[1:]
    assert takes.count("st.shared.v4.b32") == 18
    assert takes.index("bar.sync 0;") < takes.index("mov.u32 %r1, reserved_shared_memory;")
    assert "st.shared" not in other


def test_all_kernels_set_them_if_a_function_takes_the_address() -> None:
    function = ".func taken()\n{\n.reg .b32 %r<4>;\n" + TAKES + "\nret;\n}\n"
    after = _changed(HEADER + function + _kernel("one", "call.uni taken, ();") + _kernel("two", "call.uni taken, ();"))
    assert [part.count("st.shared.v4.b32") for part in after.split(".visible .entry ")] == [0, 18, 18]


@pytest.mark.parametrize("body", ["mov.u32 %r1, %reserved_smem_offset_begin;", "mov.u32 %r1, %tid.x;"])
def test_other_modules_stay_as_they_are(body: str) -> None:
    text = HEADER + _kernel("k", body)
    assert _changed(text) == text
