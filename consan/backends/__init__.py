"""Devices that run kernels: `cuda` (the driver API) and `virtual` (the PTX virtual machine), behind one protocol (`base`)."""
