"""Calls about the device, its contexts and the driver itself. The limits are those of an sm_90."""

from __future__ import annotations

from typing import Final

from consan.dataclass import dataclass
from consan.libcuda import calls
from consan.libcuda.calls import CallFailed, accepted, serves
from consan.libcuda.driver import DriverContext, StandInDriver

_VERSION: Final = 13090  # of CUDA 13: PTX of each of its compilers is taken
_MEMORY: Final = 16 << 30
# By their numbers in CUdevice_attribute; those that are not here are 0.
_ATTRIBUTES: Final = {
    **dict.fromkeys((1, 2, 3), 1024),  # threads of a block; its x and y
    **dict.fromkeys((5, 11), (1 << 31) - 1),  # CTAs along x, pitch
    **dict.fromkeys((6, 7), 65535),  # CTAs along y and z
    **dict.fromkeys((12, 82), 65536),  # registers of a block and of a multiprocessor
    **dict.fromkeys((13, 36), 1_000_000),  # clock rates
    **dict.fromkeys((10, 51, 87, 106), 32),
    # Properties of the device: from copies beside kernels to cooperative launches, managed memory, reserved addresses, memory pools,
    # clusters and tensor maps.
    **dict.fromkeys((15, 19, 31, 40, 41, 78, 79, 80, 83, 90, 95, 102, 115, 120, 127), 1),
    4: 64,  # threads along z
    8: 49152,  # shared memory of a block
    9: 65536,  # constant memory
    14: 512,  # alignment of textures
    30: 512,  # and of surfaces
    37: 5120,  # bits of the memory bus
    38: 50 << 20,  # L2 cache
    39: 2048,  # threads of a multiprocessor
    81: 233472,  # its shared memory
    97: 232448,  # shared memory of a block that asks for it
    111: 1024,  # the part of it that the system takes
}
_SM_COUNT, _MAJOR, _MINOR = 16, 75, 76
DEVICE_NAME: Final = b"NVIDIA consan virtual machine"  # Pallas asks for the first word
_UUID: Final = b"consan stand-in\0"
_RUNTIME: Final = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")  # the table that a static copy of the CUDA runtime asks for
_OWN_RUNTIME: Final = (
    "the program holds a copy of the CUDA runtime (cudart_static), and no symbol table by which consan would know its functions: do not"
    " strip it, link it with -cudart shared, or run it on a GPU"
)


def _capability(driver: StandInDriver) -> tuple[int, int]:
    digits = "".join(filter(str.isdigit, driver.session.options.chip))
    return int(digits[:-1]), int(digits[-1])


@serves("i i", "cuInit")
def _init(driver: StandInDriver, flags: int, _: int = 0) -> None:
    if flags:
        raise CallFailed(calls.INVALID_VALUE)


@serves(">i", "cuDriverGetVersion")
def _version(driver: StandInDriver) -> int:
    return _VERSION


@serves(">i", "cuDeviceGetCount")
def _count(driver: StandInDriver) -> int:
    return len(driver.primaries)


@serves("Q Q", "cuGetExportTable")
def _table(driver: StandInDriver, place: int, identity: int) -> None:
    """Tables of the driver that no manual describes. A program of the CUDA runtime cannot do without them."""
    asks = driver.memory.read(identity, len(_RUNTIME)) == _RUNTIME
    raise CallFailed(calls.NOT_SUPPORTED, _OWN_RUNTIME if asks and driver.needs_runtime else "")


@serves(">i i", "cuDeviceGet")
def _get(driver: StandInDriver, ordinal: int) -> int:
    driver.primary(ordinal)
    return ordinal


@serves("Q i i", "cuDeviceGetName")
def _name(driver: StandInDriver, place: int, room: int, device: int) -> None:
    driver.memory.write(place, DEVICE_NAME[: room - 1] + b"\0")


@serves("Q i", "cuDeviceGetUuid", "cuDeviceGetUuid_v2")
def _uuid(driver: StandInDriver, place: int, device: int) -> None:
    driver.memory.write(place, _UUID[:-1] + bytes([device]))


@serves("Q i i", "cuDeviceGetPCIBusId")
def _bus(driver: StandInDriver, place: int, room: int, device: int) -> None:
    driver.memory.write(place, (b"0000:%02x:00.0" % device)[: room - 1] + b"\0")


@serves(">Q i", "cuDeviceTotalMem_v2")
def _total(driver: StandInDriver, device: int) -> int:
    return _MEMORY


@serves(">Q >Q", "cuMemGetInfo_v2")
def _info(driver: StandInDriver) -> tuple[int, int]:
    return _MEMORY - sum(driver.allocations.values()), _MEMORY


@serves(">i i i", "cuDeviceGetAttribute")
def _attribute(driver: StandInDriver, attribute: int, device: int) -> int:
    major, minor = _capability(driver)
    own = {_SM_COUNT: int(driver.session.backend.sm_count), _MAJOR: major, _MINOR: minor}
    return own.get(attribute, _ATTRIBUTES.get(attribute, 0))


@serves(">i >i i", "cuDeviceComputeCapability")
def _compute(driver: StandInDriver, device: int) -> tuple[int, int]:
    return _capability(driver)


@serves(">i i i", "cuDeviceCanAccessPeer")
def _peer(driver: StandInDriver, device: int, other: int) -> int:
    return int(driver.primary(device) != driver.primary(other))


accepted("Q", "cuCtxEnablePeerAccess", "cuCtxDisablePeerAccess")


@serves(">i >i", "cuCtxGetStreamPriorityRange")
def _priorities(driver: StandInDriver) -> tuple[int, int]:
    return 0, 0


# -- contexts ------------------------------------------------------------------------------------------------------------------------


@serves(">Q i", "cuDevicePrimaryCtxRetain")
def _retain(driver: StandInDriver, device: int) -> int:
    return driver.primary(device)


@serves("i >I >i", "cuDevicePrimaryCtxGetState")
def _state(driver: StandInDriver, device: int) -> tuple[int, int]:
    return 0, 1


accepted("i", "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxSetFlags_v2")
accepted("", "cuProfilerStart", "cuProfilerStop")
accepted("Q", "cuCtxSetCacheConfig", "cuCtxSetSharedMemConfig", "cuCtxSetFlags", "cuCtxSetLimit", "cuCtxResetPersistingL2Cache")


@serves(">Q I i", "cuCtxCreate_v2")
def _create(driver: StandInDriver, flags: int, device: int) -> int:
    driver.primary(device)
    made = driver.made(DriverContext(device=device))
    driver.stack.append(made)
    return made


@serves(">Q Q i I i", "cuCtxCreate_v3")
def _create_with_affinity(driver: StandInDriver, parameters: int, count: int, flags: int, device: int) -> int:
    return int(_create(driver, flags, device))


@serves(">Q Q I i", "cuCtxCreate_v4")
def _create_with_parameters(driver: StandInDriver, parameters: int, flags: int, device: int) -> int:
    return int(_create(driver, flags, device))


@serves("Q", "cuCtxDestroy_v2")
def _destroy(driver: StandInDriver, context: int) -> None:
    driver.of(context, DriverContext)
    if driver.stack[-1:] == [context]:
        driver.stack.pop()


@serves("Q", "cuCtxPushCurrent_v2")
def _push(driver: StandInDriver, context: int) -> None:
    driver.of(context, DriverContext)
    driver.stack.append(context)


@serves(">Q", "cuCtxPopCurrent_v2")
def _pop(driver: StandInDriver) -> int:
    if not driver.stack:
        raise CallFailed(calls.INVALID_CONTEXT)
    return driver.stack.pop()


@serves("Q", "cuCtxSetCurrent")
def _set(driver: StandInDriver, context: int) -> None:
    driver.stack[-1:] = [context] if context else []


@serves(">Q", "cuCtxGetCurrent")
def _current(driver: StandInDriver) -> int:
    return driver.stack[-1] if driver.stack else 0


@serves(">i", "cuCtxGetDevice")
def _device(driver: StandInDriver) -> int:
    if not driver.stack:
        raise CallFailed(calls.INVALID_CONTEXT)
    return driver.device


@serves("Q >Q", "cuCtxGetId")
def _id(driver: StandInDriver, context: int) -> int:
    return context or (driver.stack or driver.primaries)[-1 if driver.stack else 0]


@serves("Q >I", "cuCtxGetApiVersion")
def _api(driver: StandInDriver, context: int) -> int:
    return 3020


@serves(">I", "cuCtxGetFlags")
def _flags(driver: StandInDriver) -> int:
    return 0


@serves(">Q i", "cuCtxGetLimit")
def _limit(driver: StandInDriver, limit: int) -> int:
    return 1024


@serves("", "cuCtxSynchronize")
def _synchronize(driver: StandInDriver) -> None:
    driver.session.streams.synchronize()


# -- pools of memory ----------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class DriverPool:
    """A pool. Memory of all pools is the device's."""

    handle: int = 0


@serves(">Q i", "cuDeviceGetDefaultMemPool", "cuDeviceGetMemPool")
def _pool_of_device(driver: StandInDriver, device: int) -> int:
    found = next((handle for handle, value in driver.handles.items() if isinstance(value, DriverPool)), 0)
    return found or driver.made(DriverPool())


@serves(">Q Q i", "cuMemGetDefaultMemPool", "cuMemGetMemPool")
def _pool_of_place(driver: StandInDriver, place: int, kind: int) -> int:
    return _pool_of_device(driver, 0)  # type: ignore[no-any-return]


@serves(">Q Q", "cuMemPoolCreate")
def _pool(driver: StandInDriver, properties: int) -> int:
    return driver.made(DriverPool())


@serves("Q i Q", "cuMemPoolGetAttribute")
def _pool_attribute(driver: StandInDriver, pool: int, attribute: int, place: int) -> None:
    wide = attribute > 3  # the first three are numbers of 32 bits
    driver.memory.write(place, bytes(8 if wide else 4))


accepted("Q", "cuMemPoolDestroy", "cuMemPoolSetAttribute", "cuMemPoolTrimTo", "cuMemPoolSetAccess", "cuDeviceSetMemPool", "cuMemSetMemPool")
