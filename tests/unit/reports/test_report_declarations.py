"""The small reader of declarations, and the names that bytes of shared memory get from them."""

from __future__ import annotations

import pytest

from consan.instrument.sites import SharedVariable
from consan.reports.source.declarations import SourceTexts
from consan.reports.source.names import name_without_element
from consan.reports.source.variables import Argument, Layout, address_name, layout
from consan.reports.waiting.deadlocks import mbarrier

TEXT = """
enum { STAGES = 2, NEXT, LAST = STAGES * 4 };  /* 3 and 8 */
#define WIDTH (STAGES * 8) // 16
constexpr int ROWS = 0x4u; typedef unsigned long long u64; using Half = half;
struct Pair { int id; float weights[3]; };
struct Open { int id; void f() {} };
template <typename T, int DEPTH> __global__ void __launch_bounds__(128) k(const T* __restrict__ in, T* out = nullptr) {
    __shared__ T ring[DEPTH][4];
    __shared__ __align__(128) float tile[ROWS][WIDTH + 1], *rows[2], flag;
    __shared__ u64 full[STAGES], empty[NEXT];
    __shared__ Pair pairs[LAST];
    __shared__ Half halves[ROWS];
    __shared__ float2 both[4];
    __shared__ Open open[2];
}
__global__ void k2(int n, const __grid_constant__ CUtensorMap map) { extern __shared__ float dynamic[]; }
constexpr int DEPTH = 3;
"""


def name(symbol: str, nbytes: int, begin: int, end: int, text: str = TEXT, element: int = 1) -> str:
    made = layout([SharedVariable(symbol, nbytes, 4, element)], {symbol: 128}, None, SourceTexts([text]))
    return made.name(128 + begin, 128 + end)


@pytest.mark.parametrize(
    ("symbol", "nbytes", "begin", "end", "expected"),
    [
        ("tile", 272, 4, 8, "tile[0][1]"),
        ("_ZZ1kPfE4tile", 272, 4, 8, "tile[0][1]"),
        ("tile", 272, 68, 72, "tile[1][0]"),
        ("tile", 272, 68, 84, "tile[1][0..3]"),
        ("tile", 272, 64, 72, "tile[0][16] to tile[1][0]"),
        ("tile", 272, 69, 70, "byte 1 of tile[1][0]"),
        ("rows", 16, 8, 16, "rows[1]"),
        ("flag", 4, 0, 4, "flag"),
        ("full", 16, 8, 16, "full[1]"),
        ("empty", 24, 16, 24, "empty[2]"),
        ("pairs", 128, 24, 28, "pairs[1].weights[1]"),
        ("pairs", 128, 16, 20, "pairs[1].id"),
        ("pairs", 128, 16, 24, "bytes 0..7 of pairs[1]"),
        ("halves", 8, 6, 8, "halves[3]"),
        ("both", 32, 8, 12, "bytes 0..3 of both[1]"),
        ("open", 24, 12, 16, "bytes 0..3 of open[1]"),
        ("ring", 64, 16, 20, "bytes 16..19 of ring"),  # T and DEPTH are the template's, whatever DEPTH is elsewhere
        ("tile", 999, 4, 8, "bytes 4..7 of tile"),  # not the declaration of this variable
        ("unknown", 64, 4, 8, "bytes 4..7 of unknown"),
    ],
)
def test_name_of_an_element(symbol: str, nbytes: int, begin: int, end: int, expected: str) -> None:
    assert name(symbol, nbytes, begin, end) == expected


@pytest.mark.parametrize(
    ("declaration", "begin", "end", "expected"),
    [
        ("float t[STAGES][8]", 32 + 12, 32 + 16, "t[1][3]"),
        ("float t[STAGES][8]", 32, 64, "t[1]"),
        ("float t[STAGES][8]", 16, 40, "t[0][4] to t[1][1]"),
        ("float t[kStages][2][4]", 64, 96, "t[2]"),
        ("float t[3][8]", 32, 64, "t[1][0..7]"),  # nobody calls these rows stages
        ("float t[STAGES]", 4, 8, "t[1]"),
        ("float t[8][STAGES]", 16, 20, "t[1][1]"),
        ("Stage t[STAGES]", 16, 20, "t[1].b"),
        ("Ring t", 16, 20, "t.tile[1][0]"),
    ],
)
def test_stages_of_a_ring(declaration: str, begin: int, end: int, expected: str) -> None:
    text = f"""enum {{ STAGES = 3 }}; constexpr int kStages = 3; struct Stage {{ float a; float b; float c; }};
    struct Ring {{ float tile[STAGES][4]; }}; __global__ void k() {{ __shared__ {declaration}; }}"""
    nbytes = {"float t[STAGES]": 12, "Stage t[STAGES]": 36, "Ring t": 48}.get(declaration, 96)
    assert name("t", nbytes, begin, end, text) == expected


def test_ptx_tells_the_element_where_no_source_does() -> None:
    assert name("full", 16, 8, 16, "", element=8) == "full[1]"
    assert name("flag", 4, 0, 4, "", element=4) == "flag"


def test_declarations_that_disagree_are_not_used() -> None:
    text = "__shared__ float a[4][2]; } { __shared__ float a[2][4];"
    assert name("a", 32, 4, 8, text) == "bytes 4..7 of a"


@pytest.mark.parametrize(
    ("symbol", "nbytes", "begin", "end", "expected"),
    [
        ("both", 32, 0, 8, ""),  # one dimension
        ("rows", 16, 0, 8, ""),
        ("ring", 96, 0, 4, ""),  # a dimension that is not known
        ("tile", 272, 68, 136, "tile[1]"),
        ("tile", 272, 64, 72, ""),  # in two parts
    ],
)
def test_the_part_of_an_array_of_tiles(symbol: str, nbytes: int, begin: int, end: int, expected: str) -> None:
    part = layout([SharedVariable(symbol, nbytes, 4, 1)], {symbol: 64}, None, SourceTexts([TEXT])).part(64 + begin, 64 + end)
    assert (part[0] if part else "") == expected


def test_an_array_of_many_rows_has_no_parts() -> None:
    source = SourceTexts(["__shared__ float few[8][4], many[9][4];"])
    made = layout([SharedVariable(name, 16 * n, 4, 1) for name, n in (("few", 8), ("many", 9))], {"few": 0, "many": 128}, None, source)
    assert (made.part(0, 16) is None, made.part(128, 144) is None) == (False, True)


def test_bytes_outside_of_one_variable_have_no_name() -> None:
    variables = [SharedVariable(symbol, 8, 4, 4) for symbol in ("a", "b", "lost")] + [SharedVariable("dyn", 0, 4, 0)]
    made = layout(variables, {"a": 0, "b": 8, "dyn": 32}, 32, SourceTexts([]))
    assert [made.name(*each) for each in ((4, 12), (16, 20), (28, 36), (-4, 0))] == ["", "", "", ""]
    assert made.name(36, 40) == "bytes 4..7 of dynamic shared memory"
    assert [made.region(*each) for each in ((0, 4), (0, 8), (4, 12), (32, 64))] == ["a[0]", "a", "", "dynamic shared memory"]
    assert Layout().name(0, 4) == ""


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("tile[1][3]", "tile"),
        ("tile", "tile"),
        ("pairs[1].id", "pairs"),
        ("bytes 4..7 of ring", "ring"),
        ("full[0] of the CTA of rank 1", "full of the CTA of rank 1"),
        ("shared memory", "shared memory"),
    ],
)
def test_base_name(text: str, base: str) -> None:
    assert name_without_element(text) == base


def test_parameters() -> None:
    source = SourceTexts([TEXT])
    assert source.parameters("k") == ("in", "out")
    assert source.parameters("k2") == ("n", "map")
    assert source.parameters("absent") == ()


BUFFERS = (Argument("--arg 1", 4096, 256, "in"), Argument("--arg 2", 8192, 64))


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (4112, 4113, "byte 16 of --arg 1 (in)"),
        (8192, 8196, "bytes 0..3 of --arg 2"),
        (4352, 4356, "directly past the end of --arg 1 (in, 256 bytes)"),
        (4350, 4354, "bytes 254..257 of --arg 1 (in, 256 bytes)"),
        (8180, 8184, "12 bytes before --arg 2 (64 bytes)"),
        (1 << 40, (1 << 40) + 4, ""),
    ],
)
def test_address_name(begin: int, end: int, expected: str) -> None:
    assert address_name(BUFFERS, begin, end) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((8,), "the mbarrier at shared offset 8"),
        ((8, "full[1]"), "the mbarrier full[1] (shared offset 8)"),
        ((8, "full[1]", 1), "the mbarrier full[1] (shared offset 8) of the CTA of rank 1"),
        ((8, "bytes 8..15 of dynamic shared memory"), "the mbarrier at bytes 8..15 of dynamic shared memory (shared offset 8)"),
    ],
)
def test_what_a_sentence_calls_an_mbarrier(given: tuple[int, str, int], expected: str) -> None:
    assert mbarrier(*given) == expected


TILELANG = """
extern "C" __global__ void one(half* a);
extern "C" __global__ void __launch_bounds__(256, 1) one(half* a) {
  extern __shared__ __align__(1024) uchar buf_dyn_shmem[];
  void* left = ((void*)((char*)buf_dyn_shmem + 0));
  void* right = ((void*)((char*)buf_dyn_shmem + 8192));
  void* out = ((void*)((char*)buf_dyn_shmem + 8192));
}
extern "C" __global__ void __launch_bounds__(256, 1) other(half* a) {
  void* tile = ((void*)((char*)buf_dyn_shmem + 16));
}
"""


def test_bytes_of_dynamic_memory_are_told_from_the_pointers_that_the_kernel_sets_there() -> None:
    source = SourceTexts([TILELANG])
    one, other = (layout([], {}, 1024, source, kernel) for kernel in ("one", "other"))
    assert one.name(1024, 1028) == "bytes 0..3 of dynamic shared memory (left + 0..3)"
    assert one.name(1024 + 8196, 1024 + 8200) == "bytes 8196..8199 of dynamic shared memory (right or out + 4..7)"
    assert other.name(1024, 1028) == "bytes 0..3 of dynamic shared memory"
    assert layout([], {}, 1024, source).name(1024, 1028) == "bytes 0..3 of dynamic shared memory"
