"""The header grammar of the kernel files, and that every file obeys it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import twin_file

HERE = Path(__file__).parent
TWINS = sorted((HERE / "twins").glob("*.cu"))
FILES = [*TWINS, *sorted((HERE / "clean").glob("*.cu"))]


def _write(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "k.cu"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_obeys_the_grammar(path: Path) -> None:
    spec = twin_file.read(path)
    assert spec.results
    assert set(spec.results) <= set(spec.args)
    for name in spec.results:
        assert spec.reference(name).size == spec.args[name].size
    used = {marker for expectation in spec.expected + spec.allowed for marker in expectation.markers}
    assert used == set(spec.markers)
    assert bool(spec.expected) == (path in TWINS)
    assert ("RACY" in path.read_text()) == (path in TWINS)


def test_launch_and_arguments(tmp_path: Path) -> None:
    path = _write(tmp_path, "// prose", "// launch: grid=2x3 block=64 smem=16 arch=sm_90", "// arg: x f32[2,3]=arange", "// arg: n i32=7")
    spec = twin_file.read(path)
    assert (spec.grid, spec.block, spec.smem, spec.arch) == ((2, 3, 1), (64, 1, 1), 16, "sm_90")
    np.testing.assert_array_equal(spec.args["x"], np.arange(6, dtype=np.float32).reshape(2, 3))
    assert spec.args["n"] == np.int32(7)


def test_tensor_maps_and_policy(tmp_path: Path) -> None:
    path = _write(tmp_path, "// policy: isa", "// arg: m tma:f16[64,32]=arange,box=8x32,swizzle=64", "// arg: n i32=7")
    spec = twin_file.read(path)
    assert spec.policy == "isa"
    tensor, number = spec.parameters(spec.fresh_args())
    assert (tensor.info.dims, tensor.info.box, tensor.info.swizzle) == ((32, 64), (32, 8), 64)
    assert tensor.array is not spec.args["m"]
    assert number == 7


def test_marker_lines(tmp_path: Path) -> None:
    path = _write(tmp_path, "// expect: data-race RAW @a @b severity=error", "x; /*@a*/", "y; /*@b*/", "z; /*@a*/")
    spec = twin_file.read(path)
    assert spec.markers == {"a": {2, 4}, "b": {3}}
    assert spec.expected == [twin_file.Expectation(("data-race",), "RAW", ("a", "b"), "error")]


BAD_HEADERS = [
    "// expects: data-race",
    "// launch: grids=1",
    "// arg: x f32[4]=ones",
    "// arg: x f32",
    "// expect: data-race RAM",
    "// expect: data-race @nowhere",
]


@pytest.mark.parametrize("line", BAD_HEADERS)
def test_bad_header_is_an_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"k\.cu|not an? "):
        twin_file.read(_write(tmp_path, line))
