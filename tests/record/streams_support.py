"""A device with streams, whose work begins only when somebody lets it, or waits for it. The virtual machine stands in for a GPU.

A stream does its work in its order. `advance` lets one go on, and `synchronize` all. Who asks again whether a mark has passed waits for it:
then all go on.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from leaving_support import Background

from consan.backends.base import DeviceLost, LaunchWork
from consan.backends.virtual import VirtualBackend

# A kernel whose loop has no event: only `rounds` says how long it runs.
LOOPS = """
extern "C" __global__ void waits(unsigned* out, int rounds) {
    __shared__ unsigned values[96];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (int i = 0; i < rounds; ++i) asm volatile("add.s32 %0, %0, 0;" : "+r"(i));
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[95 - threadIdx.x];
}
"""
_PATIENCE = 3  # questions about one mark, before its stream goes on


class Mark:
    """A mark of a stream."""

    def __init__(self) -> None:
        self.passed, self.stream, self.asked = True, 0, 0


class Streams(Background):
    """The device."""

    def __init__(self) -> None:
        super().__init__()
        self.work: Any = StreamsWork(self)
        self.queues: dict[int, deque[Callable[[], bool]]] = defaultdict(deque)
        self.working = threading.RLock()
        self.fails_at = -1  # the number of the program's launch that ends with a fault
        self.made = 0  # the program's launches
        self.lost = False
        self.hung: int | None = None  # the number of the launch that runs until it is told to leave
        self.told = False
        self.done: list[str] = []  # in the order in which the device has done it
        self.captured: dict[int, list[Callable[[], bool]]] = {}  # what is put into streams that are captured

    def check(self) -> None:
        if self.lost:
            raise DeviceLost("an illegal memory access", code=700, name="CUDA_ERROR_ILLEGAL_ADDRESS")

    def add(self, stream: int, step: Callable[[], bool]) -> None:
        """Add work to a stream. It returns whether it is over."""
        self.check()
        self.captured.get(stream, self.queues[stream]).append(step)

    def capturing(self, stream: int | None) -> bool:
        """Whether a stream is captured."""
        return stream in self.captured

    def replay(self, graph: list[Callable[[], bool]], stream: int) -> None:
        """Launch a graph: `captured.pop(stream)` of a capture."""
        for step in graph:
            self.add(stream, step)

    def advance(self, stream: int, steps: int = -1) -> None:
        """Let a stream go on, by so many pieces of work at most."""
        with self.working:
            while self.queues[stream] and steps and not self.lost and self.queues[stream][0]():
                self.queues[stream].popleft()
                steps -= 1

    def launch(self, *args: Any, stream: int | None = None, **options: Any) -> None:  # type: ignore[override]
        """A launch of the program."""
        number, self.made = self.made, self.made + 1

        def run() -> bool:
            if number == self.hung and not self.told:
                return False
            if number == self.fails_at:
                self.lost = True
                return False
            VirtualBackend.launch(self, *args, **(options | {"timeout": None}))
            self.done.append(f"launch {number}")
            return True

        self.add(stream or 0, run)

    def poke(self, address: int, data: bytes) -> None:
        """Memory is written to at once; threads that hang look at it."""
        VirtualBackend.poke(self, address, data)
        self.told = True

    def peek(self, address: int, nbytes: int) -> bytes:
        """Memory is read as it is."""
        self.check()
        return VirtualBackend.peek(self, address, nbytes)

    def synchronize(self, timeout: float | None = None) -> bool:
        """Let all streams go on."""
        self.check()
        for stream in list(self.queues):
            self.advance(stream)
        self.check()
        return not any(self.queues.values())


class StreamsWork:
    """Work of consan's own (`StreamWork`)."""

    vanishes = False
    here = 0

    def __init__(self, backend: Streams) -> None:
        self._backend = backend
        self.next_number = itertools.count(1).__next__

    def entered(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def clear(self, address: int, nbytes: int, stream: int) -> None:
        self._backend.add(stream, lambda: self._did(self._backend.fill, address, 0, nbytes))

    def copy(self, address: int, data: Any, stream: int) -> None:
        self._backend.add(stream, lambda: self._did(self._backend.write, address, data.tobytes()))

    def launch(self, handle: Any, entry: str, ctas: int, threads: int, numbers: Sequence[int], stream: int) -> None:
        args = [number.to_bytes(8, "little") for number in numbers]
        run = VirtualBackend.launch
        self._backend.add(stream, lambda: self._did(run, self._backend, handle, entry, (ctas, 1, 1), (threads, 1, 1), args))

    launch_aside = launch

    def run(self, handle: Any, entry: str, ctas: int, threads: int, numbers: Sequence[int]) -> None:
        args = [number.to_bytes(parameter.nbytes, "little") for number, parameter in zip(numbers, handle.entry(entry).params, strict=True)]
        VirtualBackend.launch(self._backend, handle, entry, (ctas, 1, 1), (threads, 1, 1), args)

    def new_mark(self) -> Mark:
        return Mark()

    def mark(self, mark: Mark, stream: int) -> None:
        mark.passed, mark.stream, mark.asked = False, stream, 0
        self._backend.add(stream, lambda: self._did(setattr, mark, "passed", True))

    def after(self, mark: Mark, stream: int) -> None:
        self._backend.add(stream, lambda: mark.passed)

    def passed(self, mark: Mark) -> bool:
        """The device works while the host waits."""
        self._backend.check()
        mark.asked += 1
        if not mark.passed and mark.asked > _PATIENCE:
            for stream in list(self._backend.queues):
                self._backend.advance(stream)
            self._backend.check()
        return mark.passed

    def around(self, work: LaunchWork) -> StreamsAround:
        return StreamsAround(self, self._backend, work)

    @staticmethod
    def _did(step: Callable[..., Any], *args: Any) -> bool:
        step(*args)
        return True


class StreamsAround:
    """The work around launches that repeat (`Around`)."""

    def __init__(self, work: StreamsWork, backend: Streams, given: LaunchWork) -> None:
        self._work, self._backend, self._given = work, backend, given

    def before(self, stream: int, *, copies: bool) -> bool:
        if self._backend.capturing(stream):
            return False
        for address, nbytes in self._given.clears:
            self._work.clear(address, nbytes, stream)
        for address, data in self._given.copies if copies else ():
            self._work.copy(address, data, stream)
        self._work.mark(self._given.begun, stream)
        return True

    def behind(self, stream: int, number: int) -> None:
        given = self._given
        self._work.launch(given.handle, given.entry, given.ctas, given.threads, (*given.numbers[:-1], number), stream)
        self._work.mark(given.ended, stream)
