"""CUDA C++ as text: what is code, and the declarations at namespace scope. The text is searched, not parsed.

`masked` blanks comments, strings and directives, so that all positions stay. `items` finds the declarations: kernels, functions of the
device and of the host, types, variables. Namespaces and `extern "C"` are entered.

Not handled: declarations that a macro makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from consan.dataclass import dataclass

KERNEL: Final = "kernel"
DEVICE: Final = "device"  # a function of the device alone
BOTH: Final = "both"  # a function of host and device
HOST: Final = "host"  # a function of the host
TYPE: Final = "type"
VARIABLE: Final = "variable"  # of the device
CONSTANT: Final = "constant"  # known to both compilers
GLOBAL: Final = "global"  # a variable of the host

_NOISE: Final = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//(?:\\\n|[^\n])*|/\*.*?\*/',
    re.DOTALL,
)
_DIRECTIVE: Final = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_MACRO: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\b(?!\()((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_QUALIFIERS: Final = ("__global__", "__device__", "__host__", "__constant__", "__shared__")
_SCOPE: Final = re.compile(r"^\s*(?:(?:inline\s+)?namespace\b[^()=;]*|extern\s*)$")
_ATTRIBUTE: Final = re.compile(r"\b(?:__\w+__|alignas|__declspec)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|\[\[.*?\]\]", re.DOTALL)
_TYPE: Final = re.compile(r"^\s*(?:typedef\s+)?(?:struct|class|union|enum)\b")
_NAMED: Final = re.compile(r"^\s*(?:(?:using|typedef|static_assert|concept)\b|namespace\s+\w+\s*=)")


@dataclass(frozen=True)
class Item:
    """A declaration at namespace scope. `head`: without its body, and without comments. `body`: where its braces are; None: it has none."""

    kind: str
    begin: int
    end: int
    head: str
    body: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The name of a function."""
        found = re.search(r"([A-Za-z_]\w*)\s*$", self.head[: self.parameters[0] - 1]) if self.parameters else None
        return found[1] if found else ""

    @property
    def parameters(self) -> tuple[int, int] | None:
        """Where the list of parameters is in the head of a function, without its parentheses."""
        groups = list(_groups(self.head))
        return groups[-1] if groups else None


def blank(text: str) -> str:
    """Spaces in place of the text; lines stay."""
    return re.sub(r"[^\n]", " ", text)


def uncommented(text: str) -> str:
    """The text with spaces in place of comments and of the contents of strings."""
    return _NOISE.sub(lambda found: blank(found[0]), text)


def masked(text: str) -> str:
    """The text with spaces in place of comments, strings and directives."""
    return _DIRECTIVE.sub(lambda found: blank(found[0]), uncommented(text))


_BRANCH: Final = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b", re.MULTILINE)


def _one_branch(text: str, plain: str) -> str:
    """Blank the later branches of an `#if` whose first branch opens braces that it does not close."""
    starts: list[list[int]] = []
    for found in _BRANCH.finditer(uncommented(text)):
        if found[1].startswith("if"):
            starts.append([found.end()])
        elif starts and found[1] != "endif":
            starts[-1].append(found.start())
        elif starts:
            branches = starts.pop()
            first = plain[branches[0] : branches[1]] if len(branches) > 1 else ""
            if first.count("{") != first.count("}"):
                begin, end = branches[1], found.start()
                plain = plain[:begin] + blank(plain[begin:end]) + plain[end:]
    return plain


def scope(text: str, at: int) -> str:
    """The namespaces around a position, each with `::` behind. Those without a name are left out."""
    plain = masked(text)[:at]
    names: list[str] = []
    for found in re.finditer(r"(?:\bnamespace\b([\w\s:]*))?\{|\}", plain):
        if found[0] == "}":
            names = names[:-1]
        else:
            names.append((found[1] or "").strip())
    return "".join(f"{each}::" for each in names if each)


def directives(text: str) -> Iterator[tuple[int, int]]:
    """Where directives are."""
    return (found.span() for found in _DIRECTIVE.finditer(uncommented(text)))


def closing(plain: str, at: int) -> int:
    """The position behind the bracket that closes the one at `at`."""
    depth = 0
    for found in re.finditer(r"[(){}\[\]]", plain[at:]):
        depth += 1 if found[0] in "({[" else -1
        if depth == 0:
            return at + found.end()
    return len(plain)


def parted(text: str) -> list[tuple[int, int]]:
    """Where the parts between commas are; commas within any brackets do not count."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "(<[{") - (character in ")]}" or (character == ">" and text[at - 1 : at] != "-"))
        if character == "," and depth == 0:
            parts.append((start, at))
            start = at + 1
    return [*parts, (start, len(text))] if text.strip() else []


def items(text: str) -> list[Item]:
    """The declarations of a file."""
    return list(_items(_one_branch(text, masked(text)), _qualifiers(text)))


def _qualifiers(text: str) -> dict[str, set[str]]:
    """The words like `__device__` that a macro without parameters stands for, as in `#define INLINE inline __device__`."""
    found: dict[str, set[str]] = {}
    for name, value in _MACRO.findall(uncommented(text)):
        words = re.findall(r"\w+", value)
        found.setdefault(name, set()).update(*({each} if each in _QUALIFIERS else found.get(each, set()) for each in words))
    return {name: words for name, words in found.items() if words}


def _items(plain: str, qualifiers: dict[str, set[str]]) -> Iterator[Item]:
    at = 0
    while (begin := _next(plain, at)) < len(plain):
        stop = _head_end(plain, begin)
        head = plain[begin:stop]
        if plain[stop : stop + 1] == "{" and _SCOPE.match(head):
            at = stop + 1
        elif plain[stop : stop + 1] == "{":
            body = (stop, closing(plain, stop))
            kind = _kind(head, qualifiers, has_body=True)
            at = body[1] if _is_function(head) else _semicolon(plain, body[1])
            yield Item(kind, begin, at, head, body)
        else:
            at = stop + 1
            yield Item(_kind(head, qualifiers, has_body=False), begin, min(at, len(plain)), head)


def _next(plain: str, at: int) -> int:
    found = re.compile(r"[^\s;}]").search(plain, at)
    return found.start() if found else len(plain)


def _head_end(plain: str, begin: int) -> int:
    """Where the head of a declaration ends: at its body or its semicolon."""
    at = begin
    while at < len(plain) and plain[at] not in ";{":
        at = closing(plain, at) if plain[at] in "([" else at + 1
    return at


def _semicolon(plain: str, at: int) -> int:
    """Behind the semicolon that ends a declaration with braces."""
    while at < len(plain) and plain[at] != ";":
        at = closing(plain, at) if plain[at] in "([{" else at + 1
    return min(at + 1, len(plain))


def _bare(head: str) -> str:
    """A head without its attributes and template parameters."""
    bare = _ATTRIBUTE.sub(" ", head)
    while (found := re.match(r"\s*template\s*<", bare)) is not None:
        depth, at = 1, found.end()
        while at < len(bare) and depth:
            depth += (bare[at] == "<") - (bare[at] == ">" and bare[at - 1] != "-")
            at += 1
        bare = bare[at:]
    return bare


def _groups(head: str) -> Iterator[tuple[int, int]]:
    """The parentheses outside of all others that may hold parameters."""
    at = 0
    while (at := head.find("(", at)) >= 0:
        end = closing(head, at)
        if not re.search(r"\b(?:__\w+__|alignas|decltype|noexcept|requires)\s*$", head[:at]):
            yield at + 1, end - 1
        at = end


def _is_function(head: str) -> bool:
    bare = _bare(head)
    return "(" in bare and not _is_assigned(bare) and not (_TYPE.match(bare) and "(" not in bare)


def _is_assigned(bare: str) -> bool:
    """Whether an equals sign comes before the parameters: the head of a variable."""
    first = bare.partition("(")[0]
    return "operator" not in first and re.search(r"(?<![=!<>])=(?!=)", first) is not None


def _kind(head: str, qualifiers: dict[str, set[str]], *, has_body: bool) -> str:
    words, bare = set(re.findall(r"__\w+__", head)), _bare(head)
    words.update(*(qualifiers[each] for each in set(re.findall(r"\w+", head)) & set(qualifiers)))
    if "__global__" in words:
        return KERNEL
    is_type = _NAMED.match(bare) is not None or (_TYPE.match(bare) is not None and "(" not in bare)
    if is_type:
        return TYPE
    is_function = _is_function(head)
    if "__device__" in words and is_function:
        return BOTH if "__host__" in words else DEVICE
    if words & {"__device__", "__constant__", "__managed__", "__shared__"}:
        return VARIABLE
    if is_function and not (not has_body and re.match(r"\s*(?:static\s+)?(?:constexpr|const)\b", bare)):
        return BOTH if re.search(r"\bconstexpr\b", bare) else HOST
    return CONSTANT if re.search(r"\b(?:constexpr|const)\b", bare) else GLOBAL
