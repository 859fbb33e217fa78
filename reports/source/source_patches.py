"""Verified fixes as a change of the CUDA source: whole lines that are new, moved or left out, and another number or word in a line.

A step is written only where its line of the source holds that statement and no other. Whether the text that comes out is right, a check of
it tells: an optimiser may have merged lines, or a macro may stand for several.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from consan.reports.model import FixStep, VerifiedFix
from consan.reports.source.calls import COMMENT, calls_of
from consan.reports.source.names import variable_name

LineEdit = tuple[int, int, tuple[str, ...]]  # lines from the first, counted from 0, to before the last; and what comes in their place

_OPERAND: Final = re.compile(r" at | of | on |\[")  # that only the PTX names
_MBARRIER: Final = re.compile(
    r"mbarrier\.(\S+?)(?: with parity (\d))? on the mbarrier ((?:[A-Za-z_]\w*::)*)([A-Za-z_]\w*(?:\[\d+\])*)(\[\d+\.\.\d+\])? \("
)
_AT_MBARRIER: Final = {
    "try_wait.parity": "{{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], {parity};"
    " @!p bra again; }}",
    "arrive": "mbarrier.arrive.shared.b64 _, [%0];",
    "inval": "mbarrier.inval.shared.b64 [%0];",
}
_QUIET: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')  # where braces are no code
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_CALL: Final = re.compile(r"__(syncthreads|syncwarp|threadfence|threadfence_block)\(\)$")
SOURCE_CALL: Final = "mbarrier.try_wait"  # of a step whose spelling is the call
_LONE: Final = re.compile(r"(?!(?:return|break|continue|goto|else|for|while|do|case)\b)[^;{}]*;")
_LEAVES: Final = re.compile(r"(?:return|break|continue)\b[^;{}]*;")
_IF: Final = re.compile(r"(\s*)if\s*\(")
_ELSE: Final = re.compile(r"(\s*)\}\s*else\s*\{\s*$")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_PARTED: Final = re.compile(r"__syncthreads\(\) and if \(!\((.+)\)\) in place of else$")
_PLAIN: Final = re.compile(r"(?!.*(?:[\w\])]\s*\(|->))[\w\s.<>=!&|^%+()-]*")  # no call, subscript or pointer
_WHOLE_LINE: Final = re.compile(r"line \d+$")
_ZEROS: Final = re.compile(r"zeros in ([\w$]+) ")
_BY_ONE: Final = {
    " by the first thread only": "if (threadIdx.x == 0) ",
    " by the first lane of each warp only": "if (threadIdx.x % 32 == 0) ",
}
_REPLACED: Final = re.compile(r"with \d+ in place of (\d+)$")
_ENDS: Final = re.compile(r"[;{}:]$|^#(?!\s*pragma)|^$")
_SELECTS: Final = re.compile(r"#\s*(?:if|else|el|endif)")  # what stands above it may go on behind it
_NUMBER: Final = re.compile(r"(?<![\w.%])\d+(?![\w.])")
_ARITHMETIC: Final = re.compile(r"[-+*/%]")
# The number that a step wants, from the one that is there.
_WANTED: Final[tuple[tuple[re.Pattern[str], Callable[[int, re.Match[str]], int]], ...]] = (
    (re.compile(r"wait_group\S* (\d+)$"), lambda _, new: int(new[1])),
    (re.compile(r"with a count of (\d+)$"), lambda _, new: int(new[1])),
    (re.compile(r"with a count that differs by ([+-]\d+)$"), lambda old, more: old + int(more[1])),
    (re.compile(r"with the other parity$"), lambda old, _: 1 - old),
    (re.compile(r"with (\d+) bytes$"), lambda _, new: int(new[1])),
    (re.compile(r"with (\d+) bytes (more|less)$"), lambda old, step: old + int(step[1]) * (1 if step[2] == "more" else -1)),
    (re.compile(r"with (\d+) in place of \d+$"), lambda _, step: int(step[1])),
)
# A pattern of the step, the calls of a line whose last argument it alters, and what comes in its place.
_ARGUMENTS: Final = (
    (r"with the other parity$", r"wait", r"(\\g<0>) ^ 1"),
    (r"with (\d+) bytes$", r"expect|arrive|tx", r"\1"),
    (r"with (\d+) bytes more$", r"expect|arrive|tx", r"(\\g<0>) + \1"),
    (r"with (\d+) bytes less$", r"expect|arrive|tx", r"(\\g<0>) - \1"),
    (r"with a count of (\d+)$", r"init", r"\1"),
    (r"with a count that differs by ([+-])(\d+)$", r"init", r"(\\g<0>) \1 \2"),
)
# Instructions that are whole without a register: a statement that is one may become another one.
_BARE: Final = re.compile(
    r"(?:\{[\w.,; ]+\} )?(?:cp\.async\.(?:bulk\.)?(?:commit_group|wait_(?:group|all))|barrier\.cluster\.|bar(?:rier)?\.(?:warp\.)?sync"
    r"|membar|fence\.|tcgen05\.(?:wait|fence)|wgmma\.(?:fence|commit_group|wait_group))[\w.:]*(?: \w+(?:, \d+)?)?$"
)
_ASM: Final = r"(?<=[\w.])"  # behind another part of an opcode
# A pattern of the step, what the line has for it, and what comes in its place (`\1` of the step, `\\1` of the line).
_WORDS: Final = (
    (r"^(?:membar|fence\.\w+)\.cta\b.*\(\.(?:gpu|cluster)\)$", r"__threadfence_block\(\)", "__threadfence()"),
    (r"with the other parity$", r"\s*\^ 1\b", ""),
    (r"\(\.gpu\)$", r"\bthread_scope_block\b", "thread_scope_device"),
    (r"\(\.gpu\)$", r"\b(atomic[A-Z]\w*)_block\b", r"\\1"),
    (r"\(\.(gpu|cluster)\)$", _ASM + r"\.cta\b", r".\1"),
    (r"\(\.(gpu|cluster)\)$", r'"cta"', r'"\1"'),
    (r"^[a-z]+\.(acquire|release)\.", r"\bmemory_order_relaxed\b", r"memory_order_\1"),
    (r"^[a-z]+\.(acquire|release)\.", _ASM + r"\.relaxed\b", r".\1"),
    (r"^mbarrier\.arrive(?!.*\.relaxed)", _ASM + r"\.relaxed\b", ".release"),
    (r"^mbarrier\.\w+_wait(?!.*\.relaxed)", _ASM + r"\.relaxed\b", ".acquire"),
    (r"^barrier\.cluster\.arrive(?!.*\.relaxed)", _ASM + r"\.relaxed\b", ""),
    (r"^mbarrier\.arrive(?!.*\.noComplete)", _ASM + r"\.noComplete\b", ""),
    (r"^cp\.async\.mbarrier\.arrive\.noinc", r"(cp\.async\.mbarrier\.arrive)(?!\.noinc)", r"\\1.noinc"),
    (r"^cp\.async\.mbarrier\.arrive(?!\.noinc)", r"(cp\.async\.mbarrier\.arrive)\.noinc", r"\\1"),
    (r"^bar\.warp\.sync (0x[0-9a-f]+)$", r"__syncwarp\([^()]*\)", r"__syncwarp(\1)"),
    (r"^(bar(?:rier)?\.\w+(?:\.\w+)? \d+, \d+)$", r"\bbar(?:rier)?\.\w+(?:\.\w+)? \d+, \d+", r"\1"),
    (r"^red\.\S*add\.\S* in place of", r"(?<![^\s;{}()])([A-Za-z_][\w.]*(?:\[[^;=]*\])?)\s*\+=\s*([^;]+);", r"atomicAdd(&\\1, \\2);"),
)


def patched(source: str, fixes: Iterable[VerifiedFix], file: str) -> str:
    """The text of a file with fixes, equal steps once; empty if one of them cannot be written so."""
    lines = source.splitlines()
    edits: dict[LineEdit, None] = {}
    for step in dict.fromkeys(step for fix in fixes for step in fix.steps):
        found = _edits(lines, step) if os.path.realpath(step.file) == os.path.realpath(file) else ()
        if not found:
            return ""
        edits |= dict.fromkeys(found)
    for start, end, new in sorted(edits, key=lambda edit: edit[:2])[::-1]:
        lines[start:end] = new
    return "\n".join(lines) + "\n"


def block_of(source: str, line: int) -> int:
    """The first line of the block that a line is in."""
    depths = _depths(source)
    inside = min(depths[line - 2 : line], default=0)
    return next((above + 1 for above in range(line - 1, 0, -1) if ([0, *depths])[above - 1] < inside), line)


def _depths(source: str) -> list[int]:
    """How many braces are open behind each line."""
    return list(itertools.accumulate(line.count("{") - line.count("}") for line in _QUIET.sub("", source).splitlines()))


def between(source: str, accesses: Iterable[int]) -> list[int]:
    """The lines after which synchronisation of two lines may belong: between them, also outside of nested blocks; then around them."""
    own = sorted(accesses)
    if not own or not own[0]:
        return []
    depths = _depths(source)
    first, last = own[0], min(own[-1], len(depths))
    inside = sorted(range(first, last), key=lambda line: depths[line - 1])[:1]
    return list(dict.fromkeys((*([first] if first < last else []), *inside, *([last - 1] if first < last else []), first - 1, last)))


def outside(source: str, line: int) -> int:
    """The first line from one on behind which the blocks of its kernel are closed: all threads come there."""
    return next((at for at, depth in enumerate(_depths(source), 1) if at >= line and depth <= 1), line)


def _edits(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    is_there = 1 <= step.line <= len(lines) and step.own_line <= len(lines)
    return _FORMS[step.action](lines, step) if is_there else ()


def _added(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    if found := _ZEROS.match(step.instruction):
        return _cleared(lines, found[1])
    text = statement(step)
    return _inserted(lines, step, text) if text else ()


def _cleared(lines: list[str], symbol: str) -> tuple[LineEdit, ...]:
    """Zeros in a variable of shared memory, behind the one line that declares it."""
    name = variable_name(symbol).rpartition("::")[2]
    declared = re.compile(rf"\s*(?:extern\s+)?__shared__\b[^;]*[\s*&]{re.escape(name)}\b[^;]*;")
    found = [at for at, line in enumerate(lines) if declared.match(line)]
    if len(found) != 1 or not name.isidentifier():
        return ()
    line = lines[found[0]]
    indent = line[: len(line) - len(line.lstrip())]
    stores = f"for (unsigned i = threadIdx.x; i < sizeof({name}); i += blockDim.x) reinterpret_cast<char*>(&{name})[i] = 0;"
    return ((found[0] + 1, found[0] + 1, (indent + stores, f"{indent}__syncthreads();")),)


def statement(step: FixStep) -> str:
    """The instruction as a statement of CUDA C++; empty if that would need operands that only the PTX has."""
    if _CALL.match(step.spelling) or step.instruction == SOURCE_CALL:
        return f"{step.spelling};"
    if found := _MBARRIER.match(step.instruction):
        name = found[4] + (f"[{found[5][1:].partition('.')[0]}]" if found[5] else "")
        code = _AT_MBARRIER[found[1]].format(parity=found[2])
        return f'asm volatile("{code}" :: "r"((unsigned)__cvta_generic_to_shared(&{name})) : "memory");'
    return (
        ""
        if _OPERAND.search(step.instruction) or not _BARE.match(step.instruction)
        else f'asm volatile("{step.instruction};" ::: "memory");'
    )


def _inserted(lines: list[str], step: FixStep, text: str) -> tuple[LineEdit, ...]:
    """A new line, indented as its neighbour, or as what follows a directive; none within a statement. A place in the PTX, but not of the
    condition, is under that.
    """
    line, at = lines[step.line - 1], step.line - (step.where == "before")
    neighbour = next((each for each in lines[step.line - 1 :] if each.strip() and not each.startswith("#")), line)
    indent = neighbour[: len(neighbour) - len(neighbour.lstrip())]
    is_inside = step.action == "add" and step.ptx_line and not step.at_condition
    if is_inside and (found := _behind_condition(line)):
        start, end = found
        both = f"{text} {line[start:end]}" if step.where == "before" else f"{line[start:end]} {text}"
        return ((step.line - 1, step.line, (f"{line[:start]}{{ {both} }}{line[end:]}",)),)
    return ((at, at, (indent + text,)),) if _begins(lines, at) and _is_in_function(lines, at) else ()


def _is_in_function(lines: list[str], at: int) -> bool:
    """Whether a brace is open before a line: a function may be one line."""
    return at > 0 and _depths("\n".join(lines))[at - 1] > 0


def _behind_condition(line: str) -> tuple[int, int] | None:
    """Where the one statement of a line is that has only a condition before it, and no access in that."""
    code = COMMENT.sub(lambda comment: " " * len(comment[0]), line).rstrip()
    found = _IF.match(code)
    end = _closing(code, found.end() - 1) if found else 0
    if found is None or not end or not _PLAIN.fullmatch(code[found.end() : end - 1]):
        return None
    start = end + len(code[end:]) - len(code[end:].lstrip())
    return (start, len(code)) if _LONE.fullmatch(_STRING.sub('""', code[start:])) else None


def _moved(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    """A line at another place; an instruction is there for all threads that come to it."""
    gone = _left_out(lines, step)
    own = lines[step.own_line - 1]
    found = _IF.match(own) if not _WHOLE_LINE.match(step.instruction) else None
    text = own[_closing(own, found.end() - 1) :] if found else own
    new = _inserted(lines, step, text.strip()) if gone else ()
    return (*gone, *new) if new else ()


def _left_out(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    """Without a line that is one statement, with its condition, and not the body of one above it."""
    if step.instruction == "condition":
        return _unconditional(lines, step.own_line - 1)
    own = step.own_line - 1
    is_lone = own >= 0 and _LONE.fullmatch(_STRING.sub('""', COMMENT.sub("", lines[own])).strip()) is not None and _begins(lines, own)
    return ((own, own + 1, ()),) if is_lone else ()


def _unconditional(lines: list[str], own: int) -> tuple[LineEdit, ...]:
    """Without the condition that a line begins with; what it holds stays."""
    found = _IF.match(lines[own]) if own >= 0 else None
    end = _closing(lines[own], found.end() - 1) if found else 0
    if _has_other_branch(lines, own):
        return ()
    rest = lines[own][end:].strip()
    if _LEAVES.match(rest):  # what stands behind it is then for all
        return ((own, own + 1, ()),)
    return ((own, own + 1, (f"{found[1]}{rest}",) if COMMENT.sub("", rest).strip() else ()),) if found and end else ()


def _has_other_branch(lines: list[str], own: int) -> bool:
    """Whether an `else` follows the statement or the block of the condition that a line begins with."""
    depths = [0, *_depths("\n".join(lines))]
    code = [COMMENT.sub("", line).strip() for line in lines]
    end = next((at for at in range(own, len(lines)) if depths[at + 1] <= depths[own] and re.search(r"[;}]", code[at])), own)
    if any(depths[at] == depths[own] + 1 and re.match(r"\}\s*else\b", code[at]) for at in range(own, end + 1)):
        return True
    behind = next((each for each in code[end + 1 :] if each and not each.startswith("#")), "")
    return re.search(r"[;}]\s*else\b", code[end]) is not None or re.match(r"else\b", behind) is not None


def _closing(code: str, opening: int) -> int:
    """The place behind the parenthesis that closes one; 0 if that is in another line."""
    depths = itertools.accumulate((each == "(") - (each == ")") for each in code[opening:])
    return next((opening + at + 1 for at, depth in enumerate(depths) if depth == 0), 0)


def _altered(lines: list[str], step: FixStep) -> tuple[LineEdit, ...]:
    """Another number in a line that has one, or another word that says the scope, the order, the mask or the operation; another last
    argument, or another statement, where the line is a call.
    """
    line = lines[step.own_line - 1] if step.own_line else ""
    forms = (_as_two, _with_number, _with_word, _with_argument)
    text = _with_call(line, step) or next(filter(None, (form(line, step.instruction) for form in forms)), "")
    text = text or _as_statement(lines, step) or _by_one(lines, step)
    return ((step.own_line - 1, step.own_line, (text,)),) if text else ()


def _with_argument(line: str, instruction: str) -> str:
    """The line with another last argument of its one call that does what the step alters."""
    for wanted, name, text in _ARGUMENTS:
        step = re.search(wanted, instruction)
        calls = list(calls_of(line, name)) if step else []
        if step and len(calls) == 1 and len(calls[0].places) > 1:
            start, end = calls[0].places[-1]
            return line[:start] + re.sub(r".+", step.expand(text), line[start:end]) + line[end:]
    return ""


def _with_call(line: str, step: FixStep) -> str:
    """The line with the call that a step spells in place of its one call of that name."""
    calls = list(calls_of(line, re.escape(step.spelling.partition("(")[0]))) if step.instruction == SOURCE_CALL else []
    if len(calls) != 1:
        return ""
    start, end = calls[0].places[0][0], calls[0].places[-1][1]
    return line[:start] + step.spelling.partition("(")[2].removesuffix(")") + line[end:]


def _as_statement(lines: list[str], step: FixStep) -> str:
    """Another instruction in place of a line that is one statement."""
    own = lines[step.own_line - 1] if step.own_line else ""
    comment = COMMENT.search(own)
    indent = own[: len(own) - len(own.lstrip())]
    text = statement(step) if _BARE.match(step.instruction) and _left_out(lines, step) else ""
    return f"{indent}{text}{f'  {comment[0]}' if comment else ''}" if text else ""


def _with_number(line: str, instruction: str) -> str:
    code, replaced = COMMENT.sub(lambda found: " " * len(found[0]), line), _REPLACED.search(instruction)
    there = [each for each in _NUMBER.finditer(code) if replaced is None or each[0] == replaced[1]]
    old = there[0] if len(there) == 1 and not _is_operand(code, there[0]) else None
    wanted = next((new(int(old[0]), found) for pattern, new in _WANTED if old and (found := pattern.search(instruction))), -1)
    return f"{line[: old.start()]}{wanted}{line[old.end() :]}" if old and wanted >= 0 and old[0] != str(wanted) else ""


def _is_operand(code: str, number: re.Match[str]) -> bool:
    """Whether a number is only a part of the value: `STAGES - 2`."""
    return _ARITHMETIC.search(code[: number.start()].rstrip()[-1:] + code[number.end() :].lstrip()[:1]) is not None


def _with_word(line: str, instruction: str) -> str:
    """The line with the first word of the table that it has once, outside of comments; empty if it has none."""
    code = COMMENT.sub("", line)
    for wanted, there, word in _WORDS:
        found = re.search(wanted, instruction)
        if found and len(re.findall(there, code)) == 1:
            old = re.search(there, line)
            return line[: old.start()] + old.expand(found.expand(word)) + line[old.end() :] if old else ""
    return ""


def _by_one(lines: list[str], step: FixStep) -> str:
    """A line that is one statement, by some threads only."""
    condition = next((text for words, text in _BY_ONE.items() if step.instruction.endswith(words)), "")
    own = lines[step.own_line - 1] if condition and _left_out(lines, step) else ""
    return own[: len(own) - len(own.lstrip())] + condition + own.lstrip() if own else ""


def _begins(lines: list[str], at: int) -> bool:
    """Whether a statement may begin with a line: none goes on from above."""
    above = (code for line in reversed(lines[:at]) if (code := COMMENT.sub("", line).strip()) and not _SELECTS.match(code))
    return _ENDS.search(next(above, "")) is not None


def parted(source: str, first: int, last: int) -> tuple[int, str]:
    """The line of the `else` between two lines of exclusive branches, and its condition; 0 if the first branch may alter that."""
    lines = source.splitlines()
    depths = _depths(source)
    for at in range(first, last - 1):
        if _ELSE.match(COMMENT.sub("", lines[at])) and depths[at] <= min(depths[first - 1 : at] or [0]):
            begin = next((up for up in range(first - 2, -1, -1) if depths[up] <= depths[at] and "{" in lines[up]), -1)
            found = _IF.match(lines[begin]) if begin >= 0 else None
            end = _closing(lines[begin], found.end() - 1) if found else 0
            condition = lines[begin][found.end() : end - 1] if found and end else ""
            names = _WORD.findall(condition)
            is_same = condition and _PLAIN.fullmatch(condition) and not any(_changes(name, source, lines[begin + 1 : at]) for name in names)
            return (at + 1, condition) if is_same else (0, "")
    return 0, ""


def _changes(name: str, source: str, branch: list[str]) -> bool:
    """Whether a branch may change a variable, or other threads may."""
    written = rf"\b{name}\b\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|(?:\+\+|--|&)\s*{name}\b|\b{name}\s*(?:\+\+|--)"
    is_seen = rf"\b(?:__shared__|volatile|__device__|__managed__)\b[^;]*\b{name}\b"
    return re.search(written, "\n".join(branch)) is not None or re.search(is_seen, source) is not None


def _as_two(line: str, instruction: str) -> str:
    """A barrier and a branch of its own in place of an `else`."""
    found, wanted = _ELSE.match(line), _PARTED.match(instruction)
    return f"{found[1]}}}\n{found[1]}__syncthreads();\n{found[1]}if (!({wanted[1]})) {{" if found and wanted else ""


_FORMS: Final[Mapping[str, Callable[[list[str], FixStep], tuple[LineEdit, ...]]]] = {
    "add": _added,
    "move": _moved,
    "alter": _altered,
    "leave-out": _left_out,
}
