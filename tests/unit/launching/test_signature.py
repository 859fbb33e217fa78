"""Whether an argument is of the sort that its parameter is, as PTX, mangled name or source tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import consan
from consan.__main__ import main
from consan._errors import UsageError
from consan.instrument.ptx import Function, parse
from consan.launching import mangled
from consan.launching.arguments import parse_args
from consan.launching.signature import check_arguments, in_source, kinds_of

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def entry(name: str, *types: str) -> Function:
    params = ", ".join(f".param {type_} {name}_{i}{'[8]' if 'b8' in type_ else ''}" for i, type_ in enumerate(types))
    return parse(f"{HEAD}.visible .entry {name}({params}) {{ ret; }}", "k.ptx").functions[0]


def problem(function: Function, *texts: str, source: str | None = None) -> str:
    try:
        check_arguments(function, parse_args(texts), None if source is None else lambda: source)
    except UsageError as error:
        return str(error)
    return ""


# --- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "texts"),
    [
        ("_Z1kv", []),
        ("_Z1kPfi", ["float*", "int"]),
        ("_Z1kPKijfdxmbs6__half1ScN2ns1TEPKS3_PS5_PFviERA4_i",
         ["int*", "unsigned", "float", "double", "long long", "unsigned long", "bool", "short", "a class", "a class", "char", "a class",
          "a pointer", "a pointer", "a pointer", "a pointer"]),
        ("_Z2tkIfLi4EEvPT_S0_i", ["float*", "float", "int"]),
        ("_Z2vkIJifEEvDpT_", ["int", "float"]),
        ("_ZN3mma12swizzle_gemmIfLi2EEEvPT_PKS2_i", ["float*", "a pointer", "int"]),
        ("_ZN6thrust4kernIN2ns1AIfEES3_EEvT_T0_S3_i", ["a class", "a class", "a class", "int"]),
        ("_Z1kN4cuda3std3__45arrayIfLm4EEEPf", ["a class", "float*"]),
        ("_Z3barSt6vectorIiSaIiEEf", ["a class", "float"]),
    ],
)  # fmt: skip
def test_a_mangled_name_tells_its_parameters(symbol: str, texts: list[str]) -> None:
    found = mangled.parameters(symbol)
    assert found is not None
    assert [kind.text for kind in found] == texts


NOT_READ = ["k", "_Z", "_Z5", "_Z99k", "_Z1kT_", "_Z1kS5_", "_Z1kDv4_f", "_Z1kM1Ai", "_ZN7cutlass6KernelINS_1GEEEvNT_6ParamsE"]


@pytest.mark.parametrize("symbol", [*NOT_READ, "_Z1k" + "P" * 100_000 + "i"], ids=[*NOT_READ, "deep"])
def test_a_name_that_is_not_understood_tells_nothing(symbol: str) -> None:
    assert mangled.parameters(symbol) is None


@pytest.mark.parametrize("symbol", ["_Z1kPKijfdxmbs6__half1ScN2ns1TEPKS3_PS5_PFviERA4_i", "_ZN3mma12swizzle_gemmIfLi2EEEvPT_PKS2_i"])
def test_no_beginning_of_a_name_is_an_error(symbol: str) -> None:
    whole = mangled.parameters(symbol)
    assert whole
    for end in range(len(symbol)):
        assert mangled.parameters(symbol[:end]) != whole


# --- sources -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("float* a, const int *b, unsigned n", ["a pointer", "a pointer", "unsigned"]),
        ("const float x, size_t n, unsigned long long int l, std::uint32_t m", ["float", "size_t", "unsigned long long int", "uint32_t"]),
        ("int /* the number, in all */ n, // of rows\n double", ["int", "double"]),
        ("float (&tile)[4], const Params p, T x, vec<int, 2> v", ["a pointer", "another type", "another type", "another type"]),
        ("", []),
        ("void", []),
    ],
)
def test_the_source_tells_its_parameters(text: str, texts: list[str]) -> None:
    found = in_source("k", f'extern "C" __global__ void __launch_bounds__(64, 2) k({text}) {{ g(1); }}\n__global__ void kk(int) {{}}')
    assert found is not None
    assert [kind.text for kind in found] == texts


@pytest.mark.parametrize(
    "text",
    [
        "__device__ void k(int);",
        "// __global__ void k(int) {}",
        "__global__ void k(int\n#ifdef LONG\n long\n#endif\n n) {}",
        "__global__ void k(int) {}\n__global__ void k(float) {}",
        "__global__ void k(int",
    ],
)
def test_a_source_that_is_not_clear_tells_nothing(text: str) -> None:
    assert in_source("k", text) is None


def test_what_does_not_agree_with_the_ptx_is_left_out_as_a_whole() -> None:
    source = "__global__ void k(float* p, unsigned n) {}"
    assert [kind.kind for kind in kinds_of(entry("k", ".u64", ".u32"), lambda: source)] == ["pointer", "unsigned"]
    assert [kind.kind for kind in kinds_of(entry("k", ".u64", ".f32"), lambda: source)] == ["word", "float"]
    assert [kind.kind for kind in kinds_of(entry("k", ".u64"), lambda: source)] == ["word"]
    assert [kind.kind for kind in kinds_of(entry("_Z1kPfj", ".u64", ".b32"))] == ["pointer", "unsigned"]
    assert [kind.kind for kind in kinds_of(entry("_Z1k1E", ".u32"))] == ["integer"], "an enumeration"


# --- arguments -----------------------------------------------------------------------------------------------------------

POINTER = "give a buffer, such as f32[1024]=zeros, or u64=0 for a null pointer"


@pytest.mark.parametrize(
    ("type_", "name", "text", "told"),
    [
        (".u32", "k", "f32=4", "is a float, k expects .u32 there: write i32=VALUE"),
        (".s32", "k", "f32=4", "is a float, k expects .s32 there: write i32=VALUE"),
        (".u32", "_Z1ki", "f32=4", "is a float, _Z1ki expects int there: write i32=VALUE"),
        (".b32", "_Z1ki", "f32=4", "is a float, _Z1ki expects int there: write i32=VALUE"),
        (".b32", "_Z1kf", "i32=4", "is an integer, _Z1kf expects float there: write f32=VALUE"),
        (".f32", "k", "i32=4", "is an integer, k expects .f32 there: write f32=VALUE"),
        (".f32", "k", "f64=4", "is f64, k expects .f32 there: write f32=VALUE"),
        (".f64", "k", "f32=4", "is f32, k expects .f64 there: write f64=VALUE"),
        (".f64", "k", "u64[4]=zeros", "is a buffer, k expects .f64 there: write f64=VALUE"),
        (".u32", "k", "u64[4]=zeros", "is a buffer, k expects .u32 there: write i32=VALUE"),
        (".u64", "k", "f64=4", "is a float, k expects .u64 there: write u64=VALUE, or give a buffer if it is a pointer"),
        (".u64", "_Z1kx", "i32[4]=zeros", "is a buffer, _Z1kx expects long long there: write i64=VALUE"),
        (".u64", "_Z1kPf", "u64=4", f"is an integer, _Z1kPf expects float* there: {POINTER}"),
        (".u64", "_Z1kPf", "f64=4", f"is a float, _Z1kPf expects float* there: {POINTER}"),
        (".u64 .ptr .global", "k", "i32=4", f"is an integer, k expects a pointer there: {POINTER}"),
        (".u32", "_Z1kj", "i32=-1", "is negative, _Z1kj expects unsigned there: write u32=VALUE"),
    ],
)  # fmt: skip
def test_an_argument_of_another_sort_is_refused(type_: str, name: str, text: str, told: str) -> None:
    assert problem(entry(name, type_), text) == f"--arg 1 '{text}': {told}"


@pytest.mark.parametrize(
    ("type_", "name", "text"),
    [
        (".u32", "k", "i32=-1"),
        (".u32", "_Z1ki", "u32=4"),
        (".u32", "_Z1kj", "i32=4"),
        (".f32", "_Z1kf", "f32=4"),
        (".u64", "k", "u64=4"),
        (".u64", "k", "f32[4]=zeros"),
        (".u64", "_Z1kPf", "u64=0"),
        (".u64", "_Z1kPf", "i32[4]=zeros"),
        (".u64", "_Z1km", "i64=4"),
        (".u32", "k", "bytes=00000000"),
        (".b64", "k", "f32[4]=zeros"),
        (".align 4 .b8", "k", "f64=4"),
        (".align 2 .b8", "_Z1k6__half", "f64=1"),
    ],
)
def test_an_argument_that_may_be_meant_is_taken(type_: str, name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert problem(entry(name, type_), text) == ""
    assert capsys.readouterr().err == ""


def test_what_nothing_decides_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert problem(entry("k", ".b32"), "f32=4") == ""
    told = "the PTX of k says .b32 there: whether that is a float or an integer is not known"
    assert capsys.readouterr().err == f"consan: warning: --arg 1 'f32=4': {told}\n"
    assert problem(entry("k", ".b32"), "f32=4", source="__global__ void k(int n) {}").endswith("write i32=VALUE")


@pytest.mark.parametrize("text", ["f32=1e300", "f32=-1e39", "f16=70000", "bf16=1e39", "f64=1e400"])
def test_a_float_that_does_not_fit_is_refused(text: str) -> None:
    type_, _, value = text.partition("=")
    with pytest.raises(UsageError, match=f"^--arg 1 '{text}': {value} does not fit {type_}$"):
        parse_args([text])


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("f32=inf", np.float32("inf").tobytes()),
        ("f32=-Infinity", np.float32("-inf").tobytes()),
        ("f32=nan", np.float32("nan").tobytes()),
        ("f16=65504", np.float16(65504).tobytes()),
        ("bf16=3e38", b"\x62\x7f"),
        ("f64=1e300", np.float64(1e300).tobytes()),
    ],
)
def test_a_float_that_fits_is_taken(text: str, data: bytes) -> None:
    assert [each.materialise(0) for each in parse_args([text])] == [data]


SOURCE = 'extern "C" __global__ void k(int n, float* out) { out[threadIdx.x] = n; }\n'


@pytest.mark.parametrize("command", ["check", "stress"])
def test_on_the_command_line_it_is_one_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    words = ["k.cu", "--device", "cpu", "--grid", "1", "--block", "32", "--arg", "f32=4", "--arg", "f32[32]=zeros"]
    assert main([command, *words]) == 2
    assert capfd.readouterr().err == "consan: error: --arg 1 'f32=4': is a float, k expects int there: write i32=VALUE\n"


OUT = np.zeros(32, np.float32)


@pytest.mark.parametrize(
    ("types", "value", "told"),
    [
        ("int", np.float32(4), "argument np.float32.4.0.: expected an array, a number, or bytes for a parameter int of 4 bytes"),
        ("int", 4.0, "argument 4.0: expected an array"),
        ("float", 1e300, "argument 1e[+]300 does not fit a parameter .f32"),
        ("double", OUT, "an array of float32 cannot be passed for a parameter double"),
        ("long long", OUT, "an array of float32 cannot be passed for a parameter long long"),
    ],
)
def test_the_python_api_refuses_the_same(types: str, value: object, told: str) -> None:
    kernel = consan.Kernel(f"__global__ void k({types} n, float* out) {{\n out[threadIdx.x] = n; }}\n")
    with pytest.raises(UsageError, match=told):
        consan.launch(kernel, 1, 32, [value, OUT], device="cpu")


@pytest.mark.parametrize("value", [3, np.int32(3), 3.0, np.float32(3)])
def test_the_python_api_converts_an_integer_to_a_float(value: object) -> None:
    kernel, out = consan.Kernel("__global__ void k(float n, float* out) {\n out[threadIdx.x] = n; }\n"), np.zeros(32, np.float32)
    consan.launch(kernel, 1, 32, [value, out], device="cpu")
    assert (out == 3).all()
