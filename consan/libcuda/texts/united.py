"""Several PTX modules as one, as a device linker would join their machine code (PTX ISA "Linking Directives").

A program built with `-rdc=true`, or one that links at run time, has a kernel in one module and functions and variables in others. One
shadow memory serves them all: so the texts are joined before they are instrumented, and the assembler gets a single module.

- A name that a module keeps to itself gets a number where another module has the same one; so do labels of `.debug_str`.
- A declaration goes where there is a definition. The first of several `.weak` definitions stays, a `.visible` one before all; of `.common`
  ones and of dynamic shared memory that with the most bytes, or the strictest alignment.
- Functions are declared before all else: a module may use what a later one defines.
- `.file` is numbered anew. Debug sections other than `.debug_str` go: their offsets mean nothing here.

Not handled: declarations of several variables at once (compilers write none at module scope), and `.target` options.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final

from consan._errors import NotSupported
from consan.dataclass import dataclass
from consan.instrument.ptx import Directive, Function, Module, Section, Variable, parse

_TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|(?P<before>(?:\.file|\.loc|\binlined_at)\s+)(?P<file>\d+)|(?P<name>\.?[A-Za-z_$%][\w$]*)|\d[\w.]*',
    re.DOTALL,
)
_LABEL: Final = re.compile(r"([A-Za-z_$%][\w$]*)\s*:")
_STRINGS: Final = ".debug_str"
_HEAD: Final = (".version", ".target", ".address_size")
_DECLARED: Final = 9
_RANK: Final = {"visible": 0, "": 0, "weak": 1, "common": 2, "extern": _DECLARED}  # of several of one name the lowest stays
_OF_DRIVER: Final = frozenset(("vprintf", "malloc", "free", "__assertfail"))  # functions that any module may call

_Rename = Callable[[str], str]


@dataclass(frozen=True)
class _Candidate:
    """A function or a variable of one of the modules, under the name that it has in the whole."""

    name: str
    item: Function | Variable
    text: str
    head: str = ""  # of a function: what comes before its body

    @property
    def rank(self) -> tuple[int, int, int]:
        if isinstance(self.item, Function):
            return (_DECLARED if self.item.is_declaration else _RANK[self.item.linkage], 0, 0)
        linkage = "weak" if self.dynamic else self.item.linkage
        return (_RANK[linkage], -self.item.nbytes(self.item.names[0]), -self.item.alignment)

    @property
    def dynamic(self) -> bool:
        """Whether it is shared memory whose size the launch gives: a declaration that is no other module's."""
        return isinstance(self.item, Variable) and self.item.in_shared and self.item.linkage == "extern"

    @property
    def refers(self) -> bool:
        """Whether it is a variable whose initial value may name another one."""
        return isinstance(self.item, Variable) and re.search(r"[A-Za-z_$]", self.item.names[0].initializer or "") is not None


@dataclass
class _Whole:
    """The items of the module that is being made."""

    candidates: dict[str, list[_Candidate]] = field(default_factory=dict)
    directives: dict[str, None] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)


def unite(texts: Sequence[str]) -> tuple[str, list[str]]:
    """One module of several, and the functions and variables that none of them defines.

    Raises PtxSyntaxError, and NotSupported if they cannot be one.
    """
    modules = [parse(text, f"part {number}") for number, text in enumerate(dict.fromkeys(texts), 1)]
    taken = Counter(name for module in modules for name in {*_names(module), *_labels(module)})
    whole, files, other_names = _Whole(), 0, set[str]()
    for number, module in enumerate(modules, 1):
        private = {*_names(module, private=True), *_labels(module)}
        new = {name: f"{name}__part{number}" for name in private if taken[name] > 1}
        _add(whole, module, _renamer(new, files))
        other_names |= {new.get(name, name) for name in module.source.aliases}
        files += max(module.files, default=0)
    chosen = [_chosen(name, each) for name, each in whole.candidates.items()]
    missing = [each.name for each in chosen if each.rank[0] == _DECLARED and each.name not in _OF_DRIVER | other_names]
    return _text(modules, chosen, whole), missing


def _names(module: Module, *, private: bool = False) -> Iterator[str]:
    """The names of functions and variables, or only of those that the module keeps to itself."""
    for function in module.functions:
        if not private or not function.linkage:
            yield function.name
    for variable in module.variables:
        if len(variable.names) > 1:
            raise NotSupported(f"it declares {' and '.join(name.name for name in variable.names)} at once, and has several modules")
        if not private or not variable.linkage:
            yield variable.names[0].name


def _labels(module: Module) -> set[str]:
    sections = (item.text for item in module.items if isinstance(item, Section) and item.name == _STRINGS)
    return {label for text in sections for label in _LABEL.findall(text)}


def _renamer(new: dict[str, str], files: int) -> _Rename:
    """Gives a text the new names, and the numbers that its files have in the whole."""

    def renamed(found: re.Match[str]) -> str:
        if found["file"]:
            return f"{found['before']}{int(found['file']) + files}"
        return new.get(found["name"] or "", found[0])

    return lambda text: _TOKEN.sub(renamed, text)


def _add(whole: _Whole, module: Module, rename: _Rename) -> None:
    for item in module.items:
        if isinstance(item, Function):
            head = rename(module.text[item.start : item.body.start]) if item.body is not None else ""
            _propose(whole, _Candidate(rename(item.name), item, rename(item.text), head))
        elif isinstance(item, Variable):
            _propose(whole, _Candidate(rename(item.names[0].name), item, rename(item.text)))
        elif isinstance(item, Section):
            whole.strings += [rename(item.text[item.text.index("{") + 1 : -1])] if item.name == _STRINGS else []
        elif isinstance(item, Directive) and item.name not in _HEAD:
            whole.directives[rename(item.text)] = None


def _propose(whole: _Whole, candidate: _Candidate) -> None:
    whole.candidates.setdefault(candidate.name, []).append(candidate)


def _chosen(name: str, candidates: list[_Candidate]) -> _Candidate:
    if sum(each.rank[0] == 0 for each in candidates) > 1:
        raise NotSupported(f"several of its modules define {name}")
    return min(candidates, key=lambda each: each.rank)


def _text(modules: Sequence[Module], chosen: Sequence[_Candidate], whole: _Whole) -> str:
    version, target = max(module.version for module in modules), max((module.target for module in modules), key=_number)
    functions = [each for each in chosen if isinstance(each.item, Function)]
    variables = sorted((each for each in chosen if isinstance(each.item, Variable)), key=lambda each: each.refers)
    declared = [f"{each.head};" if each.head else each.text for each in functions if each.item.kind == "func"]  # type: ignore[union-attr]
    strings = [f".section {_STRINGS}\n{{{''.join(whole.strings)}}}"] if whole.strings else []
    defined = [each.text for each in functions if each.head]
    parts = [f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64", *declared, *(each.text for each in variables)]
    return "\n\n".join([*parts, *defined, *whole.directives, *strings]) + "\n"


def _number(target: str) -> tuple[int, str]:
    digits = "".join(filter(str.isdigit, target))
    return int(digits or 0), target
