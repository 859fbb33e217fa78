"""Calls of the CUDA runtime that consan's libcudart.so hands over (source/cudart.c), under their names with an underscore in front.

A call that the driver has under another name is that call: the numbers of attributes and the layouts of a launch are the same. Kernels
and variables are named by addresses of the program, which its start-up code registers; a module is loaded at its first use.

Not handled: IPC.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from consan.libcuda import (  # some fill the table of calls alone
    calls,
    device_calls,
    host_calls,  # noqa: F401
    launch_calls,
    memory_calls,
    module_calls,
    runtime_calls,  # noqa: F401
    stream_calls,
)
from consan.libcuda.calls import CALLS, CallFailed, accepted, serves
from consan.libcuda.driver import HostSymbol, StandInDriver
from consan.libcuda.graphs import conditional_calls, graph_calls, graph_memory_calls, node_calls  # noqa: F401 - as above
from consan.libcuda.graphs.node_types import KERNEL, MEMCPY
from consan.libcuda.memory import allocation_calls, array_calls, virtual_calls  # noqa: F401 - it fills the table of calls
from consan.libcuda.memory.array_calls import DeviceArray
from consan.libcuda.module_calls import LoadedKernel

_INVALID_FUNCTION: Final = 98
_VERSION: Final = 13000
_UNREGISTERED, _DEVICE, _MANAGED = 0, 2, 3  # cudaMemoryType

_SAME: Final = {
    "cudaMallocAsync": "cuMemAllocAsync",
    "cudaFreeAsync": "cuMemFreeAsync",
    "cudaMallocPitch": "cuMemAllocPitch_v2",
    "cudaMallocManaged": "cuMemAllocManaged",
    **{f"cudaDevice{part}": f"cuDevice{part}" for part in ("GetGraphMemAttribute", "SetGraphMemAttribute", "GraphMemTrim")},
    "cudaMallocFromPoolAsync": "cuMemAllocFromPoolAsync",
    **{f"cudaDevice{part}MemPool": f"cuDevice{part}MemPool" for part in ("GetDefault", "Get", "Set")},
    **{f"cudaMemPool{part}": f"cuMemPool{part}" for part in ("Create", "Destroy", "SetAttribute", "GetAttribute", "TrimTo", "SetAccess")},
    "cudaMemGetInfo": "cuMemGetInfo_v2",
    "cudaMemset": "cuMemsetD8_v2",
    "cudaMemsetAsync": "cuMemsetD8Async",
    "cudaMemset2D": "cuMemsetD2D8_v2",
    "cudaMemset2DAsync": "cuMemsetD2D8Async",
    "cudaDriverGetVersion": "cuDriverGetVersion",
    "cudaThreadSynchronize": "cuCtxSynchronize",
    "cudaDeviceGetStreamPriorityRange": "cuCtxGetStreamPriorityRange",
    **{f"cudaStream{part}": f"cuStream{part}" for part in ("Query", "WaitEvent", "GetFlags", "GetPriority", "IsCapturing")},
    "cudaStreamDestroy": "cuStreamDestroy_v2",
    "cudaStreamBeginCapture": "cuStreamBeginCapture_v2",
    **{f"cudaStream{part}": f"cuStream{part}" for part in ("BeginCaptureToGraph", "EndCapture", "GetCaptureInfo_v2", "GetCaptureInfo_v3")},
    "cudaStreamGetCaptureInfo": "cuStreamGetCaptureInfo_v3",  # of programs that CUDA 13 has built; older ones name the version
    "cudaThreadExchangeStreamCaptureMode": "cuThreadExchangeStreamCaptureMode",
    **{f"cudaGraph{part}": f"cuGraph{part}" for part in ("Clone", "Create", "Destroy", "ExecDestroy", "Upload", "Launch", "GetNodes")},
    **{f"cudaGraphAdd{part}": f"cuGraphAdd{part}" for part in ("ChildGraphNode", "EmptyNode", "MemsetNode")},
    **{f"cudaGraphInstantiate{part}": f"cuGraphInstantiate{part}" for part in ("WithFlags", "WithParams")},
    "cudaLaunchHostFunc": "cuLaunchHostFunc",
    "cudaDeviceCanAccessPeer": "cuDeviceCanAccessPeer",
    **{
        f"cudaGraph{part}": f"cuGraph{part}"
        for part in ("AddHostNode", "HostNodeSetParams", "ExecHostNodeSetParams", "AddMemAllocNode", "AddMemFreeNode")
    },
    "cudaGraphInstantiate": "cuGraphInstantiateWithFlags",
    "cudaGraphExecUpdate": "cuGraphExecUpdate_v2",
    "cudaEventCreateWithFlags": "cuEventCreate",
    "cudaEventDestroy": "cuEventDestroy_v2",
    **{f"cudaEvent{part}": f"cuEvent{part}" for part in ("Record", "RecordWithFlags", "Synchronize", "Query", "ElapsedTime")},
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor": "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags": "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
}
CALLS.update({f"_{name}": CALLS[other] for name, other in _SAME.items()})
accepted("", "_cudaRegisterFatBinaryEnd", "_cudaUnregisterFatBinary", "_cudaDeviceReset", "_cudaProfilerStart")
accepted("", "_cudaProfilerStop", "_cudaDeviceSetLimit", "_cudaDeviceSetCacheConfig", "_cudaFuncSetCacheConfig", "_cudaSetDeviceFlags")
accepted("", "_cudaDeviceEnablePeerAccess", "_cudaDeviceDisablePeerAccess")
accepted("", "_cudaCtxResetPersistingL2Cache")
accepted("", "_cudaMemAdvise", "_cudaMemPrefetchAsync", "_cudaStreamAttachMemAsync")
_EDGE: Final = " (cudaStreamWaitEvent(second, event) behind cudaEventRecord(event, first))"
serves(">Q", "_cudaStreamCreate")(lambda driver: stream_calls.create(driver, 0, _EDGE))
serves(">Q I", "_cudaStreamCreateWithFlags", "_cudaStreamCreateWithPriority")(
    lambda driver, flags: stream_calls.create(driver, flags, _EDGE)
)
serves(">Q", "_cudaEventCreate")(lambda driver: stream_calls.event(driver, 0))
serves(">i", "_cudaRuntimeGetVersion")(lambda driver: _VERSION)

# -- what the start-up code of a program registers -----------------------------------------------------------------------------------


@serves(">Q Q", "_cudaRegisterFatBinary")
def _register(driver: StandInDriver, wrapper: int) -> int:
    return driver.made(_Image(wrapper))


_MIXED: Final = "a program that has managed variables, and other ones, uses them on two devices: that is not served without a GPU"


class _Image:
    """A fat binary of the program: the address of its wrapper, and the module of each device once it is loaded.

    `managed`: the names of variables that are not yet laid, by the addresses of the program's pointers to them.
    `has_managed`, `has_others`: it has such variables, which all devices have, or others, which each device has.
    """

    def __init__(self, wrapper: int) -> None:
        self.wrapper, self.modules, self.managed, self.has_managed = wrapper, dict[int, int](), dict[int, str](), False
        self.has_others = False


@serves("Q Q Q s", "_cudaRegisterVar")
def _register_variable(driver: StandInDriver, image: int, host: int, device: int, name: str) -> None:
    driver.of(image, _Image).has_others = True
    _symbol(driver, image, host, device, name)


@serves("Q Q Q s", "_cudaRegisterFunction")
def _symbol(driver: StandInDriver, image: int, host: int, device: int, name: str) -> None:
    driver.host.symbols[host] = HostSymbol(image, name)


@serves("Q Q Q s", "_cudaRegisterManagedVar")
def _managed(driver: StandInDriver, image: int, pointer: int, device: int, name: str) -> None:
    found = driver.of(image, _Image)
    found.managed[pointer], found.has_managed = name, True


@serves("Q", "_cudaInitModule")
def _initialise(driver: StandInDriver, image: int) -> None:
    """The managed variables of an image are laid where its module has them, and the program's pointers to them are set."""
    found = driver.of(image, _Image)
    module = _module(driver, found)
    places = {pointer: module_calls.variable(driver, module, name) for pointer, name in found.managed.items()}
    allocation_calls.manage(driver, list(places.values()))
    for pointer, (address, _) in places.items():
        driver.memory.write(pointer, struct.pack("<Q", address))
        driver.host.symbols[address] = HostSymbol(image, found.managed[pointer])
    found.managed.clear()


def _module(driver: StandInDriver, image: _Image) -> int:
    """The module of an image for the current device, which is loaded at its first use. Raises CallFailed."""
    device = 0 if image.has_managed else driver.device
    if device != driver.device and image.has_others:
        raise CallFailed(calls.NOT_SUPPORTED, _MIXED)
    if device not in image.modules:
        image.modules[device] = int(module_calls.load_data(driver, image.wrapper))
    return image.modules[device]


def _of_host(driver: StandInDriver, host: int, otherwise: int) -> tuple[int, str]:
    """The loaded module, and the name there, of what the program names by an address of its own. Raises CallFailed."""
    symbol = driver.host.symbols.get(host)
    if symbol is None:
        raise CallFailed(otherwise)
    return _module(driver, driver.of(symbol.image, _Image)), symbol.name


def kernel_of(driver: StandInDriver, function: int) -> int:
    """The handle of a kernel on the current device: given as such (cudaKernel_t), or as the address of its function on the host.

    Raises CallFailed.
    """
    address = driver.host.functions.get(function, function)
    if isinstance(driver.handles.get(address), LoadedKernel):
        return address
    found: int = module_calls.entry(driver, *_of_host(driver, address, _INVALID_FUNCTION))
    driver.host.functions[found] = address
    return found


serves(">Q Q", "_cudaGetKernel", "_cudaGetFuncBySymbol")(kernel_of)


def _variable(driver: StandInDriver, symbol: int) -> tuple[int, int]:
    found: tuple[int, int] = module_calls.variable(driver, *_of_host(driver, symbol, 13))  # cudaErrorInvalidSymbol
    return found


serves(">Q Q", "_cudaGetSymbolAddress")(_variable)
serves(">Q Q", "_cudaGetSymbolSize")(lambda driver, symbol: _variable(driver, symbol)[1])

# -- launches: a dim3 takes two words ------------------------------------------------------------------------------------------------


def _launch(driver: StandInDriver, function: int, *given: int, cooperative: bool = False) -> None:
    grid, grid_z, block, block_z, params, shared, stream = given
    shape = ((grid & 0xFFFFFFFF, grid >> 32, grid_z), (block & 0xFFFFFFFF, block >> 32, block_z))
    asked = launch_calls.DriverLaunch(*shape, shared, stream, cooperative=cooperative)
    launch_calls.launch(driver, kernel_of(driver, function), asked, params, 0)


serves("Q Q I Q I Q Q Q", "_cudaLaunchKernel")(_launch)


@serves("Q Q I Q I Q Q Q", "_cudaLaunchCooperativeKernel")
def _cooperative(driver: StandInDriver, function: int, *given: int) -> None:
    _launch(driver, function, *given, cooperative=True)


@serves("Q Q Q", "_cudaLaunchKernelExC")
def _launch_ex(driver: StandInDriver, config: int, function: int, params: int) -> None:
    launch_calls.launch_with_attributes(driver, config, kernel_of(driver, function), params, 0)


@serves("Q i i", "_cudaFuncSetAttribute")
def _set_attribute(driver: StandInDriver, function: int, attribute: int, value: int) -> None:
    module_calls.set_attribute(driver, kernel_of(driver, function), attribute, value)


@serves("Q Q", "_cudaFuncGetAttributes")
def _attributes(driver: StandInDriver, place: int, function: int) -> None:
    kernel = kernel_of(driver, function)
    shared, threads, registers, dynamic = (module_calls.attribute(driver, number, kernel) for number in (1, 0, 4, 8))
    driver.memory.write(place, struct.pack("<3Q7i", shared, 0, 0, threads, registers, 90, 90, 0, dynamic, -1))


def _kernel_node(driver: StandInDriver, params: int) -> Any:
    return graph_calls.kernel_node(driver, params, kernel_of)


graph_calls.adds(_kernel_node, "_cudaGraphAddKernelNode", node_type=KERNEL)
graph_calls.sets(_kernel_node, "_cudaGraphKernelNodeSetParams", "_cudaGraphExecKernelNodeSetParams")
graph_calls.sets(graph_calls.memset_node, "_cudaGraphMemsetNodeSetParams", "_cudaGraphExecMemsetNodeSetParams")

# -- memory --------------------------------------------------------------------------------------------------------------------------


@serves(">Q Q", "_cudaMalloc")
def _malloc(driver: StandInDriver, nbytes: int) -> int:
    return driver.allocate(nbytes) if nbytes else 0


serves("Q", "_cudaFree")(CALLS["cuMemFree_v2"].function)
_HOST, _ANY = memory_calls.Ends(to=False, source=False), memory_calls.Ends()
_KINDS: Final = (_HOST, memory_calls.TO_DEVICE, memory_calls.TO_HOST, memory_calls.WITHIN, _ANY)  # cudaMemcpyKind


def _ends(kind: int) -> memory_calls.Ends:
    if not 0 <= kind < len(_KINDS):
        raise CallFailed(21)  # cudaErrorInvalidMemcpyDirection
    return _KINDS[kind]


def _copied(driver: StandInDriver, rows: list[tuple[int, int]], nbytes: int, ends: memory_calls.Ends, stream: tuple[int, ...]) -> None:
    """Copy rows. Without a stream the host waits, but for a copy within the device."""
    waits = not stream and ends is not memory_calls.WITHIN
    memory_calls.copied(driver, rows, nbytes, stream[0] if stream else 0, ends, waits=waits)


def _copy(driver: StandInDriver, to: int, source: int, nbytes: int, kind: int, *stream: int) -> None:
    _copied(driver, [(to, source)], nbytes, _ends(kind), stream)


def _copy_rows(
    driver: StandInDriver, to: int, to_pitch: int, source: int, pitch: int, width: int, height: int, kind: int, *stream: int
) -> None:
    rows = memory_calls.rows_of(memory_calls.Plane(to, to_pitch), memory_calls.Plane(source, pitch), height, 1)
    _copied(driver, rows, width, _ends(kind), stream)


def _described(driver: StandInDriver, place: int) -> tuple[list[tuple[int, int]], int, memory_calls.Ends]:
    """The rows, their bytes and the ends of a copy that a cudaMemcpy3DParms at an address describes. Raises CallFailed."""
    words = _COPY.unpack(driver.memory.read(place, _COPY.size))
    to, source = (_plane(driver, words[at : at + 8]) for at in (8, 0))
    width, height, depth, kind = words[16:20]
    size = next((driver.of(array, DeviceArray).elements.nbytes for array in (words[0], words[8]) if array), 1)  # of what the width counts
    return memory_calls.rows_of(to, source, height, depth), width * size, _ends(kind)


def _plane(driver: StandInDriver, words: tuple[int, ...]) -> memory_calls.Plane:
    """An end: its array, if it is one, and its position, then a cudaPitchedPtr."""
    array, x, y, z, address, pitch, _, height = words
    if array:
        return array_calls.end_of(driver, array, x * driver.of(array, DeviceArray).elements.nbytes, y, z)
    return memory_calls.Plane(address, pitch, height).moved(x, y, z)


_COPY: Final = struct.Struct("<19Qi4x")


def _copy_box(driver: StandInDriver, place: int, *stream: int) -> None:
    _copied(driver, *_described(driver, place), stream)


def _box_node(driver: StandInDriver, place: int) -> Any:
    return memory_calls.copying(driver, *_described(driver, place))


def _copy_node(driver: StandInDriver, to: int, source: int, nbytes: int, kind: int) -> Any:
    return memory_calls.copying(driver, [(to, source)], nbytes, _ends(kind))


serves("Q", "_cudaMemcpy3D")(_copy_box)
serves("Q Q", "_cudaMemcpy3DAsync")(_copy_box)
graph_calls.adds(_box_node, "_cudaGraphAddMemcpyNode", node_type=MEMCPY)
graph_calls.sets(_box_node, "_cudaGraphMemcpyNodeSetParams", "_cudaGraphExecMemcpyNodeSetParams")
graph_calls.adds(_copy_node, "_cudaGraphAddMemcpyNode1D", layout="Q Q Q i")
graph_calls.sets(_copy_node, "_cudaGraphMemcpyNodeSetParams1D", "_cudaGraphExecMemcpyNodeSetParams1D", "Q Q Q i")
serves("Q Q Q Q Q Q i", "_cudaMemcpy2D")(_copy_rows)
serves("Q Q Q Q Q Q i Q", "_cudaMemcpy2DAsync")(_copy_rows)
serves("Q Q Q i", "_cudaMemcpy")(_copy)
serves("Q Q Q i Q", "_cudaMemcpyAsync")(_copy)
serves("Q i Q i Q Q", "_cudaMemcpyPeerAsync")(
    lambda driver, to, one, source, other, nbytes, stream: _copied(driver, [(to, source)], nbytes, memory_calls.WITHIN, (stream,))
)


def _to_symbol(driver: StandInDriver, symbol: int, source: int, nbytes: int, offset: int, kind: int, *stream: int) -> None:
    _copy(driver, _variable(driver, symbol)[0] + offset, source, nbytes, kind, *stream)


def _from_symbol(driver: StandInDriver, to: int, symbol: int, nbytes: int, offset: int, kind: int, *stream: int) -> None:
    _copy(driver, to, _variable(driver, symbol)[0] + offset, nbytes, kind, *stream)


for _name, _function in (("_cudaMemcpyToSymbol", _to_symbol), ("_cudaMemcpyFromSymbol", _from_symbol)):
    serves("Q Q Q Q i", _name)(_function)
    serves("Q Q Q Q i Q", f"{_name}Async")(_function)


@serves("Q i Q i Q", "_cudaMemcpyPeer")
def _copied_between(driver: StandInDriver, to: int, one: int, source: int, other: int, nbytes: int) -> None:
    memory_calls.copied_between(driver, to, driver.primary(one), source, driver.primary(other), nbytes)


@serves("Q Q", "_cudaPointerGetAttributes")
def _pointer(driver: StandInDriver, place: int, address: int) -> None:
    found = driver.allocation(address)
    kind, device, host = (_DEVICE, address, 0) if found else (_UNREGISTERED, 0, address)
    if (found and found[0] in driver.special.managed) or address in driver.special.variables:
        kind, host = _MANAGED, address
    driver.memory.write(place, struct.pack("<2i2Q", kind, 0 if found else -2, device, host))


# -- the device ----------------------------------------------------------------------------------------------------------------------

# Members of cudaDeviceProp: offset in CUDA 12 and in CUDA 13, layout, and what CUdevice_attribute gives it.
_PROPERTIES: Final = (
    *((296, 296, "Q", (8,)), (304, 304, "i", (12,)), (308, 308, "i", (10,)), (312, 312, "Q", (11,)), (320, 320, "i", (1,))),
    *((324, 324, "3i", (2, 3, 4)), (336, 336, "3i", (5, 6, 7)), (352, 352, "Q", (9,)), (360, 360, "i", (75,)), (364, 364, "i", (76,))),
    *((388, 384, "i", (16,)), (400, 392, "i", (19,)), (652, 636, "i", (83,))),
    *((576, 560, "i", (31,)), (600, 584, "i", (40,)), (604, 588, "i", (41,)), (612, 592, "i", (37,))),
    *((616, 596, "i", (38,)), (624, 604, "i", (39,)), (640, 624, "Q", (81,)), (648, 632, "i", (82,)), (688, 668, "i", (95,))),
    *((696, 672, "Q", (97,)), (712, 688, "i", (106,)), (720, 696, "Q", (111,)), (772, 748, "i", (120,))),
)
_SIZES: Final = (1032, 1008)


def _properties(version: int) -> Any:
    def properties(driver: StandInDriver, place: int, device: int) -> None:
        data = bytearray(_SIZES[version])
        data[: len(device_calls.DEVICE_NAME)] = device_calls.DEVICE_NAME
        struct.pack_into("<Q", data, 288, CALLS["cuDeviceTotalMem_v2"].function(driver, 0))
        for *offsets, layout, attributes in _PROPERTIES:
            values = (CALLS["cuDeviceGetAttribute"].function(driver, each, 0) for each in attributes)
            struct.pack_into(f"<{layout}", data, offsets[version], *values)
        driver.memory.write(place, bytes(data))

    return properties


serves("Q i", "_cudaGetDeviceProperties_v2")(_properties(0))
serves("Q i", "_cudaGetDeviceProperties")(_properties(1))
