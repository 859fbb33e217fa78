"""`torch::from_blob` in audited extensions gives a copy of memory of the host, and memory of the device itself. Torch is made up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from consan.audit.host.building import FOLDER
from consan.toolchain.host_library import CXX

TORCH = """
#pragma once
#include <optional>
namespace at {
enum ScalarType { kFloat, kDouble, kHalf, kChar, kByte, kShort, kInt, kLong };
struct IntArrayRef {};
struct TensorOptions {};
inline TensorOptions dtype(ScalarType) { return {}; }
inline char copies[1];
struct Tensor {
    void *data;
    Tensor clone() const { return {copies}; }
};
inline Tensor from_blob(void *data, IntArrayRef, const TensorOptions & = {}) { return {data}; }
inline Tensor from_blob(void *data, IntArrayRef, IntArrayRef, const TensorOptions & = {}) { return {data}; }
}  // namespace at
enum { cudaMemoryTypeUnregistered, cudaMemoryTypeDevice };
struct cudaPointerAttributes { int type; };
inline char device[1];
inline void cudaPointerGetAttributes(cudaPointerAttributes *found, const void *data) {
    found->type = data == device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
}
"""
PROGRAM = """
#include "extension.h"
int main() {
    char host[1];
    at::IntArrayRef sizes, strides;
    int is_copied = torch::from_blob(host, sizes).data == at::copies && torch::from_blob(host, sizes, strides).data == at::copies;
    int is_itself = torch::from_blob(device, sizes).data == device && torch::from_blob(device, sizes, strides).data == device;
    return !is_copied + 2 * !is_itself;
}
"""
FAULTS = {
    "none": ("", "", 0),
    "no copies": ("made.clone()", "made", 1),
    "copies of the device": ("found.type == cudaMemoryTypeDevice ?", "false ?", 2),
    "copies with strides": ("consan_on_device(data, at::from_blob(data, sizes, strides, options))", "at::from_blob(data, sizes)", 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_memory_of_the_host_is_copied(tmp_path: Path, fault: str) -> None:
    old, new, status = FAULTS[fault]
    text = (FOLDER / "torch/torch/extension.h").read_text()
    assert old in text
    (tmp_path / "ATen").mkdir()
    files = {"ATen/ATen.h": TORCH, "ATen/Dispatch.h": "", "consan_pybind.h": "", "main.cpp": PROGRAM}
    for name, content in {**files, "extension.h": text.replace(old, new) if old else text}.items():
        (tmp_path / name).write_text(content)
    command = CXX.compiler()
    assert command is not None
    subprocess.run([*command, "-std=c++17", f"-I{tmp_path}", "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == status
