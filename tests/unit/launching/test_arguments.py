"""The grammar of --arg and of X[,Y[,Z]]."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from consan._errors import UsageError
from consan.launching.arguments import (
    EXPECTED_MAP,
    EXPECTED_STRUCT,
    FLOATS,
    TYPES,
    BufferSpec,
    TensorSpec,
    check_dimensions,
    parse_arg,
    parse_args,
    parse_dim3,
    to_bf16,
)


def array(text: str, seed: int = 0, index: int = 1) -> np.ndarray:
    value = parse_arg(text, index).materialise(seed)
    assert isinstance(value, np.ndarray)
    return value


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("init", ["random", "zeros", "ones", "arange"])
def test_every_type_with_every_initialiser(name: str, init: str) -> None:
    values = array(f"{name}[3,5]={init}")
    assert values.shape == (3, 5)
    assert values.dtype == np.dtype(TYPES[name])
    assert values.flags["C_CONTIGUOUS"]
    assert parse_arg(f"{name}[3,5]={init}").parameter_bytes == 8


@pytest.mark.parametrize("name", TYPES)
def test_values_of_the_initialisers(name: str) -> None:
    def numbers(init: str) -> list[float]:
        words = array(f"{name}[4]={init}")
        wide = (words.astype("u4") << 16).view("f4") if name == "bf16" else words
        return [float(value) for value in wide]

    assert numbers("zeros") == [0, 0, 0, 0]
    assert numbers("ones") == [1, 1, 1, 1]
    assert numbers("arange") == [0, 1, 2, 3]
    low, high = (-1, 1) if name in FLOATS else (-128, 127) if name == "i8" else (0, 255)
    assert all(low <= value <= high for value in numbers("random"))


def test_random_is_seeded_and_differs_between_arguments() -> None:
    assert (array("f32[64]=random", seed=3) == array("f32[64]=random", seed=3)).all()
    assert (array("f32[64]=random", seed=3) != array("f32[64]=random", seed=4)).any()
    assert (array("f32[64]=random", index=1) != array("f32[64]=random", index=2)).any()
    assert array("i32[64]=random", seed=-1).shape == (64,)


def test_a_buffer_is_fresh_each_time() -> None:
    spec = parse_arg("i32[4]=zeros")
    first = spec.materialise(0)
    assert isinstance(first, np.ndarray)
    first[0] = 7
    assert (spec.materialise(0) == np.zeros(4)).all()


def test_small_types_wrap_around_in_arange() -> None:
    assert array("u8[300]=arange")[256] == 0
    assert array("i8[300]=arange")[128] == -128


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("i32=4096", struct.pack("<i", 4096)),
        ("i32=-1", b"\xff" * 4),
        ("u64=0x10", struct.pack("<Q", 16)),
        ("u8=255", b"\xff"),
        ("i8=-128", b"\x80"),
        ("f32=1.5", struct.pack("<f", 1.5)),
        ("f64=1e-3", struct.pack("<d", 1e-3)),
        ("f16=0.5", struct.pack("<e", 0.5)),
        ("bf16=1.0", b"\x80\x3f"),
        ("f32=inf", struct.pack("<f", float("inf"))),
        ("bytes=0a0B 0c", b"\x0a\x0b\x0c"),
        ("bytes=0xff_00", b"\xff\x00"),
        (" i32 = 7 ", struct.pack("<i", 7)),
    ],
)
def test_values(text: str, data: bytes) -> None:
    spec = parse_arg(text)
    assert spec.materialise(5) == data
    assert spec.parameter_bytes == len(data)


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = np.arange(6, dtype="f4").reshape(2, 3)
    np.save("a.npy", values)
    values.tofile("a.bin")
    np.save("turned.npy", values.T)
    assert (array("f32[6]=a.npy") == values.ravel()).all()
    assert (array("f32[2,3]=a.bin") == values).all()
    assert (array("f32[6]=turned.npy") == values.T.ravel()).all()
    assert (array("bf16[6]=a.npy") == to_bf16(values.ravel())).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f16[6]=a.npy", "a.npy holds float32, expected float16 for f16"),
        ("f32[7]=a.npy", "a.npy holds 6 elements, expected 7"),
        ("f32[7]=a.bin", "a.bin holds 24 bytes, expected 28"),
        ("f32[7]=none.npy", "cannot read none.npy: No such file or directory"),
        ("f32[7]=none.bin", "cannot read none.bin: No such file or directory"),
        ("f32[6]=fake.npy", "cannot read fake.npy"),
        ("f32[6]=empty.npy", "cannot read empty.npy: EOF"),
        ("f32[6]=archive.npy", "cannot read archive.npy: the magic string is not correct"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(6, dtype="f4"))
    np.arange(6, dtype="f4").tofile("a.bin")
    Path("fake.npy").write_text("not an array")
    Path("empty.npy").touch()
    with Path("archive.npy").open("wb") as file:
        np.savez(file, a=np.arange(6, dtype="f4"))
    with pytest.raises(UsageError, match=message) as caught:
        parse_arg(text, 2).materialise(0)
    assert str(caught.value).startswith(f"--arg 2 '{text}': ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected TYPE"),
        ("f32", "expected TYPE"),
        ("f32=", "expected TYPE"),
        ("f32[4]", "expected TYPE"),
        ("f32[4", "expected TYPE"),
        ("f32[4=zeros", "expected TYPE"),
        ("f32[]=zeros", r"expected a shape such as \[4096\]"),
        ("f32[0]=zeros", "expected a shape"),
        ("f32[4,]=zeros", "expected a shape"),
        ("f32[x]=zeros", "expected a shape"),
        ("f32[4]=sevens", "expected random, zeros, ones, arange, FILE.npy or FILE.bin"),
        ("float[4]=zeros", "unknown type 'float'"),
        ("int=4", "unknown type 'int'"),
        ("i32=four", "expected a whole number for i32"),
        ("i32=1.5", "expected a whole number for i32"),
        ("f32=x", "expected a number for f32"),
        ("u8=256", r"256 does not fit u8 \(0 to 255\)"),
        ("u32=-1", "does not fit u32"),
        ("bytes=0", "even number of hexadecimal digits"),
        ("bytes=zz", "hexadecimal"),
        ("f64[1000000,1000000]=zeros", "larger than 1 TiB"),
    ],
)
def test_mistakes_name_the_argument_and_what_is_expected(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_arg(text, 3)
    assert str(caught.value).startswith(f"--arg 3 '{text}': ")
    assert "\n" not in str(caught.value)


def test_a_tensor_map_is_described_by_its_buffer_and_options() -> None:
    spec = parse_arg("tma:f16[1024,1024]=random,box=64x32,swizzle=64", 3)
    assert isinstance(spec, TensorSpec)
    assert (spec.parameter_bytes, spec.buffer.init) == (128, "random")
    made = spec.materialise(5)
    assert made.array.shape == (1024, 1024)
    assert (made.info.dtype, made.info.dims, made.info.strides) == ("f16", (1024, 1024), (2048,))
    assert (made.info.box, made.info.swizzle) == ((32, 64), 64)
    np.testing.assert_array_equal(made.array, parse_arg("f16[1024,1024]=random", 3).materialise(5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tma:bf16[8,64]=zeros,box=8x64", {"dtype": "bf16"}),
        ("tma:i8[8,64]=arange,box=8x64,l2=256", {"dtype": "u8", "l2": 256}),
        ("tma:f32[8,64]=ones,box=8x32,dtype=tf32,oob=nan", {"dtype": "tf32", "oob": "nan"}),
        ("tma:u32[4,8,64]=ones , box=1x8x4 , element_strides=1x2x1", {"box": (4, 8, 1), "element_strides": (1, 2, 1)}),
        ("tma:f16[2,9,9,64]=ones,lower=-1x0,upper=-1x-2,channels=64,pixels=32", {"im2col": True, "lower": (0, -1), "upper": (-2, -1)}),
    ],
)
def test_options_of_tensor_maps(text: str, expected: dict[str, object]) -> None:
    info = parse_arg(text).materialise(0).info
    assert {name: getattr(info, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tma:f16[64]", EXPECTED_MAP),
        ("tma:f16=1,box=8", EXPECTED_MAP),
        ("tma:f16[8,64]=,box=8x64", EXPECTED_MAP),
        ("tma:f17[8,64]=ones,box=8x64", "unknown type 'f17'"),
        ("tma:f16[8,64]=random", "a tensor map needs box, such as box=64x64"),
        ("tma:f16[8,64]=random,lower=0", "a tensor map needs upper and channels and pixels"),
        ("tma:f16[8,64]=random,box=8x64,pixels=4", "a tensor map with a box takes no pixels"),
        ("tma:f16[8,64]=random,box=8by64", "expected numbers such as 64x64 for box, got '8by64'"),
        ("tma:f16[8,64]=random,box=8x64,swizzle=wide", "expected a whole number for swizzle, got 'wide'"),
        ("tma:f16[8,64]=random,box=8x64,swizle=32", "unknown option 'swizle=32' of a tensor map"),
        ("tma:f16[8,64]=random,box=8x64,box=1x8", "option box of a tensor map is given twice"),
        ("tma:f16[8,64]=random,box=8x64x8", "one size for each of 2 dimensions"),
        ("tma:f16[8,64]=random,box=8x64,swizzle=64", "128 bytes of the box are more than swizzle 64"),
        ("tma:f16[8,63]=random,box=8x8", "strides (126,): expected multiples of 16 bytes"),
        ("tma:f16[8,64]=random,box=8x64,dtype=tf32", "tf32 has 4 bytes, an element of the array 2"),
        ("tma:u16[8,64]=random,box=8x64,oob=nan", "out-of-bounds NaN: u16 has none"),
    ],
)
def test_tensor_map_errors(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arg(text, 2)
    assert str(caught.value).startswith(f"--arg 2 '{text}': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        ("tensor:f32[128,64]=ones", struct.pack("<4i", 128, 64, 64, 1)),
        ("tensor:f32[7]=ones", struct.pack("<2i", 7, 1)),
        ("tensor:f32[2,3,4]=ones,index=i64", struct.pack("<6q", 2, 3, 4, 12, 4, 1)),
        ("tensor:f32[4,8]=ones,strides=1x4", struct.pack("<4i", 4, 8, 1, 4)),
        ("tensor:f32[4,8]=ones,strides=1", struct.pack("<3i4x", 4, 8, 1)),  # a dimension that is broadcast has no stride
    ],
)
def test_a_struct_has_an_address_sizes_and_strides(text: str, extents: bytes) -> None:
    spec = parse_arg(text)
    made = spec.materialise(0)
    assert (made.rest, made.nbytes, spec.parameter_bytes) == (extents, 8 + len(extents), 8 + len(extents))
    assert made.array.shape == parse_arg(text.removeprefix("tensor:").partition("]")[0] + "]=zeros").materialise(0).shape


@pytest.mark.parametrize("text", ["[4]", "=1", "[4]=,index=i64", "[4]=ones,index=u8", "[4]=ones,strides=4y", "[4]=ones,box=4"])
def test_struct_errors(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(EXPECTED_STRUCT)):
        parse_arg(f"tensor:f32{text}")


def test_arguments_are_numbered_in_order() -> None:
    specs = parse_args(["f32[4]=zeros", "i32=1"])
    assert isinstance(specs[0], BufferSpec)
    assert specs[0].index == 1
    with pytest.raises(UsageError, match="--arg 2"):
        parse_args(["i32=1", "nonsense"])


@given(st.floats(width=32))
def test_bf16_rounds_to_the_nearest(value: float) -> None:
    (word,) = to_bf16(np.array([value], "f4"))
    (back,) = (np.array([word], "u4") << 16).view("f4")
    if np.isnan(value):
        assert np.isnan(back)
    elif np.isfinite(back):
        neighbours = [(np.array([int(word) + step], "u4") << 16).view("f4")[0] for step in (-1, 1) if 0 <= int(word) + step <= 0xFFFF]
        error = abs(np.float64(back) - value)
        assert all(not np.isfinite(other) or error <= abs(np.float64(other) - value) for other in neighbours)


@pytest.mark.parametrize(("text", "value"), [("7", (7, 1, 1)), ("2,3", (2, 3, 1)), ("2,3,4", (2, 3, 4)), ("0x10", (16, 1, 1))])
def test_dimensions(text: str, value: tuple[int, int, int]) -> None:
    assert parse_dim3("--grid", text) == value


@pytest.mark.parametrize("text", ["", "x", "0", "1,0", "-1", "1,2,3,4", "1,,2", "1.5"])
def test_dimensions_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"--grid: expected X\[,Y\[,Z\]\]"):
        parse_dim3("--grid", text)


@pytest.mark.parametrize(
    ("grid", "block", "cluster", "message"),
    [
        ((1, 65536, 1), (1, 1, 1), (1, 1, 1), "--grid: 1,65536,1 is beyond the limit"),
        ((1, 1, 1), (1, 1, 65), (1, 1, 1), "--block: 1,1,65 is beyond the limit"),
        ((1, 1, 1), (32, 33, 1), (1, 1, 1), "--block: 1,056 threads, expected at most 1,024"),
        ((32, 1, 1), (32, 1, 1), (32, 1, 1), "--cluster: 32 CTAs, expected at most 16"),
        ((3, 1, 1), (32, 1, 1), (2, 1, 1), "--grid: 3,1,1 CTAs is not a whole number of clusters of 2,1,1"),
    ],
)
def test_launches_that_no_gpu_does(
    grid: tuple[int, int, int], block: tuple[int, int, int], cluster: tuple[int, int, int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_dimensions(grid, block, cluster)


@pytest.mark.parametrize(
    ("grid", "block", "cluster", "axis"),
    [((2**31 - 1, 65535, 65535), (16, 1, 64), (1, 1, 1), 0), ((16, 2, 1), (1024, 1, 1), (8, 2, 1), 1)],
)
def test_launches_at_the_limits(grid: tuple[int, int, int], block: tuple[int, int, int], cluster: tuple[int, int, int], axis: int) -> None:
    check_dimensions(grid, block, cluster)
    larger = (grid[0] + 1, *grid[1:]) if axis == 0 else grid
    with pytest.raises(UsageError):
        check_dimensions(larger, block if axis == 0 else (block[0] + 1, *block[1:]), cluster)


def test_members_of_a_struct_lie_where_a_compiler_puts_them() -> None:
    spec = parse_arg("struct:i32=1;f32[4]=random;u8=2;tma:f16[64,64]=random,box=64x64;f32[4]=random;bytes=0a0b0c;i32=4@260")
    assert [offset for offset, _ in spec.members] == [0, 8, 16, 64, 192, 200, 260]
    assert spec.parameter_bytes == 320
    value = spec.materialise(0)
    assert not np.array_equal(value.members[1][1], value.members[4][1]), "each buffer has random numbers of its own"


def test_a_texture() -> None:
    spec = parse_arg("tex:f32[4,6,2]=ones,filter=linear,normalized=1,address=wrap,channels=2")
    info = spec.materialise(0).info
    assert (info.extents, info.channels, info.filter, info.addresses, info.normalized) == ((6, 4), 2, "linear", ("wrap", "wrap"), True)
    assert spec.parameter_bytes == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tex:f32=ones", "expected tex:TYPE"),
        ("tex:f32[4]=ones,colour=red", "unknown option 'colour=red' of a texture"),
        ("tex:f32[4]=ones,filter=cubic", "filter is 'cubic', expected point, linear"),
        ("tex:f32[4]=ones,channels=x", "expected a number for channels"),
        ("tex:f64[4]=ones", "expected a NumPy array of"),
        ("tex:f32[4,3]=ones,channels=4", "4 channels of an array of shape"),
        ("tex:f32[4,4]=ones,memory=linear", "linear memory has one dimension"),
        ("tex:f32[4,4]=ones,address=mirror", "wrap and mirror need normalized coordinates"),
        ("tex:u8[4]=ones,filter=linear", "a linear filter needs floating-point values"),
        ("tex:u32[4]=ones,read=normalized", "read=normalized is for elements of 8 and 16 bits"),
        ("tex:f32[5,4,4]=ones,shape=cube", "a cube has six square faces"),
    ],
)
def test_a_texture_that_cuda_refuses(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_arg(text)
