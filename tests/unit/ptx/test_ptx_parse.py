"""The tree that the reader makes of a module."""

from __future__ import annotations

import pytest
from ptx_examples import HEADER, KERNEL, UNUSUAL, kernel

from consan.instrument.ptx import (
    Block,
    Directive,
    Function,
    Instruction,
    Label,
    Loc,
    LocDirective,
    Module,
    Predicate,
    Section,
    Variable,
    parse,
    print_module,
    type_bytes,
)


@pytest.fixture(scope="module")
def module() -> Module:
    return parse(KERNEL, "example.ptx")


def entry(module: Module) -> Function:
    return next(function for function in module.functions if function.kind == "entry")


def find(module: Module, opcode: str) -> Instruction:
    return next(instruction for instruction in entry(module).instructions() if instruction.opcode == opcode)


@pytest.mark.parametrize("text", [KERNEL, KERNEL.replace("\n", "\r\n"), HEADER, KERNEL + "\0", *map(kernel, UNUSUAL)])
def test_printing_is_the_identity(text: str) -> None:
    assert print_module(parse(text)) == text


def test_module(module: Module) -> None:
    assert (module.version, module.target, module.address_size) == ((9, 0), "sm_90a", 64)
    assert module.files == {1: "/src/a.cu", 2: '/src/b "quoted".h'}
    assert module.path(1) == "/src/a.cu"
    assert module.path(9) == "<file 9>"
    assert [function.name for function in module.functions] == ["vprintf", "f1", "k"]
    assert [item.name for item in module.items if isinstance(item, Section)] == [".debug_str", ".debug_macinfo"]
    directives = [item.name for item in module.items if isinstance(item, Directive)]
    assert directives == [".version", ".target", ".address_size", ".file", ".file", ".alias", "@@DWARF"]


def test_target_options() -> None:
    module = parse(".version 8.7 .target sm_80, debug, texmode_independent")
    assert module.targets == ("sm_80", "debug", "texmode_independent")
    assert module.address_size == 32


def test_module_variables(module: Module) -> None:
    by_name = {name.name: (variable, name) for variable in module.variables for name in variable.names}
    assert list(by_name) == ["C", "g", "$str", "table", "dyn", "managed"]
    constant, name = by_name["C"]
    assert (constant.space, constant.type, constant.align, constant.nbytes(name)) == ("const", "b8", 4, 16)
    assert name.initializer == "{0, 0, 128, 63, 0, 0, 0, 64}"
    assert by_name["g"][0].linkage == "visible"
    assert by_name["g"][1].initializer == "7"
    assert by_name["table"][1].initializer == "{_Z2f1i, generic($str)+4}"
    dynamic, name = by_name["dyn"]
    assert (dynamic.linkage, dynamic.space, dynamic.align, name.dims, dynamic.nbytes(name)) == ("extern", "shared", 16, (0,), 0)
    assert by_name["managed"][0].attributes == (".managed"[1:],)


def test_sizes_follow_from_initialisers_and_vectors() -> None:
    module = parse(HEADER + ".global .u32 x[][2] = {{1}, {2, 3}, {4}}, y; .global .v2 .u16 z[3]; .global .v4 .f32 w;")
    sizes = {name.name: variable.nbytes(name) for variable in module.variables for name in variable.names}
    assert sizes == {"x": 24, "y": 4, "z": 12, "w": 16}
    assert [variable.alignment for variable in module.variables] == [4, 4, 16]


def test_declaration(module: Module) -> None:
    printf = module.functions[0]
    assert (printf.kind, printf.linkage, printf.is_declaration, printf.body) == ("func", "extern", True, None)
    assert [(p.name, p.type, p.nbytes) for p in printf.params] == [("vprintf_param_0", "b64", 8), ("vprintf_param_1", "b64", 8)]
    assert [p.name for p in printf.returns] == ["func_retval0"]
    assert printf.text.startswith(".extern .func")
    assert printf.text.endswith(")\n;")


def test_device_function(module: Module) -> None:
    function = module.functions[1]
    assert (function.kind, function.linkage, function.directives) == ("func", "weak", {"noreturn": ()})
    assert [(p.space, p.name) for p in function.returns] == [("reg", "out")]
    assert [(p.space, p.name, p.size, p.align) for p in function.params] == [("reg", "in", None, None), ("param", "s", 12, 4)]


def test_entry(module: Module) -> None:
    function = entry(module)
    assert function.linkage == "visible"
    assert function.directives == {
        "maxntid": (128, 1, 1),
        "minnctapersm": (2,),
        "explicitcluster": (),
        "reqnctapercluster": (2, 1, 1),
        "pragma": '"nounroll"',
    }
    pointer, scalar, array = function.params
    assert (pointer.pointer, pointer.align, pointer.type) == ("global", None, "u64")  # the pointee is aligned to 16
    assert (scalar.pointer, scalar.size, scalar.nbytes) == (None, None, 4)
    assert (array.size, array.align) == (24, 8)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (".entry k .maxnreg 32 .reqntid 16, 16", {"maxnreg": (32,), "reqntid": (16, 16)}),
        (".entry k() .maxclusterrank 8 .blocksareclusters", {"maxclusterrank": (8,), "blocksareclusters": ()}),
        (".func k() .abi_preserve 8 .abi_preserve_control 14", {"abi_preserve": (8,), "abi_preserve_control": (14,)}),
        ('.entry k .pragma "a"; .pragma "b", "c";', {"pragma": '"a", "b", "c"'}),
    ],
)
def test_function_directives(header: str, expected: dict[str, object]) -> None:
    assert parse(f"{HEADER}{header} {{ ret; }}").functions[0].directives == expected


def test_function_attributes_and_missing_semicolon() -> None:
    unified, plain = parse(HEADER + ".func .attribute(.unified(0xAB, 0xCD)) bar() { ret; } .func foo").functions
    assert unified.attributes == ("unified(0xAB, 0xCD)",)
    assert (plain.name, plain.is_declaration, plain.text) == ("foo", True, ".func foo")


def test_body(module: Module) -> None:
    body = entry(module).body
    assert body is not None
    assert (module.text[body.open], module.text[body.close]) == ("{", "}")
    blocks = [statement for statement in body.statements if isinstance(statement, Block)]
    assert len(blocks) == 2
    assert [s.opcode for s in blocks[0].statements if isinstance(s, Instruction)] == ["setp.eq.s32", "bra", "cp.async.wait_all"]
    assert all(s.scope is blocks[0] for s in blocks[0].statements if isinstance(s, Instruction))
    labels = [statement.name for statement in body.walk() if isinstance(statement, Label)]
    assert labels == ["$L__BB0_2", "L1", "prototype_0", "ts", "M0", "M1", "M2"]


def test_variables_of_a_body(module: Module) -> None:
    body = entry(module).body
    assert body is not None
    variables = [statement for statement in body.statements if isinstance(statement, Variable)]
    assert [(v.space, v.type, v.vector, [n.name for n in v.names]) for v in variables] == [
        ("reg", "pred", 1, ["%p"]),
        ("reg", "b32", 1, ["%r", "%lone"]),
        ("reg", "b64", 1, ["%rd"]),
        ("reg", "f32", 1, ["%f"]),
        ("reg", "f32", 4, ["accel"]),
        ("shared", "b8", 1, ["tile"]),
    ]
    assert variables[1].names[0].count == 27
    assert variables[5].names[0].dims == (4, 128)
    assert variables[5].nbytes(variables[5].names[0]) == 512


def test_instruction(module: Module) -> None:
    load = find(module, "ld.shared.u32")
    assert load.predicate == Predicate(negated=True, register="%p2")
    assert load.parts == ("ld", "shared", "u32")
    assert load.text == "@!%p2 ld.shared.u32 %r1, [tile+4];"
    line = KERNEL[: load.start].count("\n") + 1
    assert (load.line, load.column) == (line, 2)
    assert find(module, "bra").predicate == Predicate(negated=False, register="%p1")
    assert find(module, "bar.sync").predicate is None


def test_qualified_parts_stay_whole(module: Module) -> None:
    copy = next(i for i in entry(module).instructions() if i.parts[0:3] == ("cp", "async", "bulk"))
    assert copy.parts == ("cp", "async", "bulk", "tensor", "2d", "shared::cluster", "global", "mbarrier::complete_tx::bytes")
    collector = parse(kernel("tcgen05.mma.cta_group::1.kind::f16.collector::a:fill [%r1], %rd1, %rd2, %r2, %p1;"))
    assert next(collector.functions[0].instructions()).parts[-1] == "collector::a:fill"


def test_directives_of_a_body(module: Module) -> None:
    body = entry(module).body
    assert body is not None
    directives = {s.name: s for s in body.walk() if isinstance(s, Directive) and not isinstance(s, LocDirective)}
    assert list(directives) == [".callprototype", ".branchtargets", ".pragma"]
    assert directives[".branchtargets"].label == "ts"
    assert directives[".branchtargets"].targets == ("$L__BB0_2", "M0", "M1", "M2")
    assert directives[".callprototype"].label == "prototype_0"
    assert directives[".callprototype"].targets == ()
    assert directives[".callprototype"].text == ".callprototype (.param .b32 _) _ (.param .b32 _);"


def test_registers_are_scoped() -> None:
    text = kernel(".reg .b32 x<3>; .reg .pred p; { .reg .b64 p; .shared .b32 x1; mov.b64 p, x1; } mov.u32 x1, x3;")
    inner, outer = (i for i in parse(text).functions[0].instructions() if i.opcode.startswith("mov"))
    assert [type(operand).__name__ for operand in inner.operands] == ["Register", "Symbol"]
    assert [type(operand).__name__ for operand in outer.operands] == ["Register", "Symbol"]
    found = inner.scope.lookup("p")
    assert found is not None
    assert (found[0].type, found[1]) == ("b64", inner.scope)
    found = outer.scope.lookup("p")
    assert found is not None
    assert found[0].type == "pred"
    assert outer.scope.lookup("x03") is None


def test_register_parameters(module: Module) -> None:
    add = next(module.functions[1].instructions())
    assert [type(operand).__name__ for operand in add.operands] == ["Register", "Register", "Immediate"]


def test_locations(module: Module) -> None:
    assert find(module, "mov.u32").loc == Loc(1, 17, 3)
    call_site = Loc(1, 20, 3)
    outer = Loc(2, 107, 3, "$L__info_string0", call_site)
    assert find(module, "atom.global.add.u32").loc == Loc(2, 9, 1, "$L__info_string1", outer)
    assert next(module.functions[1].instructions()).loc is None


def test_location_does_not_leave_its_function() -> None:
    text = HEADER + ".func a() { .loc 1 2 3 ret; } .func b() { ret; }"
    locs = [next(function.instructions()).loc for function in parse(text).functions]
    assert locs == [Loc(1, 2, 3), None]


def test_call_site_that_was_never_named() -> None:
    text = kernel(".loc 1 2 3, function_name .debug_str+16, inlined_at 4 5 6\nbar.sync 0;")
    loc = next(parse(text).functions[0].instructions()).loc
    assert loc == Loc(1, 2, 3, ".debug_str+16", Loc(4, 5, 6))


def test_call_site_that_the_compiler_left_out_in_a_loop() -> None:
    inlined = ".loc 1 9 1\n.loc 2 5 3, function_name f, inlined_at 1 9 1\nmov.u32 %r0, 1;"
    text = kernel(f"{inlined}\n.loc 2 0 3\nmov.u32 %r0, 2;\n.loc 2 5 3\nbar.sync 0;\n.loc 2 6 3")
    locs = [each.loc for each in parse(text).functions[0].instructions()]
    within = Loc(2, 5, 3, "f", Loc(1, 9, 1))
    assert locs == [within, Loc(2, 0, 3), within, Loc(2, 6, 3)]


def test_long_chain_of_inlining() -> None:
    lines = [".loc 1 0 0"]
    lines += [f".loc 1 {n} 0, function_name f, inlined_at 1 {n - 1} 0" for n in range(1, 5000)]
    loc = next(parse(kernel("\n".join([*lines, "bar.sync 0;"]))).functions[0].instructions()).loc
    depth = 0
    while loc is not None:
        loc, depth = loc.inlined_at, depth + 1
    assert depth == 5000


def test_debug_strings(module: Module) -> None:
    assert module.debug_string("$L__info_string0") == "_Z3fv"
    assert module.debug_string("$L__info_string1") == "gh"
    assert module.debug_string("$L__info_string0+6") == "gh"
    assert module.debug_string(".debug_str+6") == "gh"
    assert module.debug_string("nowhere") is None


def test_line_numbers_of_windows_text() -> None:
    module = parse(kernel("bar.sync 0;").replace("\n", "\r\n"))
    assert [i.line for i in module.functions[0].instructions()] == [7, 8]


def test_banked_constants_and_opaque_variables() -> None:
    module = parse(HEADER + ".const[2] .u32 x; .global .texref t; .global .samplerref s = { filter_mode = nearest };")
    assert [(v.space, v.type) for v in module.variables] == [("const", "u32"), ("global", "texref"), ("global", "samplerref")]


@pytest.mark.parametrize(
    ("type_", "size"), [("b8", 1), ("s16", 2), ("f16x2", 4), ("bf16", 2), ("u64", 8), ("b128", 16), ("pred", 1), ("e4m3x2", 2), ("u8x4", 4)]
)
def test_type_sizes(type_: str, size: int) -> None:
    assert type_bytes(type_) == size
    variable = parse(f"{HEADER}.global .{type_} x[3];").variables[0]
    assert variable.nbytes(variable.names[0]) == 3 * size


def test_masked_addresses_in_initialisers() -> None:
    text = HEADER + ".global .u8 a[] = {0xff(foo), 0xff00(generic(foo)+4), 0xFF(1000 + 546), -1, 0.5};"
    assert parse(text).variables[0].names[0].elements == 5


# `copy` of line 5 is one line in two instances, for kernel lines 10 and 20. The second copy of line 10 comes behind line 20.
INSTANCES = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
.loc 1 1 0
.loc 1 10 1
.loc 2 5 3, function_name $of_tiles, inlined_at 1 10 1
.loc 2 7 3, function_name $loads, inlined_at 2 5 3
membar.cta;
.loc 1 20 1
.loc 2 5 3, function_name $of_rows, inlined_at 1 20 1
.loc 2 8 3, function_name $stores, inlined_at 2 5 3
membar.gl;
.loc 2 7 3, function_name $loads, inlined_at 2 5 3
membar.cta;
.loc 2 9 3, function_name $sorts, inlined_at 2 5 3
membar.sys;
ret;
}
"""


def test_a_call_site_that_is_inlined_in_two_instances() -> None:
    """The nearest one of a function that calls the inlined one; of a function that nothing is known of, the nearest."""
    found = []
    for each in parse(INSTANCES).functions[0].instructions():
        if each.opcode.startswith("membar"):
            assert each.loc is not None
            at = each.loc.inlined_at
            assert at is not None
            assert at.inlined_at is not None
            found.append((each.loc.line, at.function_name, at.inlined_at.line))
    assert found == [(7, "$of_tiles", 10), (8, "$of_rows", 20), (7, "$of_tiles", 10), (9, "$of_rows", 20)]


def test_lines_of_inline_assembly_are_that_of_its_statement() -> None:
    """LLVM counts on: `.loc 1 22` is the fourth line of the text of an assembly at line 19."""
    text = (
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<3>;\n.loc 1 19 12\nmov.b32 %r0, 1;\n"
        "// begin inline asm\n{\n.loc 1 21 12\nmov.b32 %r1, %r0;\n.loc 1 22 12\nmov.b32 %r2, %r0;\n}\n// end inline asm\nmov.b32 %r1, 2;\n"
        '.loc 1 20 22\nret;\n}\n.file 1 "a.py"\n'
    )
    places = [each.loc for each in parse(text).functions[0].instructions()]
    assert [place and place.line for place in places] == [19, 19, 19, 19, 20]
