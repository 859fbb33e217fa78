"""Variables of a module in several forms (`consan.session.modules.variables`)."""

from __future__ import annotations

import pytest

from consan._errors import NotSupported
from consan.session.modules.variables import bound, exported, keeps_state, unbindable
from consan.toolchain.nvrtc import compile_ptx

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
KERNEL = ".visible .entry k() {{ .reg .b64 %r<9>; .reg .b32 %v; {} ret; }}\n"
COUNT = ".global .u32 count[4];\n"
CONSTANT = ".const .u32 coefficient[4];\n"


def text(declared: str, used: str) -> str:
    return HEAD + declared + KERNEL.format(used)


def body(ptx: str) -> str:
    return ptx.partition("ret;")[0].rpartition("%v;")[2].replace("mov.b64 %consan_at_0, 32512; ", "").strip()


@pytest.mark.parametrize(
    ("declared", "used", "expected"),
    [
        (COUNT, "mov.u64 %r1, count;", "mov.u64 %r1, %consan_at_0;"),
        (COUNT, "mov.u64 %r1, count+8;", "add.s64 %r1, %consan_at_0, 8;"),
        (COUNT, "@%p cvta.global.u64 %r1, count;", "@%p cvta.global.u64 %r1, %consan_at_0;"),
        (COUNT, "ld.global.u32 %v, [count+4];", "ld.global.u32 %v, [%consan_at_0+4];"),
        (COUNT, "atom.global.add.u32 %v, [count], 3;", "atom.global.add.u32 %v, [%consan_at_0], 3;"),
        (COUNT, "mov.u64 %r1, counts;", "mov.u64 %r1, counts;"),
        (CONSTANT, "ld.const.v2.u32 {%v, %v}, [coefficient+8];", "ld.global.v2.u32 {%v, %v}, [%consan_at_0+8];"),
        (CONSTANT, "mov.u64 %r1, coefficient; ld.const.u32 %v, [%r1];", "mov.u64 %r1, %consan_at_0; ld.global.u32 %v, [%r1];"),
        (CONSTANT, "mov.u64 %r1, coefficient; cvta.const.u64 %r2, %r1;", "mov.u64 %r1, %consan_at_0; cvta.global.u64 %r2, %r1;"),
    ],
)
def test_a_variable_is_its_address(declared: str, used: str, expected: str) -> None:
    ptx = text(declared, used)
    found = bound(ptx, lambda name: 0x7F00)
    assert body(found) == expected
    assert found.count("\n") == ptx.count("\n")
    assert ("mov.b64 %consan_at_0, 32512;" in found) == ("%consan_at_0" in expected)
    assert unbindable(ptx) == ""


@pytest.mark.parametrize(
    ("declared", "used", "why"),
    [
        (".global .texref image;\n", "tex.2d.v4.f32.s32 {%v, %v, %v, %v}, [image, {%v, %v}];", "variable image is a texture or a surface"),
        (".global .u64 table[1] = {other};\n.func other() { ret; }\n", "ld.global.u64 %r1, [table];", "table holds the address of other"),
        (CONSTANT + ".global .u64 at = generic(coefficient);\n", "ld.global.u64 %r1, [at];", "at holds the address of coefficient"),
        (COUNT, ".local .u32 count; mov.u64 %r1, count;", "k has a variable count of its own"),
        (CONSTANT, "mov.u64 %r1, coefficient; isspacep.const %p, %r1;", "isspacep.const names constant memory"),
        (COUNT, "mov.u64 %r1, count; prototype: .callprototype (.param .b64 _) _ ();", "count may hold the address of a function"),
        (COUNT, "call called, (count);", "its variable count is used by call called, (count);"),
        (".global .b8 large[300000000];\n", "mov.u64 %r1, large;", "its variable large and others have more than 256 MiB"),
    ],
)
def test_what_has_one_form(declared: str, used: str, why: str) -> None:
    ptx = text(declared, used)
    assert why in unbindable(ptx)
    with pytest.raises(NotSupported, match=r"variable|constant"):
        bound(ptx, lambda name: 0)


@pytest.mark.parametrize(
    ("declared", "used", "name"),
    [
        (COUNT, "mov.u64 %r1, count;", "count"),
        (".global .u32 unused;\n", "", ""),
        (".shared .u32 tile[4];\n", "mov.u64 %r1, tile;", ""),
        (".global .align 1 .b8 $str[3] = {65, 66, 0};\n", "mov.u64 %r1, $str;", ""),
    ],
)
def test_what_keeps_state(declared: str, used: str, name: str) -> None:
    assert keeps_state(text(declared, used)) == name


def test_pointers_to_other_variables_are_in_the_one_copy() -> None:
    assert unbindable(text(".global .u32 other;\n.global .u64 at = generic(other);\n", "ld.global.u64 %r1, [at];")) == ""


def test_the_driver_finds_a_variable_of_the_module_alone() -> None:
    ptx = text(COUNT + ".visible .global .u32 shown;\n.global .u32 unused;\n", "mov.u64 %r1, count; mov.u64 %r1, shown;")
    assert exported(ptx) == ptx.replace(COUNT, ".visible " + COUNT)
    assert exported(exported(ptx)) == exported(ptx)


def test_tables_of_the_mathematical_functions_are_no_variables_of_the_program() -> None:
    source = 'extern "C" __global__ void k(double* x, float* y) { x[0] = sin(x[0]) + tgamma(x[1]); y[0] = sinf(y[0]); printf("%d", 1); }'
    ptx = compile_ptx(source, arch="sm_90a").ptx
    assert "__cudart" in ptx
    assert (keeps_state(ptx), bound(ptx, lambda name: 1), exported(ptx)) == ("", ptx, ptx)
