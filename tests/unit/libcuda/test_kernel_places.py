"""Lines of kernels whose PTX has none."""

from __future__ import annotations

import pytest

from consan.instrument.ptx import parse
from consan.libcuda.texts.places import KernelPlaces, with_places

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry other() { ret; }
.visible .entry k(
	.param .u64 k_param_0
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
$L__BB0_0:
	ld.param.b64 %rd1, [k_param_0];
	ld.global.b32 %r1, [%rd1];
	ld.global.b32 %r2, [%rd1+4];
	@%p1 st.global.b32 [%rd1], %r1;
	ret;
}
"""


def places_of(line: int, **accesses: set[int]) -> KernelPlaces:
    return KernelPlaces("a.py", line, {kind: frozenset(found) for kind, found in accesses.items()})


def lines(places: KernelPlaces) -> list[int]:
    return [int(text.split()[2]) for text in with_places(PTX, {"k": places}).splitlines() if text.startswith(".loc")]


def test_the_only_statement_that_loads_or_stores_is_named() -> None:
    assert lines(places_of(3, loads={5}, stores={7})) == [3, 5, 7, 3]
    assert lines(places_of(3, loads={5, 6}, stores={7})) == [3, 7, 3], "which of two, nobody knows"
    text = with_places(PTX, {"k": KernelPlaces("a b.py", 3)})
    assert '.file 1 "a b.py"' in text
    assert [each.name for each in parse(text).functions] == ["other", "k"]


def test_inline_assembly_has_the_line_of_its_access() -> None:
    """Triton masks a load in assembly: a move comes first. The reader takes no line that stands within."""
    assembly = "\t// begin inline asm\n\tmov.u32 %r1, 0x0;\n\t@%p1 ld.global.b32 {%r1}, [%rd1];\n\t// end inline asm\n\tret;\n}\n"
    text = with_places(PTX.replace("\tret;\n}\n", assembly), {"k": places_of(3, loads={5}, stores={7})})
    places = [(each.parts[0], each.loc and each.loc.line) for each in parse(text).functions[1].instructions()]
    assert places == [("ld", 3), ("ld", 5), ("ld", 5), ("st", 7), ("mov", 5), ("ld", 5), ("ret", 3)]


ATOMICS = {
    "atom.acq_rel.gpu.global.cas.b32 %r2, [%rd1], 0, 1": 9,
    "atom.global.gpu.acq_rel.cas.b32 %r2, [%rd1], 0, 1": 9,
    "atom.relaxed.gpu.global.exch.b32 %r2, [%rd1], 0": 8,
    "red.global.add.u32 [%rd1], 1": 8,
}


@pytest.mark.parametrize("access", ATOMICS)
def test_atomics_are_apart(access: str) -> None:
    """A lock is taken by one statement and freed by another one; neither is the store that it guards."""
    text = with_places(
        PTX.replace("ld.global.b32 %r2, [%rd1+4]", access), {"k": places_of(3, loads={5}, stores={7}, atomics={8}, compares={9})}
    )
    assert [each.loc and each.loc.line for each in parse(text).functions[1].instructions()] == [3, 5, ATOMICS[access], 7, 3]


def test_what_has_lines_or_is_not_known_stays() -> None:
    known = {"k": KernelPlaces("a.py", 3)}
    text = with_places(PTX, known)
    assert with_places(text, known) == text
    assert with_places(PTX, {"else": known["k"]}) == PTX
    assert with_places(PTX, {}) == PTX


def test_places_can_be_stored() -> None:
    places = places_of(3, loads={5, 6}, stores={7})
    assert KernelPlaces.stored(places.store()) == places
