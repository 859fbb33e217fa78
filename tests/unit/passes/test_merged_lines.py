"""Where an instruction is in the source."""

from __future__ import annotations

from consan.instrument.ptx import parse
from consan.instrument.rewriting.context import place_of

TEXT = """.version 8.3
.target sm_90
.address_size 64
.file 1 "k.cu"
.visible .entry k()
{
.reg .b32 %r<9>;
.loc 1 0 0
ld.shared.u32 %r1, [%r2];
st.shared.u32 [%r3], %r4;
.loc 1 12 9
add.u32 %r5, %r4, %r6;
.loc 1 17 5
add.u32 %r5, %r1, %r6;
.loc 1 0 0
st.shared.u32 [%r3], %r5;
.loc 1 20 1
add.u32 %r7, %r1, %r6;
.loc 1 0 0
st.shared.u32 [%r3], %r7;
ret;
}
"""


def test_a_load_that_the_compiler_has_merged_is_where_its_value_is_used() -> None:
    module = parse(TEXT, "k.ptx")
    load, store, *_ = module.functions[0].instructions()
    assert (place_of(module, load).line, place_of(module, load).column) == (17, 5)
    assert place_of(module, store).line == 0


def test_a_store_that_the_compiler_has_merged_is_where_one_of_its_values_is_made() -> None:
    module = parse(TEXT, "k.ptx")
    stores = [each for each in module.functions[0].instructions() if each.opcode == "st.shared.u32"]
    assert [place_of(module, each).line for each in stores] == [0, 17, 0]  # the last one has one value only, computed elsewhere
