"""Calls of the CUDA runtime that programs of CuTe DSL make through their runtime library, in whose place consan's library is linked.

A call that the driver has under another name is that call; the numbers of attributes and the layouts of a launch are the same.
"""

from __future__ import annotations

from typing import Final

from consan.libcuda import device_calls, memory_calls, stream_calls, tensormap_calls  # noqa: F401 - they fill the table of calls
from consan.libcuda.calls import CALLS, serves
from consan.libcuda.driver import StandInDriver
from consan.libcuda.launch_calls import launch_with_attributes
from consan.libcuda.module_calls import set_attribute

_SAME: Final = {
    **{name: name for name in ("cuDeviceGet", "cuKernelGetAttribute", "cuTensorMapEncodeTiled")},
    **{f"cuLibrary{part}": f"cuLibrary{part}" for part in ("GetGlobal", "GetKernel", "GetKernelCount", "LoadData", "Unload")},
    **{f"cudaLibrary{part}": f"cuLibrary{part}" for part in ("GetKernel", "LoadData", "Unload")},
    "cudaDeviceGetAttribute": "cuDeviceGetAttribute",
    "cudaDeviceSynchronize": "cuCtxSynchronize",
    "cudaGetDeviceCount": "cuDeviceGetCount",
    "cudaStreamSynchronize": "cuStreamSynchronize",
}
CALLS.update({f"_{name}": CALLS[other] for name, other in _SAME.items()})


@serves("i", "_cudaSetDevice")
def _set_device(driver: StandInDriver, device: int) -> None:
    driver.stack[-1:] = [driver.primary(device)]


@serves(">i", "_cudaGetDevice")
def _device(driver: StandInDriver) -> int:
    return driver.device


@serves("Q i i i", "_cudaKernelSetAttributeForDevice")
def _set(driver: StandInDriver, kernel: int, attribute: int, value: int, device: int) -> None:
    set_attribute(driver, kernel, attribute, value)


@serves("Q Q Q", "_cudaLaunchKernelEx")
def _launch(driver: StandInDriver, config: int, kernel: int, params: int) -> None:
    launch_with_attributes(driver, config, kernel, params, 0)
