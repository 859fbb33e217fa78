"""Each case of cases/: the rewritten PTX has what the file expects, keeps what was there, parses again, and assembles."""

from __future__ import annotations

import re
from pathlib import Path

import case_file
import pytest
from sampled import one_in

from consan.instrument import Instrumented
from consan.instrument.called_hooks import instrument
from consan.instrument.ptx import Instruction, Label, Module, parse, print_module
from consan.instrument.sites import InlinedCall
from consan.session.modules.runtime import library_for
from consan.toolchain.assemble import assemble

CASES = sorted((Path(__file__).parent / "cases").glob("*.ptx"))
STEMS = [path.stem for path in CASES]


def _rewritten(case: case_file.Case) -> Instrumented:
    return instrument(case.source, library=library_for)


def _own(done: Instrumented) -> str:
    """The rewritten text after what is pasted in front."""
    pasted = done.ptx.index(".u64 __consan_ctl[4];")
    runtime = [match.end() for match in re.finditer(r"^\.func [^{;]*__consan_[^{;]*\{.*?^\}", done.ptx, re.MULTILINE | re.DOTALL)]
    return done.ptx[max([pasted, *runtime]) :]


def _properties(done: Instrumented) -> dict[str, str]:
    variant = done.variant
    words = [f"granule {variant.granule}", *(name for name in ("partial", "asynchronous", "cluster") if getattr(variant, name))]
    return {
        "sites": str(len(done.sites)),
        "unmodelled": ", ".join(sorted(each.opcode for function in done.functions for each in function.unmodelled)),
        "runtime": ", ".join(words),
    }


@pytest.mark.parametrize("path", CASES, ids=STEMS)
def test_what_is_inserted(path: Path) -> None:
    case = case_file.read(path)
    done = _rewritten(case)
    lines = case_file.fold(_own(done))
    problem = case_file.mismatch(lines, case.expected)
    assert problem is None, "\n".join([problem, *lines])
    assert {name: value for name, value in _properties(done).items() if name in case.properties} == case.properties


def _statements(module: Module) -> dict[str, list[Instruction | Label]]:
    bodies = {function.name: function.body for function in module.functions if function.body is not None}
    return {name: [each for each in body.walk() if isinstance(each, Instruction | Label)] for name, body in bodies.items()}


def _words(statement: Instruction | Label) -> str:
    return " ".join(statement.text.split()) if isinstance(statement, Instruction) else f"{statement.name}:"


@pytest.mark.parametrize("path", CASES, ids=STEMS)
def test_every_statement_is_kept_in_order_and_mapped(path: Path) -> None:
    case = case_file.read(path)
    done = _rewritten(case)
    rewritten = _statements(parse(done.ptx))
    for name, statements in _statements(parse(case.source)).items():
        left = iter(rewritten[name])
        for statement in statements:
            match = next((each for each in left if _words(each) == _words(statement)), None)
            assert match is not None, f"gone from {name}: {_words(statement)}"
            assert done.lines[match.line - 1] == statement.line


@pytest.mark.parametrize("fast", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["fast", "best"])
@pytest.mark.parametrize("inline", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["inline", "called"])
@pytest.mark.parametrize("path", one_in(6, CASES, lambda path: path.stem))
def test_the_result_parses_and_assembles(path: Path, inline: bool, fast: bool) -> None:
    done = instrument(case_file.read(path).source, library=library_for, inline=inline)
    module = parse(done.ptx, path.name)
    assert print_module(module) == done.ptx
    assert set(done.entries) <= set(assemble(done.ptx, done.target, name=path.name, fast=fast).info)


def test_sites_know_what_they_were_inlined_into() -> None:
    store, load = _rewritten(case_file.read(Path(__file__).parent / "cases" / "line_information.ptx")).sites
    assert (store.file, store.line, store.column, store.inlined) == ("kernel.cu", 10, 3, ())
    assert (load.file, load.line, load.inlined) == ("inline.h", 5, (InlinedCall("f", "kernel.cu", 12, 3),))
