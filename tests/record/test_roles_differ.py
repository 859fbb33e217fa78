"""One of many CTAs differs, in a leaf of one role alone: that is found, and where what the role stores is not hashed, it is lost.

Leaves that are hashed make the odd CTA a history of its own; what the others have is looked at in each CTA of a history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from record_support import KERNELS

import consan
from consan.instrument.effects.model import Role
from consan.instrument.record.families import tensors
from consan.instrument.record.text import operand_words, text
from consan.instrument.record.text.words import Words

CTAS, THREADS, ODD = 12, 64, 7
SOURCE = """#include "blackwell.cuh"
INLINE void bar_arrive(u32 id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
INLINE void bar_sync(u32 id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
extern "C" __global__ void ENTRY(const __grid_constant__ TensorMap half, const __grid_constant__ TensorMap whole, int* out, int odd) {
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(128) f16 a[128 * 16], b[64 * 16], c[64 * 16];
    __shared__ u32 base;
    __shared__ u64 full;
    u32 t = threadIdx.x;
    bool mine = blockIdx.x == odd;
    int sum = 0, *rest = out + gridDim.x * blockDim.x;
    BODY
    out[blockIdx.x * blockDim.x + t] = sum;
}
"""


class Odd(NamedTuple):
    """The kernel's body, and what is found in the odd CTA. `others`: CTAs that are part of it."""

    body: str
    kind: str
    others: tuple[int, ...] = ()


ROLES = {
    Role.PLACE: Odd("tile[t] = t; sum = tile[mine ? t ^ 32 : t];", "data-race"),
    Role.NUMBER: Odd(
        """if (t >= 32) { tile[t] = 1; bar_arrive(1); tile[t + 32] = 1; bar_arrive(2); }
        else { u32 id = mine ? 1 : 2; bar_sync(id); sum = tile[t + 64]; bar_sync(3 - id); }""",
        "data-race",
    ),
    Role.MAP: Odd(
        """for (u32 k = t; k < 256; k += THREADS) tile[k] = k;
        if (t == 0) init(full, 1);
        fence_async_shared();
        __syncthreads();
        if (t == 0) expect(full, 1536), tensor_load(tile, mine ? whole : half, 0, 0, full), tensor_load(a, mine ? half : whole, 0, 0, full);
        __syncthreads();
        sum = tile[128 + t];
        wait(full, 0);""",
        "missing-wait",
    ),
    Role.WORDS: Odd(
        """f16* operand = mine ? c : b;
        for (u32 k = t; k < 64 * 16; k += THREADS) a[k] = a[k + 1024] = b[k] = c[k] = 0;
        if (t == 0) init(full, 1);
        if (t < 32) alloc(base, COLUMNS);
        fence_async_shared();
        __syncthreads();
        if (t == 0) { multiply(base, a, operand, 0); commit_to(full); c[0] = 1; }
        wait(full, 0);
        __syncthreads();
        if (t < 32) dealloc(base, COLUMNS);""",
        "missing-wait",
    ),
    Role.WIDE: Odd("sum = out[(mine ? blockIdx.x - 1 : blockIdx.x) * THREADS + t];", "global-race", (ODD - 1,)),
    Role.DIGEST: Odd("tile[5] = mine ? t : odd; __syncthreads(); sum = tile[5];", "data-race"),
    Role.LOOSE: Odd("if (t == 0) *rest = mine ? 2 : 1;", "global-race", tuple(range(CTAS))),
    Role.ACCESS: Odd(
        """int* count = rest + THREADS;
        if (t == 0) { rest[blockIdx.x] = 1; __threadfence(); atomicAdd(count + mine, 1); }
        if (blockIdx.x == 0) {
            if (t == 0) { while (*(volatile int*)count < gridDim.x - (odd >= 0)) {} __threadfence(); }
            __syncthreads();
            if (t < gridDim.x) sum = rest[t];
        }""",
        "global-race",
        (0,),
    ),
}
# What stores the roles whose leaves are hashed.
HASHED: dict[Role, tuple[Any, str]] = {
    Role.PLACE: (Words, "address"),
    Role.NUMBER: (Words, "number_word"),
    Role.MAP: (tensors, "_add_words"),
    Role.WORDS: (operand_words, "stored"),
}


def _report(role: Role, odd: int, entry: str = "kernel") -> Any:
    body = ROLES[role].body.replace("THREADS", str(THREADS))
    kernel = consan.Kernel(SOURCE.replace("BODY", body).replace("ENTRY", entry), entry, arch="sm_100a", include_dirs=[str(KERNELS)])
    maps = [consan.TensorMap(np.zeros((8, 32), np.float32), box=(rows, 32)) for rows in (4, 8)]
    args = [*maps, np.zeros(CTAS * THREADS + 2 * THREADS, np.int32), np.int32(odd)]
    where = "off" if role in HASHED else "on"
    return consan.launch(kernel, CTAS, THREADS, args, device="cpu", engine="record", global_memory=where)


def _errors(report: Any) -> list[Any]:
    return [each for each in report.findings if each.severity == "error"]


def test_there_is_one_for_each_role() -> None:
    assert set(ROLES) == set(Role)


@pytest.mark.parametrize("role", ROLES)
def test_what_is_odd_is_found(role: Role) -> None:
    odd, report = ROLES[role], _report(role, ODD)
    errors = _errors(report)
    assert {each.kind for each in errors} == {odd.kind}
    assert {access.block[0] for each in errors for access in each.pair} <= {ODD, *odd.others}
    assert (report.kernels[0].histories == 2) >= (role in HASHED)
    assert not _errors(_report(role, -1))


@pytest.mark.parametrize("role", HASHED)
def test_a_wrong_role_loses_it(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name = HASHED[role]
    monkeypatch.setattr(owner, name, _loose(getattr(owner, name)))
    report = _report(role, ODD, f"loose_{role.name.lower()}")  # modules are kept by their text
    assert (report.kernels[0].histories, report.verdict) == (1, "clean")


def _loose(store: Callable[..., Any]) -> Callable[..., Any]:
    """What it stores is not hashed."""

    def stored(*args: Any, **how: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text, "hash_word", lambda value: "")
            return store(*args, **how)

    return stored
