"""Sizes that are made smaller: never below what the constants of the code imply."""

from __future__ import annotations

import re

import pytest

from consan.audit.host import constants, sizes

KERNEL = """
__global__ void __launch_bounds__(1024) k(float *p, int n) {{
  __shared__ float tile[{tile}][{tile} + 1];
  for (int i = threadIdx.x; i < n; i += {block}) p[i] = tile[0][0];
}}
"""
NAMED = "#define TILE_M {tile}\n#define THREADS {block}\n__global__ void k(float *p) {{ __shared__ float tile[TILE_M][TILE_M]; }}\n"
HOST = "int main() {{ {sizes} k<<<n / {block}, {block}>>>(nullptr, n); }}\n"
SHAPES = [(16, 256), (128, 128), (32, 1024), (256, 512)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", [KERNEL, NAMED])
def test_constants_of_the_code_are_found(kernel: str, shape: tuple[int, int]) -> None:
    tile, block = shape
    text = kernel.format(tile=tile, block=block)
    assert (constants.tile(text), constants.block(text)) == (tile, max(tile, block))
    module = f'source = """{text}"""\nbatch_size = 1024\nload_inline("k", "", source)\n'
    assert (constants.tile(module), constants.block(module)) == (tile, max(tile, block))


def test_bounds_grids_and_sizes_of_arrays_are_no_constants_of_the_code() -> None:
    kernel = "__global__ void __launch_bounds__(512) k(float *p) { p[0] = 0.64f; }\n"
    text = kernel + "int main() { int n = 1024, numBlocks = 256; dim3 grid(128); }\n"
    assert (constants.tile(text), constants.block(text)) == (0, 0)


def _sizes_of(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"\b(?:n|m|k|width|seq_len) = (\d+)", text.partition("int main")[2])]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("kernel", [KERNEL, NAMED])
def test_sizes_of_a_program_stay_above(kernel: str, count: int, shape: tuple[int, int]) -> None:
    tile, block = shape
    declared = " ".join(f"int {name} = 8192;" for name in ("n", "m", "k")[:count]) + " int seq_len = 4096;"
    text = kernel.format(tile=tile, block=block) + HOST.format(sizes=declared, block=block)
    found = _sizes_of(sizes.shrunk_text(text))
    assert len(found) == count + 1
    assert max(found) < 8192
    assert min(found) >= tile
    if count == 1:  # with the sequence there are two
        assert found[0] >= block
    given = tuple(map(int, sizes.smaller_arguments([(f"size{each}", "8192") for each in range(count)], text)))
    assert min(given) >= (block if count <= 2 else tile)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("names", [("dim",), ("M", "N", "K"), ("seq_len", "dim")])
def test_sizes_of_a_module_stay_above(names: tuple[str, ...], shape: tuple[int, int]) -> None:
    tile, block = shape
    text = f'source = """{KERNEL.format(tile=tile, block=block)}"""'
    given = dict.fromkeys(names, 16384) | {"batch_size": 64}
    made = sizes.smaller_constants(given, text)
    found = [made[name] for name in names]
    assert all(tile <= each < 16384 for each in found)
    assert len(found) > 1 or found[0] >= block
    assert made["batch_size"] == sizes.FEWEST_BATCHES
    assert sizes.smaller_constants(given, text, inner=False) == given | {"batch_size": sizes.FEWEST_BATCHES}
