"""Where the source of a kernel is found."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import source_formats as made
from seam_fakes import package

from consan.adapters import sources

INLINE = r"""
extern "C" __global__ void here(float *x) { x[threadIdx.x] = 1.f; }  // unique text of test_adapters_sources
"""


def test_literal_in_a_script_maps_to_the_script(tmp_path: Path) -> None:
    found = sources.place(INLINE, tmp_path)
    assert Path(found.path) == Path(__file__).absolute()
    lines = Path(__file__).read_text().splitlines()
    # The literal begins right after the quotes: its second line is the kernel's.
    assert "void here" in lines[found.line]
    assert found.directive() == f'#line {found.line} "{found.path}"\n'


def test_literal_in_an_imported_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in package(tmp_path, monkeypatch, {"kernels_of_test": 'A = 1\nSRC = r"""__global__ void other(int *p) {}\n"""\n'}):
        found = sources.place(importlib.import_module("kernels_of_test").SRC, folder / "copies")
    assert (Path(found.path).name, found.line) == ("kernels_of_test.py", 2)


def test_source_read_from_a_file_beside_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "__global__ void from_file(int *p) {}\n"
    (tmp_path / "beside.cu").write_text(code)
    for folder in package(tmp_path, monkeypatch, {"beside_of_test": ""}):
        importlib.import_module("beside_of_test")
        assert sources.place(code, folder / "copies") == sources.SourceStart(str(folder / "beside.cu"), 1)


def test_anything_else_is_written_once(tmp_path: Path) -> None:
    code = "".join(["__global__ void gener", "ated(int *p) { *p = ", str(41 + 1), "; }"])
    first, second = sources.place(code, tmp_path), sources.place(code, tmp_path)
    assert first == second
    assert Path(first.path).read_text() == code
    assert Path(first.path).name.startswith("generated-")
    assert [path.suffix for path in tmp_path.iterdir()] == [".cu"]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('extern "C" __global__ void saxpy(float a) {}', "saxpy"),
        ("template <typename T>\n__global__ void __launch_bounds__(256, 2) tile(T *p) {}", "tile"),
        ("__global__ __cluster_dims__(2, 1, 1) void pair() {}", "pair"),
        ("__device__ int x;", "kernel"),
    ],
)
def test_kernel_name(code: str, name: str) -> None:
    assert sources.kernel_name(code) == name


def test_session_names_the_folder(tmp_path: Path) -> None:
    class Session:
        source_dir = tmp_path / "run"

    assert sources.source_folder(Session()) == tmp_path / "run"
    assert sources.source_folder(object()).is_dir()


@pytest.mark.parametrize(
    ("code", "word", "in_source"),
    [
        (made.source("__syncthreads()"), "x[0] + 1.f", "x[threadIdx.x] = x[0] + 1.f"),
        (made.PERCENT % ("__syncthreads();", "+="), "y[0]", "x[threadIdx.x] += y[0]"),
        (made.PERCENT % ("", "="), "void two", "two"),
        (made.joined(racy=True), "= y[0];  // three", "x[threadIdx.x]"),
        (made.joined(racy=False), '"__syncthreads', "__syncthreads"),
        (made.HEAD + made.BODY, "half(x[", "x[threadIdx.x]"),
        ("#define N 4\n" + made.PERCENT % ("__syncwarp();", "="), "    %s", "__syncwarp"),
        (made.SHORT % "int", "five", "int n"),
    ],
)
def test_a_literal_that_the_program_has_changed(code: str, word: str, in_source: str, tmp_path: Path) -> None:
    at = sources.place(code, tmp_path)
    assert Path(at.path).name == "source_formats.py"
    line = next(number for number, each in enumerate(Path(at.path).read_text().split("\n"), 1) if word in each)
    spread = at.spread(code).split("\n")
    assert in_source in spread[line - at.line]
    assert [each for each in spread if each.strip()] == [each for each in code.split("\n") if each.strip()]


@pytest.mark.parametrize(
    "code",
    [
        made.BODY + "\n" + made.HEAD,  # another order than the file's
        made.PERCENT % ("\n".join(["__syncthreads();", "y[1] = 2;", "y[2] = 3;"]), "="),  # more lines than the file has
        "__device__ int al" + "so(int x) { return x; }\n" + made.PERCENT % ("", "="),  # a part that no file has
        "\n".join(f"y[{each}] = x[{each} + 1];" for each in range(6)) + made.SHORT % "int",
    ],
)
def test_a_source_of_which_the_lines_are_not_certain_is_a_copy(code: str, tmp_path: Path) -> None:
    at = sources.place(code, tmp_path)
    assert (Path(at.path).suffix, at.spread(code)) == (".cu", code)
