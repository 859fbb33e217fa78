"""Texture objects of a CuPy program on a GPU: the driver describes which bytes a fetch can read (R-TX1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import run

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]
PROGRAM = '''
import cupy as cp
from cupy.cuda import texture
runtime = cp.cuda.runtime
source = r"""
extern "C" __global__ void kernel(float *data, cudaTextureObject_t plane, float *out) {
    int at = threadIdx.x;
    data[at] = at;
    __syncthreads();
    out[at] = FETCH;
}
"""
data, out = cp.zeros(64, cp.float32), cp.zeros(64, cp.float32)
channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
linear = texture.ResourceDescriptor(runtime.cudaResourceTypeLinear, arr=data, chDesc=channel, sizeInBytes=data.nbytes)
other = texture.ResourceDescriptor(runtime.cudaResourceTypeLinear, arr=cp.arange(64, dtype=cp.float32), chDesc=channel, sizeInBytes=256)
array = texture.CUDAarray(channel, 64)
array.copy_from(cp.arange(64, dtype=cp.float32))
array = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array)
plane = texture.TextureObject(RESOURCE, texture.TextureDescriptor())
cp.RawKernel(source, "kernel")((1,), (64,), (data, plane, out))
cp.cuda.Device().synchronize()
'''
ELEMENT, POINT = "tex1Dfetch<float>(plane, 63 - at)", "tex1D<float>(plane, at + 0.5f)"


def test_a_fetch_of_bytes_that_the_kernel_writes_is_a_race(tmp_path: Path) -> None:
    status, report = run(tmp_path, PROGRAM.replace("FETCH", ELEMENT).replace("RESOURCE", "linear"))
    assert (status, [finding["kind"] for finding in report["findings"]]) == (66, ["data-race"]), report
    assert "texture fetch" in {access["role"] for access in report["findings"][0]["accesses"]}


@pytest.mark.parametrize(
    ("fetch", "resource"), [("data[63 - at]", "linear"), (ELEMENT, "other"), (POINT, "array")], ids=["plain load", "other memory", "array"]
)
def test_fetches_of_what_nobody_writes_are_clean(fetch: str, resource: str, tmp_path: Path) -> None:
    status, report = run(tmp_path, PROGRAM.replace("FETCH", fetch).replace("RESOURCE", resource))
    assert (status, report["verdict"], report["findings"]) == (0, "clean", []), report
