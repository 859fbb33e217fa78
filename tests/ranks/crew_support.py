"""The ranks of a program in one process, and kernels as Triton's adapter gets them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import consan
from consan import adapters
from consan._errors import UsageError
from consan.adapters.triton.launcher import Code, Launcher
from consan.ranks.crew import Crew, begin
from consan.session.planning.options import SessionOptions
from consan.session.session import Session


@contextmanager
def crew_of(count: int, **options: Any) -> Iterator[tuple[Crew, Session]]:
    """A crew, and a session whose adapters serve it. Without torch, consan's replacement."""
    crew, session = Crew(count), Session(SessionOptions.of({"device": "cpu", **options}))
    end = begin(crew)
    adapters.install(session)
    try:
        yield crew, session
    finally:
        adapters.remove()
        end()


# All ranks wait for each other, by words of the scope SCOPE.
MEET = """
typedef unsigned u32;
typedef unsigned long long u64;
__device__ void meet(u64 *signals, u32 value) {
    __syncthreads();
    if (threadIdx.x < WORLD) {
        u32 *there = (u32 *)signals[threadIdx.x] + RANK, *here = (u32 *)signals[RANK] + threadIdx.x, seen;
        asm volatile("st.release.SCOPE.global.u32 [%0], %1;" ::"l"(there), "r"(value) : "memory");
        do asm volatile("ld.acquire.SCOPE.global.u32 %0, [%1];" : "=r"(seen) : "l"(here) : "memory");
        while (seen < value);
    }
    __syncthreads();
}
"""


def run(crew: Crew, body: Callable[[], Any]) -> list[Any]:
    """The result of each rank, or the error that has ended it."""
    found: list[Any] = [None] * crew.count

    def one(rank: int) -> int:
        try:
            found[rank] = body()
        except UsageError as error:
            found[rank] = error
        return 0

    before = sys.modules["__main__"]
    try:
        crew.run(one, [ModuleType("__main__") for _ in range(crew.count)])
    finally:
        sys.modules["__main__"] = before
    return found


@dataclass(frozen=True)
class Compiled:
    """A kernel as Triton's adapter gets it, for one rank: each call is a launch in the current stream."""

    session: Session
    defines: Mapping[str, int]
    source: str
    dependent: bool = False  # a programmatic dependent launch

    def __call__(self, *args: Any) -> None:
        kernel = consan.Kernel(self.source, "one_shot", defines=dict(self.defines))
        types = {"mine": "*fp32", "values": "*fp32", "buffers": "u64", "signals": "u64"}
        source = SimpleNamespace(signature=types, fn=SimpleNamespace(arg_names=list(types)))
        metadata = SimpleNamespace(name="one_shot", num_warps=1, num_ctas=1, shared=0, global_scratch_size=0, global_scratch_align=1)
        metadata.launch_pdl = self.dependent
        launcher = Launcher(SimpleNamespace(session=self.session), source, metadata)
        launcher(1, 1, 1, self.session.streams.current().handle, Code("one_shot", kernel.ptx), None, metadata, None, None, *args)
