"""Which parameters decide what a proof of no race does not speak of: barriers, and what is written in shared memory."""

from __future__ import annotations

import functools

import pytest
from planted import plant

from consan.instrument.ptx import Module, parse
from consan.launching.source import compile_for
from consan.prove.launched import repeats
from consan.prove.launched.repeats import deciding_parameters

HEAD = 'extern "C" __global__ void {}(int *out, const int *in, int n, int m) {{ __shared__ int tile[64]; int t = threadIdx.x; {} }}'
STEPS = "tile[t] = m; __syncthreads(); out[t] = tile[63 - t];"
MORE_THAN_PARAMETERS = None
CASES = {
    "nothing": (STEPS, ()),
    "global memory alone": ("if (in[t] < n) out[in[t]] = m;", ()),
    "values that are stored": ("tile[t] = in[t] + n;" + STEPS, ()),
    "places that data choose to read": ("tile[t] = t; __syncthreads(); out[t] = tile[in[t] & 63];", ()),
    "places that data choose to write": ("tile[in[t] & 63] = t; __syncthreads(); out[t] = tile[t];", MORE_THAN_PARAMETERS),
    "a condition of a barrier": ("if (t < n) __syncthreads(); out[t] = m;", (2,)),
    "a barrier where data say so": ("if (in[t]) __syncthreads(); out[t] = m;", MORE_THAN_PARAMETERS),
    "a condition of a store": ("if (t < m) tile[t] = n; __syncthreads(); out[t] = tile[t];", (3,)),
    "a place that a parameter gives": ("tile[(t + m) & 63] = n; __syncthreads(); out[t] = tile[t];", (3,)),
    "threads that leave": ("if (t >= n) return;" + STEPS, (2,)),
    "threads that data let leave": ("if (in[t] > n) return;" + STEPS, MORE_THAN_PARAMETERS),
    "rounds": ("for (int i = 0; i < n; i++) {" + STEPS + "__syncthreads(); }", (2,)),
    "rounds that data end": ("for (int i = 0; in[i] < 9; i++) {" + STEPS + "__syncthreads(); }", MORE_THAN_PARAMETERS),
    "a number that rounds over data count": (
        "int k = 0; for (; in[k] > k; k++) out[t + k] = 0; if (t < k) __syncthreads();",
        MORE_THAN_PARAMETERS,
    ),
    "a number that rounds count": ("int k = 1; while (k * k < n) { k = k + k % 7 + 1; } if (t < k) __syncthreads(); out[t] = m;", (2,)),
    "what another lane has": ("if (__shfl_sync(~0u, t * n, 0)) __syncthreads(); out[t] = m;", MORE_THAN_PARAMETERS),
    "lanes that exchange": ("if (t < n) out[t] = __shfl_xor_sync(~0u, m, 1);", (2,)),
    "a barrier below two conditions": ("if (t < m) { out[t] = n; if (t > 9) __syncthreads(); }", (3,)),
    "a clock": ("if (clock() & 1) __syncthreads(); out[t] = m;", MORE_THAN_PARAMETERS),
}


FAULTS = {
    "branches": ("yield from keys_read(self._graph.nodes[branch].steps[-1].instruction)", "pass", "a condition of a barrier"),
    "branches of what is read": (
        "[*keys_read(instruction), *self._reaching(instruction)]", "[*keys_read(instruction)]", "a number that rounds over data count",
    ),
    "places of stores": ("if row.is_load and row.is_ordinary else", "if row.is_ordinary else", "places that data choose to write"),
    "shared memory": ("return not row.is_ordinary or ", "return not row.is_ordinary and ", "a condition of a store"),
    "other lanes": ("not (row.is_arithmetic or row.is_of_addresses) or ", "row.is_load or ", "what another lane has"),
    "special registers": ("or not all(map(_is_of_the_launch, _specials(each)))", "", "a clock"),
}  # fmt: skip


@functools.cache
def kernels() -> Module:
    text = "\n".join(HEAD.format(f"k{number}", body) for number, (body, _) in enumerate(CASES.values()))
    return parse(compile_for(text, None, arch="sm_90a", name="k.cu")[0].ptx)


def deciding(case: str) -> tuple[int, ...] | None:
    number = list(CASES).index(case)
    return deciding_parameters(next(each for each in kernels().functions if each.name == f"k{number}"))


@pytest.mark.parametrize("case", CASES)
def test_what_decides(case: str) -> None:
    assert deciding(case) == CASES[case][1]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, case = FAULTS[fault]
    plant(monkeypatch, repeats, old, new)
    assert deciding(case) != CASES[case][1]
