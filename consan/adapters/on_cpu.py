"""The adapters for programs on the virtual machine, which stands in for the GPU."""

from __future__ import annotations

from consan.adapters.base import Adapter
from consan.adapters.distributed import DistributedStandIn
from consan.adapters.driven.cute import CuteStandIn
from consan.adapters.driven.driver import DriverStandIn
from consan.adapters.driven.jax import JaxStandIn
from consan.adapters.driven.numba import NumbaMlirStandIn, NumbaStandIn
from consan.adapters.driven.tilelang import TilelangStandIn
from consan.adapters.driven.warp import WarpStandIn
from consan.adapters.standin import CupyStandIn
from consan.adapters.torch_kernels import TorchKernelRefused
from consan.adapters.triton.helion import HelionUntuned
from consan.adapters.triton.virtual import TritonVirtual
from consan.adapters.without_ptx import CuTileAdapter

ADAPTERS: tuple[Adapter, ...] = (
    *(CupyStandIn(), TritonVirtual(), DriverStandIn(), NumbaStandIn(), NumbaMlirStandIn(), CuteStandIn(), WarpStandIn()),
    *(TilelangStandIn(), HelionUntuned(), JaxStandIn(), DistributedStandIn(), TorchKernelRefused(), CuTileAdapter()),
)
