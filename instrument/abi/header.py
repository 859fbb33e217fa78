"""The C++ header of the shadow runtime, generated from the tables: numbers, enumerations, packed words, records, places in a slot."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from consan.instrument.abi import flags
from consan.instrument.abi.bits import WORDS, Bits, Word
from consan.instrument.abi.events import FINDING, MEMBERS
from consan.instrument.abi.geometry import FORMULAS, SLOT_ALIGNMENT, TABLES, numbers, places
from consan.instrument.abi.hooks import HOOKS
from consan.instrument.abi.records import RECORDS
from consan.instrument.abi.sizes import sizes
from consan.instrument.abi.variant import Variant
from consan.instrument.findings import FindingFlags, Hazard, Kind, Operation, Parted, Reason
from consan.instrument.layouts.cpp import structure

_START = """// Generated from consan/instrument/abi; do not edit.
typedef unsigned long long u64; typedef unsigned int u32; typedef unsigned char u8;
#undef offsetof
// NVRTC up to 13.0 lacks __builtin_offsetof. Its front end's own intrinsic is a constant expression in all versions.
#define offsetof(type, member) ((u64)__INTADDR__(&(((type *)0)->member)))
#define DEVICE static __device__ __forceinline__
#define POWER_OF_TWO(value) ((value) <= 1 ? 1u : 1u << (32 - __clz((value) - 1)))"""
_ENUMERATIONS: dict[type[enum.IntEnum] | type[enum.IntFlag], str] = {
    Kind: "KIND_",
    Hazard: "HAZARD_",
    Reason: "REASON_",
    Operation: "OPERATION_",
    FindingFlags: "FLAG_",
    Parted: "PARTED_",
    flags.AccessFlags: "ACCESS_",
    flags.SiteFlags: "SITE_",
    flags.KernelFlags: "KERNEL_",
    flags.PatternFlags: "PATTERN_",
    flags.ArriveFlags: "ARRIVE_",
    flags.WaitFlags: "WAIT_",
    flags.GlobalFlags: "GLOBAL_",
    flags.MapFlags: "MAP_",
    flags.ResultFlags: "RESULT_",
    flags.OperationFlags: "",
    flags.Threads: "",
    flags.What: "",
}
"""The prefix of the members' names in C++."""


def header(variant: Variant) -> str:
    """The text for a variant."""
    lines = [_START]
    lines += [f"#define {name} {value}u" for name, value in (sizes(variant.ctas) | numbers(variant)).items()]
    for members, prefix in _ENUMERATIONS.items():
        lines += [f"#define {prefix}{name} {int(member)}u" for name, member in members.__members__.items() if f"{prefix}{name}" != "NONE"]
    lines += [line for word in WORDS for line in _word(word, variant)]
    lines += [line for record in RECORDS.values() for line in structure(record, variant.ctas)]
    return "\n".join([*lines, _finding(), *_geometry(variant), *_hooks(variant)]) + "\n"


def _word(word: Word, variant: Variant) -> Iterator[str]:
    """Masks of the fields in capitals; place, mask and accessor of the others. A sample word holds them against `Word.pack`."""
    fields = list(word.fields(variant))
    values = {field.name: -(field.mask // 5) if field.signed else field.mask // 3 | 1 for field in fields}
    sample = f"{word.pack(values, variant):#x}ull"
    for field in fields:
        crosses = field.at // 32 != (field.at + field.width - 1) // 32
        place, name = field.at if crosses else field.at % 32, f"{word.name}_{field.name}"
        if field.name.isupper():
            yield f"#define {field.name} {field.mask << place:#x}u"
            read, value = f"(u32)({sample} >> {field.at - place}) & {field.name}", values[field.name] << place
        else:
            yield f"#define {name.upper()}_SHIFT {place}u"
            yield f"#define {name.upper()}_MASK {field.mask:#x}u"
            result = "int" if field.signed else "u32"
            yield f"DEVICE constexpr {result} {name}(u{word.size} word) {{ return {_value(field)}; }}"
            read, value = f"{name}({sample})", values[field.name]
        yield f'static_assert(({read}) == {value}{"" if field.signed else "u"}, "{word.name}.{field.name}");'


def _value(field: Bits) -> str:
    end = field.at + field.width
    if field.signed:
        return f"(int)((u32)word << {32 - end}) >> {32 - field.width}"
    shifted = f"(u32)word >> {field.at}" if end <= 32 else f"(u32)(word >> {field.at})"
    return shifted if end in (32, 64) else f"{shifted} & {field.mask:#x}u"


def _finding() -> str:
    """A finding as the device makes it: what findings are merged by, and the fields of their types."""
    (words,) = (count for field, count in FINDING.members() if field.name == "words")
    members = " ".join(f"{record.name} {name};" for record, name in MEMBERS.items())
    common = "u32 kind, reason, flags, site, other_site, thread, offset, bytes;"
    return f"struct Finding {{ {common} union {{ {members} u64 words[{words}]; }}; }};"


def _geometry(variant: Variant) -> Iterator[str]:
    """The places of fixed parts in a slot, and a function that computes those of the tables."""
    yield from (f"#define {name.upper()}_AT {at}ull" for name, at in places(variant).items())
    yield from (f"#define {name} ({text})" for name, text in FORMULAS.items())
    yield f"struct Shape {{ u32 warps, rows, cells; u64 {', '.join(part.name for part in TABLES)}, size, tag; }};"
    yield "DEVICE void place_tables(Shape &s) {"
    yield f"    u64 warps = s.warps, rows = s.rows, cells = s.cells, at = {TABLES[0].name.upper()}_AT;"
    for part in TABLES:
        yield f"    s.{part.name} = at;" + (f" at += {part.bytes};" if part.is_in(variant) else "")
    yield f"    s.size = ALIGN_UP(at, {SLOT_ALIGNMENT});"
    yield "}"


def _hooks(variant: Variant) -> Iterator[str]:
    """Declarations: a hook that is defined with other parameters does not compile."""
    for hook in HOOKS.values():
        if hook.is_in(variant):
            parameters = ", ".join(f"{each.type} {each.name}" for each in hook.taken(variant))
            yield f'extern "C" __device__ __noinline__ {hook.result_type} {hook.symbol}({parameters});'
