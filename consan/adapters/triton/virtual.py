"""Triton kernels on the virtual machine: `consan run --device cpu`, `consan.triton.cpu()`, `consan.check(device="cpu")`.

`triton.runtime.driver` gets consan's driver, as with its `set_active`. That driver loads and launches the PTX of a compiled
kernel (see the package's docstring). A few functions around it are replaced; `remove` restores them:

- `JITFunction.run` takes NumPy arrays, and tensor descriptors take them as their base;
- `Autotuner.run` runs the first configuration that compiles and fits, and the report says which, because times mean nothing here;
- `triton.testing.do_bench` calls its function once and gives NaN, `perf_report` skips its benchmarks, and the report says so;

Not handled: Triton's interpreter (`TRITON_INTERPRET=1` runs no PTX: noted), and kernels that TorchInductor would make: `torch.compile`
does nothing here (noted).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from consan.adapters.base import SessionLike
from consan.adapters.distributed.tensors import STANDS_IN
from consan.adapters.triton import harness, torch_device
from consan.adapters.triton.code import ptx_of
from consan.adapters.triton.driver import VirtualDriver, resources
from consan.adapters.triton.host import HostArray, wrapped
from consan.adapters.triton.seam import TritonSeam

_DESCRIPTORS = ("triton.tools.tensor_descriptor", "triton.experimental.gluon.nvidia.hopper")


class TritonVirtual(TritonSeam):
    """Runs the kernels of the Triton that the program imports on the virtual machine."""

    covers = "kernels run on the virtual machine, with NumPy arrays or torch tensors on the CPU"

    def __init__(self) -> None:
        super().__init__()
        self._loaded: list[Any] = []

    def remove(self) -> None:
        """Restore Triton's driver and functions."""
        super().remove()
        for kernel in self._loaded:  # a kernel that is used again loads itself again, wherever it then runs
            kernel.module = kernel._run = None
        self._loaded = []

    # -- what is replaced -------------------------------------------------------------------------------------------------------

    def _patch(self, triton: ModuleType) -> None:
        driver = VirtualDriver(self._open, self._open.options.triton_arch)
        self._patches.set(triton.runtime.driver, "_active", driver)  # as `set_active` does
        own = getattr(triton.backends.backends.get("nvidia"), "driver", None)  # programs may ask it, and since 3.9 Triton's test helpers do
        if own is not None:
            self._patches.set(own, "is_active", staticmethod(VirtualDriver.is_active))
        compiler, jit = sys.modules["triton.compiler.compiler"], sys.modules["triton.runtime.jit"]
        self._wrap(compiler.CompiledKernel, "_init_handles", self._load)
        self._wrap(jit.JITFunction, "run", _run_with_arrays)
        self._wrap(sys.modules["triton.runtime.autotuner"].Autotuner, "run", harness.first_that_fits, self._open)
        cublas = getattr(getattr(sys.modules.get("triton._C.libtriton"), "nvidia", None), "cublas", None)
        if hasattr(cublas, "CublasLt"):
            self._patches.set(cublas, "CublasLt", type("CublasLt", (Blas,), {"session": self._open}))
        for name in _DESCRIPTORS:
            self._when(name, self._patch_descriptors)
        self._when("triton.testing", self._skip_benchmarks)
        self._when("torch", functools.partial(self._patch_torch, driver))

    def _patch_torch(self, driver: VirtualDriver, torch: ModuleType) -> None:
        if STANDS_IN in vars(torch):
            return
        self._undo.append(torch_device.redirect(self._open, driver, self._patches, torch))

    def _patch_descriptors(self, module: ModuleType) -> None:
        for cls in {getattr(module, name) for name in dir(module) if name.startswith("TensorDescriptor")}:
            self._wrap(cls, "__post_init__", with_array_as_base)
            if "from_tensor" in vars(cls):
                self._patches.set(cls, "from_tensor", staticmethod(functools.partial(from_array, cls.from_tensor)))

    def _load(self, original: Callable[..., None], kernel: Any) -> None:
        """Wraps `CompiledKernel._init_handles`: loads the PTX."""
        if kernel.module is not None:
            return original(kernel)
        binary, kernel.kernel = kernel.kernel, ptx_of(kernel).encode()
        try:
            original(kernel)
        finally:
            kernel.kernel = binary
        self._loaded.append(kernel)
        cubin = next((path for name, path in kernel.metadata_group.items() if name.endswith(".cubin")), None)
        if cubin is not None:
            kernel.n_regs, kernel.n_spills = resources(str(cubin))
        return None


def _run_with_arrays(original: Callable[..., Any], function: Any, *args: Any, **kwargs: Any) -> Any:
    named = {name: value if name == "grid" else wrapped(value) for name, value in kwargs.items()}
    return original(function, *map(wrapped, args), **named)


def with_array_as_base(original: Callable[..., Any], descriptor: Any) -> None:
    """Replaces `TensorDescriptor.__post_init__`."""
    if isinstance(descriptor.base, np.ndarray):
        descriptor.base = HostArray(descriptor.base)
    original(descriptor)


def from_array(original: Callable[..., Any], tensor: Any, *args: Any, **kwargs: Any) -> Any:
    """Replaces `TensorDescriptor.from_tensor`."""
    return original(HostArray(tensor) if isinstance(tensor, np.ndarray) else tensor, *args, **kwargs)


class Blas:
    """Replaces `triton._C.libtriton.nvidia.cublas.CublasLt`, with which tutorials compare: torch computes the products on the CPU."""

    session: SessionLike

    def __init__(self, workspace: Any) -> None:
        pass

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """c = a b^T."""
        self.session.uninstrumented("cuBLAS matmul (computed by torch on the CPU)")
        c.copy_((a.float() @ b.float().T).to(c.dtype))

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """d = alpha a b^T + beta c."""
        self.session.uninstrumented("cuBLAS gemm (computed by torch on the CPU)")
        d.copy_((alpha * (a.float() @ b.float().T) + beta * c.float()).to(d.dtype))
