"""Small flaky kernels, and documents of commands run in process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import referencing

from consan.__main__ import main
from consan.reports.formats import json_format

# Two warps exchange words with no barrier between: right as long as they keep step, wrong when one is held back.
FLAKY = """extern "C" __global__ void exchange(const int* in, int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
#ifdef FIXED
    __syncthreads();
#endif
    out[t] = s[t ^ 32];
}
"""
LAUNCH = ["--grid", "1", "--block", "64", "--arg", "i32[64]=arange", "--arg", "i32[64]=zeros"]

# The same as a program whose status says whether the result was right.
PROGRAM = f"""import sys
import cupy as cp
import numpy as np
SOURCE = '''{FLAKY}'''
x, out = cp.arange(64, dtype=cp.int32), cp.zeros(64, dtype=cp.int32)
cp.RawKernel(SOURCE, "exchange")((1,), (64,), (x, out))
wrong = int((cp.asnumpy(out) != np.arange(64) ^ 32).sum())
print(wrong, "wrong")
sys.exit(wrong > 0)
"""


def write_kernel(folder: Path, name: str = "flaky.cu", text: str = FLAKY) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def validator(name: str) -> Any:
    """A validator of a schema that ships with the package."""
    loaded = [json_format.schema(each) for each in ("consan.report-1.json", "consan.stress-1.json", "consan.schedule-1.json")]
    registry = referencing.Registry().with_resources((each["$id"], referencing.Resource.from_contents(each)) for each in loaded)
    return jsonschema.Draft202012Validator(json_format.schema(name), registry=registry)


def consan(*words: str) -> int:
    return main(list(words))


def stress(*words: str, out: Path, status: int | None = None, workers: str = "0") -> Any:
    """The document of a campaign, which the schema accepts."""
    found = consan("stress", "--device", "cpu", "--workers", workers, "-o", str(out), *words)
    assert status is None or found == status
    document = json.loads(out.read_text())
    validator("consan.stress-1.json").validate(document)
    return document


def reduce(*words: str, out: Path, status: int = 66, workers: str = "0") -> Any:
    """The schedule that a search comes down to, which its schema accepts."""
    assert consan("reduce", "--workers", workers, "-o", str(out), *words) == status
    document = json.loads(out.read_text())
    validator("consan.schedule-1.json").validate(document)
    return document
