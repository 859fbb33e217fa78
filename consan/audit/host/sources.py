"""One source of CUDA C++ as two: what the host's compiler builds, and what NVRTC compiles. Lines stay where they are in both.

Local headers are read into the text, with `#line`. For the host, a kernel's body hands its arguments to the runtime
(source/consan_host.h), and `kernel<<<grid, block>>>(arguments)` sets the shape before the call. For the device, functions and variables
of the host are blanked, and so are headers that NVRTC has no use for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from consan.audit.host import text as cuda
from consan.audit.host.branches import for_this_compiler
from consan.dataclass import dataclass
from consan.toolchain.headers import VIRTUAL_HEADERS

_LOCAL: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)[^\n]*', re.MULTILINE)
_ONCE: Final = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*", re.MULTILINE)
_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_OF_HEADERS: Final = ("include", "inc", "common", "utils")  # folders
_LEVELS: Final = 3  # the folders above a source that may be its project's
_NAMES_OF_TYPES: Final = ("int", "float", "double", "char", "bool", "long", "short", "unsigned")
_PARTED: Final = re.compile(r"(?:(<<[ \t]+<|<[ \t]+<<)(?=[^<;]*>))|(?:>>[ \t]+>|>[ \t]+>>)(?=[ \t]*\()")
_LINE: Final = re.compile(r'#line (\d+)(?: "([^"]*)")?')
_FOR_DEVICE: Final = re.compile(
    r"cuda_(?:fp16|bf16|fp8|fp6|fp4|pipeline\w*|awbarrier\w*)\.hp?p?|mma\.h|cooperative_groups.*|math_constants\.h|cuda/.*|cub/(?!cub\.cuh|device/).*"
    r"|cute/.*|cutlass/.*|thrust/(?:tuple|pair|functional)\.h|cuComplex\.h|vector_types\.h|curand_\w+\.h|consan\.h"
)
_HOST_HAS: Final = re.compile(r"cooperative_groups.*|mma\.h|cuda/.*|cub/.*|cute/.*|cutlass/.*|cuda_(?:pipeline|awbarrier)\w*\.h")
_DEVICE_WIDE: Final = re.compile(r"\bDevice(?:Reduce|SegmentedReduce|Scan|Select|RadixSort|RunLengthEncode|Histogram)\s*::")  # of CUB
# Headers that NVRTC compiles for a second, and a use of names that consan_std.h lacks.
_OF_STD: Final = {name for name, text in VIRTUAL_HEADERS.items() if "<cuda/std/" in text} - {"cfloat", "climits", "cstddef", "cstdint"}
_OF_STD.difference_update(("float.h", "limits.h", "stddef.h", "stdint.h", "inttypes.h"))
_LONG: Final = re.compile(
    r"\bstd\s*::(?!\s*(?:max|min|swap|abs|ceil|cos|exp|fabs|floor|fma|fmax|fmin|isinf|isnan|log|pow|round|sin|sqrt|tanh|numeric_limits|size_t"
    r"|u?int(?:8|16|32|64)_t)\b)|\bnumeric_limits\s*<\s*(?!float|double|int|unsigned)|include\s*<(?:cub|cuda|cute|cutlass)/|\bcub::"
)
_DEFINED: Final = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\r?\n|[^\n])*", re.MULTILINE)
# A literal `(T){...}`, which nvcc takes and NVRTC does not.
_COMPOUND: Final = re.compile(
    r"((?:[=,(*+\-/?:]|\breturn|#[ \t]*define[ \t]+\w+(?:\([^)\n]*\))?)[ \t]*)\([ \t]*([A-Za-z_]\w*)[ \t]*\)[ \t]*\{"
)
# The device's view of a header that is for the host: names that kernels take from it.
_PRELUDE: Final = '#include <cstdint>\n#include <math.h>\n#include <cfloat>\n#include <climits>\n#include "consan_device.h"\n'
_BLOCKS: Final = (
    *(("reduce", "Reduce"), ("scan", "Scan"), ("load", "Load"), ("store", "Store"), ("radix_sort", "RadixSort")),
    *(("exchange", "Exchange"), ("histogram", "Histogram"), ("merge_sort", "MergeSort"), ("discontinuity", "Discontinuity")),
    *(
        ("adjacent_difference", "AdjacentDifference"),
        ("radix_rank", "RadixRank"),
        ("shuffle", "Shuffle"),
        ("run_length_decode", "RunLengthDecode"),
    ),
)
_WARPS: Final = (("reduce", "Reduce"), ("scan", "Scan"), ("merge_sort", "MergeSort"))
_OF_CUB: Final = r"\bcub::{0}\b|\busing\s+namespace\s+cub\b[\s\S]*\b{0}\b"
_STANDARD: Final = (
    ("cuda_bf16.h", r"\b__nv_bfloat16"),  # which headers of the host include
    ("cuda_fp16.h", r"\b(?:__half|half2?)\b"),
    ("consan_halves.h", r"\b(?:scalar_t|(?:c10|at)::(?:Half|BFloat16))\b"),
    *((f"cub/block/block_{name}.cuh", _OF_CUB.format(f"Block{word}")) for name, word in _BLOCKS),
    *((f"cub/warp/warp_{name}.cuh", _OF_CUB.format(f"Warp{word}")) for name, word in _WARPS),
    ("consan_before_cub3.h", r"\bcub\s*::\s*(?:Sum|Max|Min)\b"),
    ("algorithm", r"\bstd::(?:max|min|swap|clamp)\b"),
    ("limits", r"\bnumeric_limits\b"),
    ("type_traits", r"\bstd::(?:is_|enable_|conditional|decay|aligned_|remove_|make_(?:un)?signed|underlying_)"),
)


@dataclass(frozen=True)
class AuditedSource:
    """A source, whole: its name for messages and findings, and its text."""

    name: str
    text: str

    def defining(self, macros: Iterable[str]) -> AuditedSource:
        """The source with macros, as `-D` gives them."""
        lines = ("#define " + " ".join(f"{each}=1".split("=")[:2]) + "\n" for each in macros)
        return replace(self, text="".join(lines) + self.text)

    @functools.cached_property
    def items(self) -> list[cuda.Item]:
        """Its declarations."""
        return cuda.items(self.text)

    @property
    def kernels(self) -> list[str]:
        """The names of its kernels, in order, that have a body."""
        return list(dict.fromkeys(item.name for item in self.items if item.kind == cuda.KERNEL and item.body))

    @property
    def has_main(self) -> bool:
        """Whether it can be run."""
        return any(item.kind == cuda.HOST and item.name == "main" and item.body for item in self.items)

    def spans_at(self, errors: re.Pattern[str], log: str, may_go: Callable[[cuda.Item], bool]) -> list[tuple[int, int]]:
        """The declarations at the places of a compiler's errors that may be left out. `errors`: finds file and line in the log."""
        wrong = {(found[1], int(found[2])) for found in errors.finditer(log)}
        spans = []
        for item in filter(may_go, self.items):
            (name, first), (_, last) = place(self.text, item.begin), place(self.text, item.end)
            if any(file == name and first <= line <= last for file, line in wrong):
                spans.append((item.begin, item.end))
        return spans


def whole(name: str, text: str, folders: Iterable[Path] = (), others: Iterable[Path] = ()) -> AuditedSource:
    """A source with its local headers in it, and those of `folders`, behind the other sources of its program."""
    seen: set[Path] = set()
    texts = {str(each): each.read_text(errors="replace") for each in others} | {name: text}
    further = tuple(folders)
    parts = (f'#line 1 "{each}"\n' + _expanded(each, texts[each], ((Path(each).parent,), further), seen) for each in texts)
    return AuditedSource(name, "\n".join(parts))


def _expanded(name: str, text: str, folders: tuple[tuple[Path, ...], tuple[Path, ...]], seen: set[Path]) -> str:
    """`folders`: of the files that include this one, and those where `<header>` is looked for, too."""
    near, further = folders
    text = for_this_compiler(text, cuda.uncommented(text)) if "#" in text else text

    def replaced(found: re.Match[str]) -> str:
        header = found[1] or found[2]
        places = (*near, *further, *_of_project(near[0])) if found[1] else (*further, *(near if header.endswith(".cuh") else ()))
        path = next((folder / header for folder in places if (folder / header).is_file()), None)
        if path is None:
            return found[0]
        file, line = place(text, found.start())
        back = f'#line {line + 1} "{file or name}"'
        if path.resolve() in seen:
            return ""
        seen.add(path.resolve())
        inner = path.read_text(errors="replace")
        # The first line stands for the `#include`, whose place `back` gives to the lines behind it.
        return f'#line 1 "{path}"\n' + _expanded(str(path), inner, ((path.parent, *near), further), seen) + f"\n{back}"

    return _ONCE.sub(lambda found: cuda.blank(found[0]), _LOCAL.sub(replaced, text))


def _of_project(folder: Path) -> Iterator[Path]:
    """Where a project may have a header that no option names: the folders above one, and those for headers in them."""
    for each in (folder, *folder.parents[:_LEVELS]):
        yield from (each, *(each / name for name in _OF_HEADERS))


# -- the device ---------------------------------------------------------------------------------------------------------------


def for_device(source: AuditedSource, without: Iterable[tuple[int, int]] = (), *, brief: bool = False, names: Sequence[str] = ()) -> str:
    """The text that NVRTC compiles. `without`: more places to leave out. `brief`: with the few names of std that most kernels take.

    `names`: of the instances that are wanted.
    """
    text = source.text
    gone = [(item.begin, item.end) for item in source.items if item.kind in (cuda.HOST, cuda.GLOBAL)]
    for begin, end in (*gone, *without):
        text = text[:begin] + _code_blanked(text[begin:end]) + text[end:]
    brief = brief and not _LONG.search(_DEFINED.sub("", cuda.uncommented(text)))  # most macros with more of std are for the host
    text = _INCLUDE.sub(lambda found: found[0] if _on_device(found[1], brief=brief) else cuda.blank(found[0]) + "//", text)
    text = _COMPOUND.sub(r"\1\2{", text)
    needed = [header for header, use in _STANDARD if re.search(use, "\n".join((*names, text))) and not (brief and header in _OF_STD)]
    return _PRELUDE + "".join(f"#include <{header}>\n" for header in (*needed, *(["consan_std.h"] if brief else []))) + text


def _code_blanked(text: str) -> str:
    """Blank all but directives: the branches of `#if` stay whole."""
    kept, at = [], 0
    for begin, end in cuda.directives(text):
        kept += [cuda.blank(text[at:begin]), text[begin:end]]
        at = end
    return "".join((*kept, cuda.blank(text[at:])))


def _on_device(header: str, *, brief: bool) -> bool:
    return (header in VIRTUAL_HEADERS and not (brief and header in _OF_STD)) or _FOR_DEVICE.fullmatch(header) is not None


# -- the host -----------------------------------------------------------------------------------------------------------------


def for_host(source: AuditedSource, without: Iterable[tuple[int, int]] = ()) -> str:
    """The text that the host's compiler builds. `without`: places to leave out. A function of the host loses its body only."""
    text = source.text
    hollow = {(item.begin, item.end): item for item in source.items if item.kind == cuda.HOST and item.body}
    edits = [_hollowed(hollow[place], text) if place in hollow else (*place, _code_blanked(text[slice(*place)])) for place in without]
    edits += [edit for item in source.items if item.body and item.kind in (cuda.KERNEL, cuda.DEVICE) for edit in _emptied(item, text)]
    left_out = [place for place in without if place not in hollow]
    free = [edit for edit in edits if edit[:2] in left_out or not any(begin <= edit[0] < end for begin, end in left_out)]
    for begin, end, replacement in sorted(free, reverse=True):
        text = text[:begin] + replacement + text[end:]
    text = _INCLUDE.sub(lambda found: cuda.blank(found[0]) + "//" if _HOST_HAS.fullmatch(found[1]) else found[0], text)
    needed = '#include "consan_cub.h"\n' if _DEVICE_WIDE.search(cuda.uncommented(text)) else ""
    return needed + launches_rewritten(_for_torch(text))


def _hollowed(item: cuda.Item, text: str) -> tuple[int, int, str]:
    """A function of the host that says, when it is called, that it does not compile."""
    assert item.body is not None
    return (*item.body, f'{{ ::consan::missing("{item.name}"); ' + "\n" * text.count("\n", *item.body) + "}")


def _emptied(item: cuda.Item, text: str) -> list[tuple[int, int, str]]:
    """The body of a function of the device for the host: a kernel's hands its arguments over."""
    assert item.body is not None
    lines = "\n" * text.count("\n", *item.body)
    if item.kind == cuda.DEVICE:
        bare = item.head.partition("(")[0]
        return [] if re.search(r"\b(?:auto|constexpr)\b", bare) else [(*item.body, "{ __builtin_trap(); " + lines + "}")]
    assert item.parameters is not None, item.head
    names, edits, at = [], [], item.begin + item.parameters[0]
    for number, (first, last) in enumerate(cuda.parted(item.head[slice(*item.parameters)])):
        declared = item.head[slice(*item.parameters)][first:last]
        name, added = _parameter(declared, number)
        names += [name] if name else []
        end_of_type = at + first + len(declared.partition("=")[0].rstrip())
        edits += [(end_of_type, end_of_type, added)] if added else []
    body = f"{{ ::consan::hand_over({', '.join(names)}); {lines}}}"
    return [*edits, (*item.body, body)]


def _parameter(declared: str, number: int) -> tuple[str, str]:
    """The name of a parameter as an argument, and the name to add where it has none."""
    plain = declared.partition("=")[0].rstrip()
    if plain.strip() in ("", "void"):
        return "", ""
    pointed = re.search(r"\(\s*\*+\s*(\w+)\s*\)|(\w+)\s*(?:\[[^\]]*\]\s*)+$", plain)
    name = next(filter(None, pointed.groups()), "") if pointed else (re.search(r"(\w+)$", plain) or [""])[0]
    words = re.findall(r"\w+", plain)
    if not name or (not pointed and (len(words) == 1 or name in _NAMES_OF_TYPES)):
        return f"consan_{number}", f" consan_{number}"
    return (f"{name}..." if "..." in plain else name), ""


def _for_torch(text: str) -> str:
    """A tensor of the device is one of the CPU. `x.type()` as the first argument of a dispatch went with torch 2.9."""
    text = re.sub(r"(\bAT_DISPATCH_\w+\s*\(\s*[\w.\[\]>-]*?)\.type\(\)", r"\1.scalar_type()", text)
    text = re.sub(r"([.>]\s*)is_cuda(\s*\(\s*\))", r"\1is_cpu\2", text)
    return re.sub(r"\bkCUDA\b", "kCPU", re.sub(r"\bDeviceType::CUDA\b", "DeviceType::CPU", text))


def launches_rewritten(text: str) -> str:
    """`f<<<a, b>>>(c)` as `::consan::shape(a, b), f(c)`. Strings and comments stay."""
    text = _whole_brackets(text)
    plain = cuda.uncommented(text)
    at = len(plain)
    while (at := plain.rfind("<<<", 0, at)) >= 0:
        end = _configuration_end(plain, at + 3)
        begin = _callee_begin(plain, at)
        if end is None or begin is None:
            continue
        shape = text[at + 3 : end].strip().rstrip("\\").strip()
        made = f"::consan::shape({shape}), {text[begin:at]}"
        text = text[:begin] + made + text[end + 3 :]
        plain = plain[:begin] + cuda.uncommented(made) + plain[end + 3 :]
        at = begin
    return text


def _whole_brackets(text: str) -> str:
    """`f << <a, b >> >(c)`, as formatters of C++ leave it, with whole brackets. nvcc takes both."""
    plain = cuda.uncommented(text)
    for found in reversed(list(_PARTED.finditer(plain))):
        begin, end = found.span()
        text = text[:begin] + ("<<<" if found[1] else ">>>").ljust(end - begin) + text[end:]
    return text


def _configuration_end(plain: str, at: int) -> int | None:
    """Where `>>>` begins."""
    while at < len(plain):
        if plain.startswith(">>>", at):
            return at
        at = cuda.closing(plain, at) if plain[at] in "([{" else at + 1
    return None


def _callee_begin(plain: str, at: int) -> int | None:
    """Where the expression before `<<<` begins."""
    while at > 0 and plain[at - 1] in " \t\n\\":
        at -= 1
    if plain[at - 1 : at] == ">":
        at = _opening(plain, at, "<", ">")
    elif plain[at - 1 : at] in (")", "]"):
        closed = plain[at - 1]
        at = _opening(plain, at, {")": "(", "]": "["}[closed], closed)
        if closed == ")":
            return at
    while at > 0 and plain[at - 1] in " \t":
        at -= 1
    found = re.search(r"(?:(?:[A-Za-z_]\w*(?:<[^<>]*>)?\s*)?(?:::|\.|->)\s*(?:template\s+)?)*[A-Za-z_]\w*$", plain[:at][-400:])
    return None if found is None else at - len(found[0])


def _opening(plain: str, at: int, opens: str, closes: str) -> int:
    """Where the bracket opens that closes right before `at`."""
    depth = 0
    while at > 0:
        at -= 1
        if plain[at] in ")]}" and plain[at] != closes:
            at = _opening(plain, at + 1, {")": "(", "]": "[", "}": "{"}[plain[at]], plain[at])
            continue
        depth += (plain[at] == closes) - (plain[at] == opens)
        if depth == 0:
            return at
    return at


def place(text: str, at: int) -> tuple[str, int]:
    """The file and the line of a position, by `#line`."""
    name, line = "", 1
    for row in text[:at].split("\n")[:-1]:
        found = _LINE.match(row)
        name, line = (found[2] or name, int(found[1])) if found else (name, line + 1)
    return name, line
