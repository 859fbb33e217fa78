"""A backend (`cuda`, `virtual`) is one device in one context. Errors of kernels may surface in `synchronize`. Not handled: memory pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from consan._errors import ConsanError
from consan.dataclass import dataclass
from consan.tensormap.description import TensorMapInfo
from consan.textures.description import TextureInfo, TextureMemory

if TYPE_CHECKING:
    from consan.backends.cpu import LaunchStats

Dim3 = tuple[int, int, int]
HostBytes = npt.NDArray[np.uint8]
Handle = Any  # a loaded module: what `load` gave
DEFAULT_STREAMS: Final = (0, 1)  # handles of the legacy default stream
THREAD_STREAM: Final = 2  # the handle of a thread's own default stream


class DeviceLost(ConsanError):  # noqa: N818 - CUDA's own word for it; it is a state of the device
    """The kernel broke the device's context (illegal address, trap, ...). Nothing more runs; host-mapped memory stays readable."""

    def __init__(self, message: str, *, code: int, name: str) -> None:
        super().__init__(message)
        self.code = code
        self.name = name


@dataclass(frozen=True)
class EntryResources:
    """Resources of one entry of a loaded module, as the device reports them. Zero if the backend does not count them."""

    registers: int = 0
    static_shared: int = 0


@dataclass(frozen=True)
class LaunchWork:
    """The work of consan's own around a launch: memory is set before it, and behind it a kernel of the module `handle` is launched."""

    clears: Sequence[tuple[int, int]]  # addresses and bytes that are set to zero
    copies: Sequence[tuple[int, HostBytes]]  # bytes of the host, which stay there
    begun: Any  # the marks right before the launch and behind all
    ended: Any
    handle: Handle
    entry: str
    ctas: int
    threads: int
    numbers: Sequence[int]  # the parameters of the kernel; each launch has another last one


class Around(Protocol):
    """Work before and behind the kernel of a launch that repeats. Raises `DeviceLost` after a fatal error."""

    def before(self, stream: int, *, copies: bool) -> bool:
        """Put the first part into a stream. False: it is captured, or another context is current; nothing was done."""

    def behind(self, stream: int, number: int) -> None:
        """Put the rest there. `number`: the last parameter of the kernel."""

    @property
    def address(self) -> int:
        """The address of what C knows of it."""

    def check(self, status: int) -> None:
        """Raise what the driver has said to C; nothing if it is 0 or less."""


class StreamWork(Protocol):
    """Work of consan's own in the streams of the program. It runs in the order of its stream, and the caller does not wait for it."""

    @property
    def vanishes(self) -> bool:
        """Whether the program, and the memory of the device with it, may end before consan does."""

    def entered(self) -> AbstractContextManager[None]:
        """Inside the block the calling thread may add work."""

    def clear(self, address: int, nbytes: int, stream: int) -> None:
        """Set bytes of the device to zero."""

    def copy(self, address: int, data: HostBytes, stream: int) -> None:
        """Copy bytes of a ring of the host to the device. They must stay as they are until then."""

    def launch(self, handle: Handle, entry: str, ctas: int, threads: int, numbers: Sequence[int], stream: int) -> None:
        """Launch a kernel whose parameters have at most 64 bits each."""

    def launch_aside(self, handle: Handle, entry: str, ctas: int, threads: int, numbers: Sequence[int], stream: int) -> None:
        """The same into a captured stream, for which nothing that is captured later need wait."""

    def run(self, handle: Handle, entry: str, ctas: int, threads: int, numbers: Sequence[int]) -> None:
        """Launch a kernel on a stream that waits for no other, and wait for it."""

    def new_mark(self) -> Any:
        """A mark that is nowhere yet."""

    def mark(self, mark: Any, stream: int) -> None:
        """Put a mark behind the work of a stream so far."""

    def after(self, mark: Any, stream: int) -> None:
        """Let the later work of a stream wait for a mark."""

    def passed(self, mark: Any) -> bool:
        """Whether the device has come to a mark. Raises `DeviceLost` after a fatal error."""

    def next_number(self) -> int:
        """A number that no launch of the process has had; more than those before."""

    @property
    def here(self) -> int:
        """The address of an `Around` that names the backend's context, and no work: for launches that C makes."""

    def around(self, work: LaunchWork) -> Around | None:
        """Prepare the work around launches. None: it is not possible here."""


class FollowedLaunch(NamedTuple):
    """How a launch is noted as the callback would do it: the filter's address, the context whose calls are noted, and the call's number;
    or, while none are noted, all ones, and how many calls the listener has got at once: it holds until there is one more."""

    filter: int
    context: int
    call: int


class CallSource(Protocol):
    """The program's calls of the CUDA driver, and what the driver knows of the handles and addresses in them."""

    @property
    def memory(self) -> Any:
        """The memory that the process shares with others, as far as its calls are seen: consan.backends.contexts.ProcessMemory."""

    def follow(self, listener: Any, matters: Callable[[str], bool], layouts: Mapping[str, str]) -> str:
        """Call a listener behind each call whose name matters. Returns why it is not called; empty if it is.

        `layouts`: the parameters of calls, in the characters of `struct`, by name; O: where the call has written a handle, which is
        the value; C: a `CUlaunchConfig`, whose stream is the value; S: the stream.
        """

    @property
    def reads_attributes(self) -> bool:
        """Whether a call says if its launch is a programmatic dependent one."""

    @property
    def serves_alone(self) -> bool:
        """Nobody else listens: launches that the listener does not need (`driver.QUIET`) are dropped, and those of graphs counted."""

    def count_kernel(self, handle: int) -> bool:
        """Count launches of a kernel from now on, by whoever is no framework (`driver.MADE`); or of an executable graph. False: no room."""

    def taken_count(self, handle: int) -> int:
        """The launches since this was called last."""

    def pass_over(self, stream: int, context: int, graph: int = 0) -> None:
        """The listener needs no launches of kernels, or of this graph, into a stream, up to the next other call. It may get them."""

    def tell_all(self) -> None:
        """The listener needs each call again."""

    @property
    def notes(self) -> bool:
        """Whether calls are noted."""

    def followed_launch(self) -> FollowedLaunch | None:
        """How C notes a launch into the one default stream. None: there are others, or somebody else listens."""

    def note(self, context: int | None, streams: Sequence[int] | None = None) -> None:
        """The listener does not need calls of this context at once. None: it does, as at first, and where others listen, too.

        They are calls for the legacy default stream, which has no other beside it; or, with the handles of `streams`, also calls for these,
        but for copies and memsets. It gets them (`noted`) before the next other call; of launches it gets kernel and stream.
        """

    def ends_order(self) -> None:
        """The listener needs no calls any more that only order streams: calls that free or allocate, and rare ones, come to it."""

    def name_kernel(self, handle: int) -> None:
        """The listener knows the name of a kernel, and does not ask for it when it gets a launch."""

    def read_noted(self) -> None:
        """The listener needs the calls that are noted now."""

    def blocks(self, stream: int) -> bool:
        """Whether a stream and the legacy default stream wait for each other."""

    def is_captured(self, stream: int) -> bool:
        """Whether a stream is being captured that is no default stream."""

    def is_registered(self, address: int) -> bool:
        """Whether the driver knows the memory at an address: it is no pageable memory of the host."""

    def kernel(self, function: int) -> str:
        """The name of a kernel; empty where the driver does not give it."""


class Contexts(Protocol):
    """The other contexts and devices of the process."""

    own: int  # the handle of the backend's context
    device: int  # the number of its GPU
    several: bool  # the process has used another context
    refusal: str  # why launches in this one cannot be checked
    opens: Callable[[int], Backend] | None  # opens the backend of another one; None: that of the calling thread's process

    @property
    def alone(self) -> bool:
        """Whether the process sees one GPU, and so no memory of another one."""

    def other(self) -> int:
        """The context in which a launch is made, if it is another one than the backend's; else 0."""

    def holder(self, address: int) -> str:
        """Another device that holds the memory at an address, or may use it; empty: there is none, or it is no address."""


@runtime_checkable
class Backend(Protocol):
    """A device that runs PTX."""

    @property
    def device_name(self) -> str:
        """Name for reports, e.g. "NVIDIA H200" or "cpu"."""

    @property
    def choice(self) -> str:
        """The value of `--device` that selects it: "gpu" or "cpu"."""

    @property
    def simulates(self) -> bool:
        """Whether it stands in for a GPU: times mean nothing."""

    @property
    def assembles(self) -> bool:
        """Whether it loads machine code, and so takes instrumented modules as cubins."""

    @property
    def seeded(self) -> bool:
        """Whether the seed of a launch decides its schedule. If not, seeded delays in the kernel vary it."""

    @property
    def survives_fork(self) -> bool:
        """Whether a forked child can go on using it."""

    @property
    def modules_kept(self) -> int | None:
        """How many modules to keep loaded beyond those in use; None: all."""

    @property
    def arch(self) -> str:
        """Architecture to compile for, e.g. "sm_90a"."""

    @property
    def sm_count(self) -> int:
        """Number of multiprocessors."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of device memory."""

    def free_bytes(self) -> int:
        """Memory that is free now."""

    @property
    def allocates_zeros(self) -> bool:
        """Whether `alloc` gives zeroed memory."""

    @property
    def ordered_streams(self) -> tuple[int, ...]:
        """Streams whose later work comes behind what `write` and `fill` do, without a wait."""

    @property
    def work(self) -> StreamWork | None:
        """Work in the program's streams. None: the host waits for each recorded launch."""

    @property
    def calls(self) -> CallSource | None:
        """The program's calls of the driver. None: they are not seen here."""

    @property
    def contexts(self) -> Contexts | None:
        """The other contexts of the process. None: there are none."""

    def poke(self, address: int, data: bytes) -> None:
        """Write while kernels run or hang."""

    def peek(self, address: int, nbytes: int) -> bytes:
        """Read while kernels run or hang."""

    def alloc(self, nbytes: int) -> int:
        """Allocate device memory, 256-byte aligned."""

    def alloc_separate(self, nbytes: int) -> int:
        """The same for consan's own memory, far from the kernels' buffers if the backend can choose."""

    def free(self, address: int) -> None:
        """Free what `alloc` gave."""

    def allocation(self, address: int) -> tuple[int, int] | None:
        """Begin and bytes of the allocation that an address lies in; None: it is in none."""

    def write(self, address: int, data: bytes | npt.NDArray[Any]) -> None:
        """Copy host bytes to the device. Complete on return."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy device bytes to the host, after all earlier work."""

    def read_into(self, target: npt.NDArray[Any], address: int, *, running: bool) -> None:
        """The same into an array. `running`: as `peek`."""

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set every byte of a range."""

    def tensor_map(self, info: TensorMapInfo) -> bytes:
        """The 128 bytes of a tensor map for this device."""

    def make_texture(self, info: TextureInfo) -> int:
        """The handle of a new texture object."""

    def free_texture(self, handle: int) -> None:
        """Free what `make_texture` gave."""

    def texture_memory(self, handle: int) -> TextureMemory | None:
        """The bytes of a texture object that have addresses; None: it is not known."""

    def load(self, ptx: str, *, name: str = "<ptx>") -> Handle:
        """Load a module."""

    def load_cubin(self, cubin: bytes) -> Handle:
        """Load machine code, where the backend `assembles`."""

    def unload(self, handle: Handle, /) -> None:
        """Free a module. It must not be used any more."""

    def resources(self, handle: Handle, entry: str) -> EntryResources:
        """Resources of a loaded entry."""

    def resident_ctas(self, handle: Handle, entry: str, threads: int, shared: int = 0) -> int | None:
        """CTAs of an entry that fit on the device at once; None: any number."""

    def shared_offsets(self, handle: Handle, entry: str) -> dict[str, int] | None:
        """Offsets of an entry's shared variables, by symbol; None: the assembler has chosen them and does not name them."""

    def symbol(self, handle: Handle, name: str) -> tuple[int, int]:
        """Address and size of a module's global variable."""

    def launch(
        self,
        handle: Handle,
        entry: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[bytes],
        *,
        shared: int = 0,
        cluster: Dim3 = (1, 1, 1),
        cooperative: bool = False,
        seed: int = 0,
        timeout: float | None = None,
        stream: int | None = None,
    ) -> LaunchStats | None:
        """Start a launch. `args` are the bytes of each parameter. The result is how it ended, if it has ended on return."""

    def synchronize(self, timeout: float | None = None) -> bool:
        """Wait for all work. False if it still runs after `timeout` seconds. Raises `DeviceLost` after a fatal kernel error."""

    def ends(self, timeout: float | None, longest: float) -> bool:
        """The same for work of all streams, also of those that nobody has named. `longest`: where there is no `timeout`."""

    def host_ring(self, nbytes: int) -> tuple[int, HostBytes]:
        """Zeroed memory shared by host and device: its device address, and a view that outlives the context."""

    def free_ring(self, address: int) -> None:
        """Free what `host_ring` gave."""

    def watch(self, stream: int) -> None:
        """Make `synchronize` also wait for the work queued so far on a stream that another owner uses."""

    def capturing(self, stream: int | None) -> bool:
        """Whether launches on a stream become nodes of a graph."""

    def outside_captures(self) -> AbstractContextManager[None]:
        """Inside the block this thread may allocate and load modules while a stream is captured."""

    def on_ctas(self, tell: Callable[[int, int], None]) -> None:
        """Call it with the CTAs done and the CTAs of the launch, as far as the backend knows."""

    def restart(self) -> None:
        """Number launches from one again, as far as the backend numbers them."""

    def renew(self) -> None:
        """Forget what earlier launches left, where the backend is `seeded`: the next launch runs as a first one."""
