"""Kernels of several ranks as one (SEMANTICS 12, R-RK2): what each rank launches is a part of one kernel, for the CTAs of that rank.

A framework that specialises on the number of the rank compiles another text for each. Their bodies become blocks of one entry, one after
the other, each with names of its own; a rank that launches nothing has an empty one:

    { <what each thread knows of its rank> @%ranked1 bra $ranked_1; { body of rank 0 } $ranked_1: { body of rank 1 } }

The parameters of rank 1 follow those of rank 0. Where all ranks have one text, it is that of ranked.py.

Not handled, and refused: variables in global memory, functions or shared variables that differ, and all that ranked.py refuses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from consan._errors import NotSupported
from consan.instrument.ptx import Function, Module, parse
from consan.instrument.rewriting.ranked import Dim3, named_of, of_rank, prologue, ranked, refuse_variables, with_places

Kernel = tuple[Module, str]  # a module and the name of its entry
_FILE: Final = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+("[^"\n]*")', re.MULTILINE)
_LOC: Final = re.compile(r"(\.loc[ \t]+|inlined_at[ \t]+)(\d+)")
_FUNCTION_NAME: Final = re.compile(r"(function_name[ \t]+)([$\w.]+)(?:[ \t]*\+[ \t]*(\d+))?")


def joined(kernels: Sequence[Kernel | None], grid: Dim3) -> tuple[Module, str]:
    """One kernel for all ranks, each with this grid, and its name; None: a rank that launches nothing.

    Raises `UsageError` for what it does not handle.
    """
    first, name = next(kernel for kernel in kernels if kernel is not None)
    if all(kernel is not None and (kernel[0].text, kernel[1]) == (first.text, name) for kernel in kernels):
        return ranked(first, name, len(kernels), grid), name
    entry = _entry(first, name)
    assert entry.body is not None
    files, bodies, parameters = _Files(first), [], []
    for rank, kernel in enumerate(kernels):
        own = None if kernel is None else _entry(*kernel)
        bodies.append(
            f"$ranked_{rank}:\n{{\n" + ("ret;" if own is None or kernel is None else _body(kernel[0], own, rank, files)) + "\n}\n"
        )
        if own is not None:
            parameters += _parameters(own, rank)
    more = [text for kernel in kernels if kernel is not None and kernel[0] is not first for text in _declared(kernel[0], kernel[1], first)]
    text = first.text
    begin, open_, end = entry.start, entry.body.open, entry.body.close + 1
    rest = _directives(text[begin:open_])
    jumps = " ".join(f"@%ranked{rank} bra $ranked_{rank};" for rank in range(1, len(kernels)))
    head = f"{text[:begin]}{''.join(dict.fromkeys(more))}.visible .entry {name}(\n" + ",\n".join(parameters) + f"\n){rest}{{"
    whole = f"{head}{prologue(len(kernels), grid[2])} {jumps}\n{''.join(bodies)}}}{text[end:]}\n{files.added}"
    return parse(whole, first.name), name


def _entry(module: Module, name: str) -> Function:
    return next(each for each in module.functions if each.name == name and each.body is not None)


def _parameters(entry: Function, rank: int) -> list[str]:
    named, header = named_of(entry), _header(entry)
    if named is None:
        return []
    inside = " ".join(re.sub(r"//[^\n]*", "", header[header.index("(") + 1 : header.index(")")]).split())
    return [of_rank(rank, named, each.strip()) for each in inside.split(",")]


def _header(entry: Function) -> str:
    assert entry.body is not None
    return entry.text[: entry.body.open - entry.start]


def _directives(header: str) -> str:
    """The text between the parameters and the body."""
    return header[header.index(")") + 1 :] if "(" in header else "\n"


def _body(module: Module, entry: Function, rank: int, files: _Files) -> str:
    """The body of an entry with the parameters and the places of a rank."""
    assert entry.body is not None
    text = entry.text[entry.body.open - entry.start + 1 : entry.body.close - entry.start]
    named = named_of(entry)
    text = with_places(text if named is None else of_rank(rank, named, text))
    return text if rank == 0 else files.renumbered(module, text)


def _declared(module: Module, entry: str, first: Module) -> list[str]:
    """Declarations of a module beside its entry that the first one lacks. It must be alike where both do."""
    refuse_variables(module, 2)
    known = {name.name: _plain(each.text) for each in first.variables for name in each.names}
    known |= {each.name: _plain(each.text) for each in first.functions}
    found = [(name.name, each.text) for each in module.variables for name in each.names]
    found += [(each.name, each.text) for each in module.functions if each.name != entry]
    for name, text in found:
        if known.get(name, _plain(text)) != _plain(text):
            raise NotSupported(f"{name} is another in the kernel of another rank, and one launch cannot have both")
    return [f"{text}\n" for name, text in found if name not in known]


def _plain(text: str) -> str:
    return " ".join(text.split())


class _Files:
    """The tables that `.loc` lines refer to: the files and names of inlined functions of the first module, and what others have beside."""

    def __init__(self, first: Module) -> None:
        self._numbers: dict[str, str] = {name: number for number, name in _FILE.findall(first.text)}
        self._labels: dict[str, str] = {}
        self.added = ""

    def renumbered(self, module: Module, text: str) -> str:
        """Lines of another module with the numbers that its files have here."""
        own = {number: self._number(name) for number, name in _FILE.findall(module.text)}
        text = _LOC.sub(lambda found: found[1] + own.get(found[2], found[2]), text)
        return _FUNCTION_NAME.sub(lambda found: found[1] + self._label(module, "+".join(filter(None, found.groups()[1:]))), text)

    def _number(self, name: str) -> str:
        if name not in self._numbers:
            self._numbers[name] = str(max(map(int, self._numbers.values()), default=0) + 1)
            self.added += f".file {self._numbers[name]} {name}\n"
        return self._numbers[name]

    def _label(self, module: Module, label: str) -> str:
        name = module.debug_string(label) or ""
        if name not in self._labels:
            self._labels[name] = f"$L__joined_{len(self._labels)}"
            data = ",".join(str(byte) for byte in (*name.encode(), 0))
            self.added += f".section .debug_str\n{{\n{self._labels[name]}:\n.b8 {data}\n}}\n"
        return self._labels[name]
