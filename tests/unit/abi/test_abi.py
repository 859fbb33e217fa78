"""The contract's tables: words that pack and unpack, records without gaps, and a C++ header that asserts both."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from consan._errors import UsageError
from consan.instrument.abi import bits, events, flags, records, sizes
from consan.instrument.abi.header import header
from consan.instrument.abi.hooks import hook
from consan.instrument.abi.variant import Variant
from consan.instrument.findings import KINDS, Kind, Reason
from consan.instrument.layouts.records import Records
from consan.toolchain import find
from consan.toolchain.nvrtc import compile_ptx

needs_nvrtc = pytest.mark.skipif(find.locate(find.NVRTC) is None, reason="NVRTC is not installed")
ENGINES = [Variant(partial=True, asynchronous=True, engine=True, cluster=ctas) for ctas in (0, 2, 16)]
VARIANTS = [Variant(), Variant(epoch_bits=(4, 6)), *ENGINES]
WORDS = pytest.mark.parametrize("word", bits.WORDS, ids=lambda word: word.name)


def samples(field: bits.Bits) -> list[int]:
    least, most = (-(field.mask // 2) - 1, field.mask // 2) if field.signed else (0, field.mask)
    return [least, most, random.Random(field.name).randint(least, most)]


@WORDS
@pytest.mark.parametrize("variant", VARIANTS[1:4], ids=("tiny", "engine", "cluster"))
def test_a_word_returns_what_was_packed(word: bits.Word, variant: Variant) -> None:
    fields = list(word.fields(variant))
    for choice in range(3):
        values = {field.name: samples(field)[choice] for field in fields}
        assert word.unpack(word.pack(values, variant), variant) == values
    for field in fields:
        assert word.pack({field.name: samples(field)[1]}, variant) == samples(field)[1] << field.at


@WORDS
def test_a_value_that_does_not_fit_is_refused(word: bits.Word) -> None:
    for field in word.fields():
        for value in (samples(field)[0] - 1, samples(field)[1] + 1):
            with pytest.raises(ValueError, match=field.name):
                word.pack({field.name: value})


@WORDS
def test_fields_are_told_and_fill_their_word(word: bits.Word) -> None:
    fields = list(word.fields())
    assert all(field.meaning for field in fields)
    assert len({field.name for field in fields}) == len(fields)
    assert fields[-1].at + fields[-1].width <= word.size


def test_counts_fit_their_bits() -> None:
    known = {(word.name, field.name): field.mask for word in bits.WORDS for field in word.fields()}
    assert known["record", "site"] >= sizes.SITE_LIMIT
    assert known["point", "site"] >= sizes.SITE_LIMIT
    assert known["entry", "site"] >= sizes.READ_SITE_LIMIT
    assert max(Kind) <= known["key", "kind"]
    assert max(Reason) <= known["key", "reason"]
    assert sizes.DIRECTORY_ENTRIES & (sizes.DIRECTORY_ENTRIES - 1) == 0


def test_every_constant_of_the_host_reaches_the_device() -> None:
    text = header(Variant())
    assert "#define MAX_CTAS 4u" in header(Variant(cluster=4))
    for name, value in sizes.FIXED.items():
        assert f"#define {name} {value}u" in text
    for kind in Kind:
        assert f"#define KIND_{kind.name} {int(kind)}u" in text


# -- records --------------------------------------------------------------------------------------------------------------------

SIZES = list(itertools.product(records.RECORDS.values(), (1, 16)))
RECORDS = pytest.mark.parametrize(("record", "ctas"), SIZES, ids=lambda value: getattr(value, "name", value))


@RECORDS
def test_numpy_and_cpp_agree_on_a_record(record: records.Record, ctas: int) -> None:
    """NumPy's own offsets against those that the C++ side asserts; records start on 8 bytes."""
    dtype = records.dtype(record, ctas)
    assert dtype.fields is not None
    assert {name: place[1] for name, place in dtype.fields.items()} | {"": dtype.itemsize} == records.offsets(record, ctas)
    assert records.size(record, ctas) % 8 == 0


@pytest.mark.parametrize("record", records.RECORDS.values(), ids=lambda record: record.name)
def test_every_member_is_told(record: records.Record) -> None:
    assert record.meaning
    assert all(field.meaning for field in record.fields)


def test_members_that_are_not_aligned_are_refused() -> None:
    bad = Records().record("Bad", "-", "u32 narrow -\nu64 wide -")
    with pytest.raises(ValueError, match=r"Bad\.wide"):
        records.offsets(bad)


# -- findings -------------------------------------------------------------------------------------------------------------------


def test_every_kind_has_a_type_that_fits() -> None:
    (words,) = (count for field, count in events.FINDING.members() if field.name == "words")
    assert set(events.TYPES) == set(Kind) == set(KINDS)
    assert all(records.size(own) <= 8 * words for own in events.TYPES.values())
    assert {own.name for own in events.TYPES.values() if own.fields} == {own.name for own in events.MEMBERS}


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
def test_a_finding_is_read_by_its_type(kind: Kind) -> None:
    own = np.zeros(1, records.dtype(events.TYPES[kind]))
    names = own.dtype.names or ()
    for number, name in enumerate(("other_thread", "operation", "own_operation", "number", "address"), 1):
        if name in names:
            own[name] = number
    stored = np.zeros(2, records.dtype(events.FINDING))
    stored["event"]["valid"] = 1, 0
    stored["event"]["kind"], stored["event"]["site"], stored["event"]["bytes"] = kind, 7, 4
    stored["words"][0] = np.frombuffer(own.tobytes().ljust(stored["words"][0].nbytes, b"\0"), "<u8")
    (found,) = events.records_of(stored, None)
    assert (found.kind, found.site, found.count, found.high) == (kind, 7, 1, 4)
    for number, name in enumerate(("other_thread", "operation", "own_operation", "number", "address"), 1):
        assert getattr(found, name) == (number if name in names else 0)
    assert (found.completion is not None) == KINDS[kind].completes
    assert KINDS[kind].two_sides == ("other_thread" in names)
    assert KINDS[kind].conflicts == ("hazard" in names)


# -- hooks ----------------------------------------------------------------------------------------------------------------------

ARRIVAL = {"address": "%a", "site": 3, "count": "%c", "bytes": 0}
USUAL = {"slot": "%slot", "state": "%state", "me": "%me"}


def test_a_call_has_its_arguments_in_order() -> None:
    wanted = [("b64", "%slot"), ("b64", "%state"), ("b32", "%me"), ("b32", "%a"), ("b32", "3"), ("b32", "%c"), ("b32", "0"), ("b32", "3")]
    given = ARRIVAL | {"flags": flags.ArriveFlags.DROP | flags.ArriveFlags.RELAXED}
    assert hook("mbarrier_arrive", **given).arguments(ENGINES[0], USUAL) == wanted


def test_a_parameter_of_clusters_is_left_out_elsewhere() -> None:
    assert [len(hook("fence", narrow=True).arguments(variant, USUAL)) for variant in ENGINES[:2]] == [3, 4]


@pytest.mark.parametrize(
    ("variant", "values", "error"),
    [
        (ENGINES[0], ARRIVAL, "flags"),
        (ENGINES[0], ARRIVAL | {"flags": flags.ArriveFlags.DROP, "parity": 1}, "parity"),
        (ENGINES[0], ARRIVAL | {"flags": 3}, "ArriveFlags"),
        (ENGINES[0], ARRIVAL | {"flags": flags.WaitFlags.DONE}, "ArriveFlags"),
        (Variant(), ARRIVAL | {"flags": flags.ArriveFlags.DROP}, "engine"),
    ],
)
def test_a_wrong_call_is_refused(variant: Variant, values: dict[str, int | str], error: str) -> None:
    with pytest.raises(TypeError, match=error):
        hook("mbarrier_arrive", **values).arguments(variant, USUAL)


@needs_nvrtc
def test_a_hook_with_other_parameters_does_not_compile() -> None:
    text = header(Variant()) + 'extern "C" __device__ __noinline__ u32 __consan_poll(u64 runtime, u32 more) { return more; }'
    with pytest.raises(UsageError, match="__consan_poll"):
        compile_ptx(text, arch="sm_80")


# -- the header -----------------------------------------------------------------------------------------------------------------


@needs_nvrtc
@pytest.mark.parametrize("variant", VARIANTS, ids=("plain", "tiny", "engine", "cluster2", "cluster16"))
def test_the_header_compiles_and_its_assertions_hold(variant: Variant) -> None:
    text = header(variant) + 'extern "C" __global__ void k(Slot* s, Thread* t) { t->state = s->state; }'
    assert ".entry k" in compile_ptx(text, arch="sm_80", defines=variant.defines()).ptx


@needs_nvrtc
@RECORDS
def test_a_moved_member_does_not_compile(record: records.Record, ctas: int) -> None:
    """The assertions are real: a second member before the first one breaks them."""
    text = header(Variant(cluster=ctas if ctas > 1 else 0))
    moved = text.replace(f"struct {record.name} {{", f"struct {record.name} {{ u64 added;")
    assert moved != text
    with pytest.raises(UsageError, match="static assertion failed"):
        compile_ptx(moved, arch="sm_80")


@needs_nvrtc
@pytest.mark.parametrize(
    ("line", "shifted"),
    [
        ("u32 record_site(u64 word) { return (u32)word >> 16;", "u32 record_site(u64 word) { return (u32)word >> 17;"),
        ("int state_tx(u64 word) { return (int)((u32)word << 10) >> 10;", "int state_tx(u64 word) { return (int)((u32)word << 10) >> 11;"),
        ("#define ENTRY_LOAD 0x80000u", "#define ENTRY_LOAD 0x40000u"),
    ],
)
def test_a_shifted_field_does_not_compile(line: str, shifted: str) -> None:
    text = header(Variant())
    assert line in text
    with pytest.raises(UsageError, match="static assertion failed"):
        compile_ptx(text.replace(line, shifted), arch="sm_80")
