"""Which parameters the addresses of a kernel follow from, and the elements there."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.ranges.pointed import pointed_words

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .b8 table[64];\n.visible .entry k({params}) {{\n"
HEAD += ".reg .b32 %r<9>; .reg .b64 %d<40>; .reg .f32 %f<9>; .reg .pred %p<4>;\n"
ARRAYS = ".param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2"
STRUCT = ".param .align 8 .b8 k_param_0[32], .param .u64 k_param_1"
LOADS = "ld.param.u64 %d1, [k_param_0]; ld.param.u64 %d2, [k_param_1]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4;\n"
COPY = LOADS + "cvta.to.global.u64 %d1, %d1; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;\n"


def _words(body: str, params: str = ARRAYS) -> dict[tuple[int, int], int]:
    (function,) = parse(HEAD.format(params=params) + body + "\nret; }").functions
    return {(word.parameter, word.begin): element for word, element in pointed_words(function).items()}


def test_each_array_has_the_element_of_its_accesses() -> None:
    body = COPY + "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%d4]; st.global.u16 [%d5+2], %r1;"
    assert _words(body) == {(0, 0): 4, (1, 0): 2}


def test_accesses_of_several_widths_leave_the_element_open() -> None:
    assert _words(COPY + "ld.global.f32 %f1, [%d4]; ld.global.u64 %d6, [%d4];") == {(0, 0): 1}


def test_a_word_of_a_struct_counts_by_its_place() -> None:
    body = "ld.param.v2.u64 {%d1, %d2}, [k_param_0+8]; ld.global.f32 %f1, [%d2]; ld.param.u64 %d3, [k_param_1]; st.global.f32 [%d3], %f1;"
    assert _words(body, STRUCT) == {(0, 16): 4, (1, 0): 4}


def test_a_loaded_number_of_32_bits_may_be_an_index() -> None:
    body = LOADS + "ld.global.u32 %r2, [%d2]; mul.wide.u32 %d6, %r2, 4; add.s64 %d7, %d1, %d6; st.global.u32 [%d7], %r1;"
    assert _words(body) == {(0, 0): 4, (1, 0): 4}


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u64 %d6, [%d4]; st.global.u32 [%d6], %r1;",
        "atom.global.add.u64 %d6, [%d4], 1; st.global.u32 [%d6], %r1;",
        "mov.u64 %d6, table; st.global.u32 [%d6], %r1;",
        "st.global.u32 [table], %r1;",
    ],
    ids=["a loaded pointer", "one of an atomic", "a variable", "a variable by its name"],
)
def test_nothing_is_known_where_memory_is_reached_in_another_way(body: str) -> None:
    assert _words(COPY + "ld.global.f32 %f1, [%d4];")
    assert _words(COPY + "ld.global.f32 %f1, [%d4];" + body) == {}
