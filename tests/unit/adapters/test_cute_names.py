"""The memory of kernels of CuTe DSL has the names of the program, where the compiler's remark fits what was traced, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planted import plant

from consan.adapters.driven import cute_names
from consan.adapters.driven.cute import keep_lines_of_stores
from consan.adapters.driven.cute_names import AskedMemory, CuteNames, allocation, placed
from consan.reports.source.variables import SharedName, names_said

REMARK = """--- !Analysis
Pass:            Memory
Name:            RemarkMemorySmemBreakdown
DebugLoc:        { File: k.py, Line: 8, Column: 0 }
Function:        kernel_0
Args:
  - RemarkId:    2
  - Remark:      Shared memory breakdown (3 allocations)
  - alloc_0_size: 3
  - alloc_0_align: 1
  - alloc_0_offset: 0
  - field_full_size: 32
  - field_full_offset: 0
  - field_sB_size: 256
  - field_sB_offset: 128
  - alloc_2_size: 512
  - alloc_2_align: 4
  - alloc_2_offset: 512
...
"""
FIELDS = (("full", 32, 0, 8), ("sB", 256, 128, 0))
ASKED = (AskedMemory("small", 3, 1, 1), AskedMemory("storage", 384, 128, 0, FIELDS), AskedMemory("tile", 512, 4, 4))
NAMED = [
    SharedName("small", 0, 3, 1),
    SharedName("storage.full", 128, 32, 8),
    SharedName("storage.sB", 256, 256),
    SharedName("tile", 512, 512, 4),
]
PTX = ".visible .entry kernel_0(\n\t.param .u32 a,\n\t.param .align 8 .b8 b[24],\n\t.param .u64 c\n)\n{\nret;\n}\n"


def test_the_compilers_remark_gives_places() -> None:
    assert placed(ASKED, REMARK) == NAMED


@pytest.mark.parametrize(
    "asked",
    [
        ASKED[:2],  # it has seen one more
        (*ASKED, AskedMemory("more", 4, 4)),
        (AskedMemory("small", 4, 1), *ASKED[1:]),
        (ASKED[0], AskedMemory("storage", 384, 256, 0, FIELDS), ASKED[2]),
        (ASKED[0], AskedMemory("storage", 384, 128, 0, (("full", 32, 0, 8), ("sB", 256, 64, 0))), ASKED[2]),
        (ASKED[1], ASKED[0], ASKED[2]),
    ],
)
def test_where_it_does_not_fit_nothing_has_a_name(asked: tuple[AskedMemory, ...]) -> None:
    assert placed(asked, REMARK) == []


def test_a_name_that_two_have_is_none() -> None:
    assert placed((AskedMemory("tile", 3, 1), *ASKED[1:]), REMARK) == [each for each in NAMED[1:] if each.name != "tile"]


def test_elements_of_a_part() -> None:
    assert [each.at(16).offset for each in NAMED] == [16, 144, 272, 528]
    assert (NAMED[3].at(0).dims, NAMED[2].at(0).dims) == ((128,), ())


class Session:
    """`CompilerDiagnosticSession`, whose compiler leaves its remark."""

    def __init__(self, names: CuteNames, **named: Any) -> None:
        def made(session: Any, context: Any, **given: Any) -> None:
            self.given = given
            if given.get("remark_output"):
                with open(given["remark_output"], "w") as file:
                    file.write(REMARK)

        names.ask(made, self, None, **named)


def traced(words: int) -> Any:
    block = SimpleNamespace(arguments=[None] * words)
    return SimpleNamespace(attributes={"sym_name": SimpleNamespace(value="kernel_0")}, regions=[SimpleNamespace(blocks=[block])])


def test_a_text_says_what_was_traced(tmp_path: Any) -> None:
    names, smem = CuteNames(tmp_path), SimpleNamespace()
    function = traced(3)
    for name, first in (("self", 0), ("n", 0), ("x", 1), ("y", 2)):
        if not first and name == "self":
            names.trace(lambda *given: None, smem, (), {}, function, None)
        names.parameter(lambda *given: None, smem, None, None, name, 0, [], first)
    byte = SimpleNamespace(width=8)
    small = names.allocate(lambda *given, **more: "small", smem, "(3):(1)", byte, 1)
    storage = names.allocate(lambda *given, **more: "s", smem, "384:1", byte, 128, struct_fields=[each[:3] for each in FIELDS])
    tile = names.allocate(lambda *given, **more: "tile", smem, "512:1", byte, 4)
    assert (small, storage, tile) == ("small", "s", "tile")
    Session(names)
    assert dict(names.parameters_of(PTX)) == {"kernel_0": ("n", "x", "y")}
    said = names_said(names.named(PTX), "kernel_0")
    assert [(each.name, each.offset, each.bytes) for each in said] == [(each.name, each.offset, each.bytes) for each in NAMED]
    assert names_said(names.named(PTX), "kernel_0") == []  # that compilation is over
    assert names_said(names.named(PTX), "kernel") == []


def frame(function: str, **known: Any) -> Any:
    """The frame of a function of the library, which the program calls in this file's first line."""
    above = SimpleNamespace(f_globals={"__name__": "program"}, f_code=SimpleNamespace(co_filename=__file__), f_lineno=1, f_back=None)
    return SimpleNamespace(
        f_globals={"__name__": "cutlass.memory.smem"}, f_locals=known, f_code=SimpleNamespace(co_name=function), f_back=above
    )


FLOAT = SimpleNamespace(width=32)
ALIGNED = SimpleNamespace(dtype=SimpleNamespace(elem_width=32))
STRUCT = SimpleNamespace(_annotations={"full": SimpleNamespace(elem_width=64), "sB": ALIGNED})


@pytest.mark.parametrize(
    ("made", "elements"),
    [
        (frame("allocate", size_or_type=STRUCT), (0, 8, 4)),
        (frame("allocate_array", element_type=FLOAT), (4, 0, 0)),
        (frame("allocate_tensor", element_type=FLOAT, layout="(96):(1)"), (4, 0, 0)),
        (frame("allocate_tensor", element_type=FLOAT, layout="(48,2):(1,48)"), (0, 0, 0)),  # its places are the layout's
    ],
)
def test_elements(made: Any, elements: tuple[int, int, int]) -> None:
    found = allocation("384:1", 128, [each[:3] for each in FIELDS], made)
    assert (found.element, *(each[3] for each in found.fields)) == elements


def test_parameters_that_do_not_fit_have_no_names(tmp_path: Any) -> None:
    names = CuteNames(tmp_path)
    names.trace(lambda *given: None, None, (), {}, traced(6), None)
    names.parameter(lambda *given: None, None, None, None, "x", 0, [], 5)
    assert dict(names.parameters_of(PTX)) == {}


def test_parameters_that_the_compiler_adds_have_no_names(tmp_path: Any) -> None:
    names = CuteNames(tmp_path)
    names.trace(lambda *given: None, None, (), {}, traced(2), None)
    names.parameter(lambda *given: None, None, None, None, "x", 0, [], 0)
    assert dict(names.parameters_of(PTX)) == {"kernel_0": ("x", "x", "")}


@pytest.mark.parametrize("asked", [{"remark_output": "its.yaml"}, {"collect_diagnostics": True}])
def test_the_programs_own_remarks_are_left_alone(tmp_path: Any, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Session(CuteNames(tmp_path), **asked).given == asked


def test_stores_have_the_line_of_their_statement() -> None:
    arrays = SimpleNamespace(dsl_user_op=lambda store: lambda value: ("a line", store(value)))
    arrays.llvm = SimpleNamespace(store=lambda value: value, load=lambda: 5)
    keep_lines_of_stores(arrays)
    assert (arrays.llvm.store(3), arrays.llvm.load()) == (("a line", 3), 5)
    keep_lines_of_stores(SimpleNamespace())


def no_fit(*asked: AskedMemory) -> Callable[[Path], None]:
    return lambda folder: test_where_it_does_not_fit_nothing_has_a_name(asked)


# A text, its replacement, and a test of this file that fails with it.
FAULTS: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "places are not aligned": (
        "begin = -(-end // each.alignment) * each.alignment",
        "begin = end",
        lambda folder: test_the_compilers_remark_gives_places(),
    ),
    "the remark is not compared": ("if not fits:", "if False:", no_fit(AskedMemory("small", 4, 1), *ASKED[1:])),
    "members are not compared": (
        "fits = all(",
        "fits = any(",
        no_fit(ASKED[0], AskedMemory("storage", 384, 128, 0, (FIELDS[0], ("sB", 256, 64, 0))), ASKED[2]),
    ),
    "an allocation that was not seen": ('if f"alloc_{len(allocations)}" not in said else []', "", no_fit(*ASKED[:2])),
    "two of one name": ("if counted.count(each.name) == 1", "if counted", lambda folder: test_a_name_that_two_have_is_none()),
    "members begin where their struct does": ("begin + offset", "begin", lambda folder: test_the_compilers_remark_gives_places()),
    "the elements of an array": (
        'function == "allocate_array" or ',
        "",
        lambda folder: test_elements(frame("allocate_array", element_type=FLOAT), (4, 0, 0)),
    ),
    "elements that are not in a row": (
        '_IN_A_ROW.fullmatch(str(known["layout"]))',
        "True",
        lambda folder: test_elements(frame("allocate_tensor", element_type=FLOAT, layout="(48,2):(1,48)"), (0, 0, 0)),
    ),
    "the elements of a member": (
        "of_struct.get(name, 0)",
        "0",
        lambda folder: test_elements(frame("allocate", size_or_type=STRUCT), (0, 8, 4)),
    ),
    "the first word of a parameter": (
        "append((name, first))",
        "append((name, 0))",
        test_a_text_says_what_was_traced,
    ),
    "words that do not fit": ("if all(first <= end", "if True or all(first <= end", test_parameters_that_do_not_fit_have_no_names),
    "parameters that are added": (
        '*kernel.parameters, ("", kernel.words)',
        "*kernel.parameters",
        test_parameters_that_the_compiler_adds_have_no_names,
    ),
    "remarks of an earlier compilation": ("        self._remarks = []\n", "", test_a_text_says_what_was_traced),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old, new, seen_by = FAULTS[name]
    plant(monkeypatch, cute_names, old, new)
    with pytest.raises(AssertionError):
        seen_by(tmp_path)
