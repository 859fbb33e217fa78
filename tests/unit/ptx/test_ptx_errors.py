"""Text that is not PTX: one error, at the right place, and nothing else, whatever the text."""

from __future__ import annotations

import pytest
from ptx_examples import HEADER, REFUSED, kernel

from consan._errors import ExitCode
from consan.instrument.ptx import PtxSyntaxError, parse


def error(text: str) -> PtxSyntaxError:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text, "bad.ptx")
    return caught.value


@pytest.mark.parametrize(("statement", "at", "message"), REFUSED)
def test_statements(statement: str, at: str, message: str) -> None:
    text = kernel(statement)
    offset = text.index(at, text.index(f"\n{statement}\n") + 1)
    found = error(text)
    assert message in found.message
    assert (found.line, found.column) == (text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected .version at the beginning of a PTX module, found the end of the text"),
        ("int main() {}", 1, 1, "expected .version at the beginning of a PTX module, found 'int'"),
        ("\x7fELF", 1, 1, "unexpected character '\\x7f'"),
        (".version 9\n", 1, 10, "expected a version such as 9.0, found '9'"),
        (".version 9.0\n.address_size 64", 2, 1, "expected .target at the beginning of a PTX module, found '.address_size'"),
        (HEADER + ".address_size 48", 4, 15, "expected 32 or 64, found '48'"),
        (HEADER + ";", 4, 1, "expected a function, a variable or a directive of a module, found ';'"),
        (HEADER + "}", 4, 1, "expected a function, a variable or a directive of a module, found '}'"),
        (HEADER + "ret;", 4, 1, "expected a function, a variable or a directive of a module, found 'ret'"),
        (HEADER + ".entry k(.param .u64) {}", 4, 21, "expected the name of a parameter, found ')'"),
        (HEADER + ".entry k(.param x) {}", 4, 17, "expected a type, found 'x'"),
        (HEADER + ".entry k(.param .u64 x", 4, 23, "expected ',' or ')' after a parameter, found the end of the text"),
        (HEADER + ".entry k() {\nret;\n", 6, 1, "the text ends inside the block opened at line 4"),
        (HEADER + ".entry k() {\n{ret;\n", 6, 1, "the text ends inside the block opened at line 5"),
        (HEADER + ".entry k() {} }", 4, 15, "expected a function, a variable or a directive of a module, found '}'"),
        (HEADER + ".section .debug_str {\n.b8 1\n", 6, 1, "expected the '}' of the section that starts at line 4"),
        (HEADER + ".section .debug_str\n.b8 1\n", 4, 10, "expected the name of a section and '{', found '.debug_str'"),
        (HEADER + ".global .u32 x[4] = {1, 2,};", 4, 27, "expected a value or '{', found '}'"),
        (HEADER + ".global .u32 x[2*4];", 4, 17, "expected ']' after an array size, found '*'"),
        (HEADER + ".global .u64 .align 8 x;", 4, 14, "'.align' after the type '.u64'"),
        (HEADER + ".global .u640 x;", 4, 9, "'.u640' is not a type"),
        (HEADER + ".file 1 a.cu", 4, 9, "expected the path of a file, found 'a'"),
        (HEADER + ".reg .b32 %r<99999999999>;", 4, 14, "a range of 99999999999 names"),
    ],
)
def test_modules(text: str, line: int, column: int, message: str) -> None:
    found = error(text)
    assert (found.line, found.column, found.message) == (line, column, message)
    assert str(found) == f"bad.ptx:{line}:{column}: {message}"
    assert found.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    "text",
    [
        kernel("{" * 100_000),
        kernel("mov.u32 %r1, " + "(" * 100_000),
        kernel("mov.u32 %r1, " + "-" * 100_000 + "1;"),
        kernel("mov.u32 %r1, " + "1?" * 100_000),
        kernel("mov.u32 %r1, " + "9" * 100_000 + ";"),
        HEADER + ".global .u32 x = " + "{" * 100_000,
        HEADER + ".global .u32 x = " + "generic(" * 100_000,
        HEADER + "/*" * 100_000,
        HEADER + " " * 1_000_000 + "x",
        kernel("mov.u32 %r1, %r2" + " " * 1_000_000 + "x"),
        kernel("foo " + "a, " * 100_000 + ";"),
        kernel("foo " + "/**/" * 100_000 + "?"),
    ],
    ids=lambda text: text[-40:].strip()[:12],
)
@pytest.mark.timeout(20)
def test_hostile_text_ends_soon(text: str) -> None:
    error(text)


def test_deep_blocks_are_fine() -> None:
    body = "{" * 900 + "bar.sync 0;" + "}" * 900
    assert [i.opcode for i in parse(kernel(body)).functions[0].instructions()] == ["bar.sync", "ret"]
