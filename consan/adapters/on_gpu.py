"""The adapters for programs on a GPU."""

from __future__ import annotations

from consan.adapters.base import Adapter
from consan.adapters.cuda_core import CudaCoreAdapter
from consan.adapters.cupy import CupyAdapter
from consan.adapters.numba import NumbaAdapter
from consan.adapters.processes import TorchProcesses
from consan.adapters.torch_kernels import TorchKernelAdapter
from consan.adapters.triton.gpu import TritonAdapter
from consan.adapters.without_ptx import FRAMEWORKS, CuTileAdapter, UnseenFramework

ADAPTERS: tuple[Adapter, ...] = (
    *(CupyAdapter(), TritonAdapter(), NumbaAdapter(), CudaCoreAdapter(), TorchKernelAdapter(), TorchProcesses()),
    *(CuTileAdapter(), *(UnseenFramework(each) for each in FRAMEWORKS)),
)
