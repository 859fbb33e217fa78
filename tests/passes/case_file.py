"""Cases of the instrumentation passes: one file each, the PTX to rewrite, then what must stand in the result, in this order.

After the line `// %%% expected %%%` every comment is one line to find, each after the one before. `<NAME>` stands for a word
(a register, mostly), the same word wherever the name returns before the next empty `//`; `<*>` stands for anything. `// not: TEXT`
must not stand between its neighbours. Calls of hooks are folded for reading, without the prefix of their names and without slot,
clock and thread, which most begin with: `call read4(%r1, 7)`. Three lines may say what the module got as a whole: `// sites: 2`,
`// unmodelled: opcode, opcode`, `// runtime: granule 4, partial, asynchronous`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

MARK = "// %%% expected %%%"
_PROPERTY = re.compile(r"(sites|unmodelled|runtime): ?(.*)")
_SET_PARAMETER = re.compile(r"\.param \.\w+ (\w+); st\.param\.\w+ \[\1\], (.*);$")
_CALL = re.compile(r"(@!?[%\w$]+ )?call (?:\((\w+)\), )?(__consan_\w+)(?:, \((.*)\))?;$")
_USUAL = "%__consan_slot, %__consan_state, %__consan_self"
_RESULT = re.compile(r"ld\.param\.\w+ (%\w+), \[__consan_r\d*\];$")


@dataclass(frozen=True)
class Case:
    """One file: `source` is everything before the mark."""

    source: str
    expected: tuple[str, ...]
    properties: dict[str, str] = field(default_factory=dict)


def read(path: Path) -> Case:
    """Read a case; a file without the mark or without expectations is a mistake."""
    source, mark, rest = path.read_text().partition(MARK)
    lines = [line.removeprefix("//").strip() for line in rest.splitlines() if line.startswith("//")]
    found = [_PROPERTY.fullmatch(line) for line in lines]
    expected = tuple(line for line, match in zip(lines, found, strict=True) if not match)
    if not mark or not any(lines):
        raise ValueError(f"{path.name}: nothing expected")
    return Case(source, expected, {match[1]: match[2] for match in found if match})


def fold(ptx: str) -> list[str]:
    """The lines of a rewritten text without declarations, with each call of a hook on one line."""
    values: dict[str, str] = {}
    lines: list[str] = []
    for line in (" ".join(each.split()) for each in ptx.splitlines()):
        if match := _SET_PARAMETER.match(line):
            values[match[1]] = match[2]
        elif match := _CALL.match(line):
            names = match[4].split(", ") if match[4] else []
            arguments = ", ".join(values[name] for name in names).removeprefix(_USUAL).removeprefix(", ")
            lines.append(f"{match[1] or ''}call {match[3].removeprefix('__consan_')}({arguments})")
        elif match := _RESULT.match(line):
            lines[-1] += f" -> {match[1]}"
        elif line and not re.match(r"\.(reg|param) [^,;]* %?__consan_|[{}]$", line):
            lines.append(line)
    return lines


def _pattern(text: str, words: dict[str, str]) -> re.Pattern[str]:
    parts, named = [], set[str]()
    for piece in re.split(r"(<(?:\*|[A-Z]\w*)>)", text):
        name = piece[1:-1]
        if not re.fullmatch(r"<(?:\*|[A-Z]\w*)>", piece):
            parts.append(re.escape(piece))
        elif name == "*":
            parts.append(".*?")
        elif name in words:
            parts.append(re.escape(words[name]))
        else:
            parts.append(f"(?P={name})" if name in named else rf"(?P<{name}>[%$\w]+)")
            named.add(name)
    return re.compile("".join(parts))


def mismatch(lines: list[str], expected: tuple[str, ...]) -> str | None:
    """What is wrong, or None: the expectations are looked for in order."""
    position, words, forbidden = 0, dict[str, str](), list[str]()
    for text in (*expected, None):
        if text == "":
            words.clear()
            continue
        if text is not None and text.startswith("not: "):
            forbidden.append(text.removeprefix("not: "))
            continue
        pattern = re.compile("(?!)") if text is None else _pattern(text, words)
        found = next((i for i in range(position, len(lines)) if pattern.fullmatch(lines[i])), len(lines))
        if found == len(lines) and text is not None:
            return f"not found after line {position}: {text}"
        for line in lines[position:found]:
            if each := next((f for f in forbidden if _pattern(f, words).fullmatch(line)), None):
                return f"must not be there: {each}"
        if text is not None and (match := pattern.fullmatch(lines[found])):
            words |= match.groupdict()
        position, forbidden = found + 1, []
    return None
