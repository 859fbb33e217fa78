"""The failure tests of Triton's GSan, on the virtual machine: one line for each case, and whether the place that the test expects is named.

    .venv-triton/bin/python tests/suites/triton_gsan.py CHECKOUT          needs torch (CPU), pytest and Triton 3.9

CHECKOUT is triton-lang/triton; the cases are those of `python/test/gsan/test_gsan_failures.py`. Nothing of it is in this repository.
Gathers and scatters of tensor copies need Blackwell, so they are compiled for it. The allocator of GSan, which needs a GPU, is left out.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
from pathlib import Path
from typing import Any, Final

import consan.triton

_BLACKWELL: Final = ("gather", "scatter")
_INSTRUMENTED: Final = 'triton.knobs.compilation.instrumentation_mode = "gsan"'
_LONGEST: Final = 120.0  # seconds of a launch


def _without_pools() -> None:
    """The pools of GSan give memory as any other."""
    import torch

    stub: Any = types.ModuleType("triton.experimental.gsan")
    stub.create_mem_pool = lambda *_, **__: None
    sys.modules[stub.__name__] = stub
    torch.cuda.use_mem_pool = lambda *_, **__: contextlib.nullcontext()


def _without_instrumentation(path: Path) -> Any:
    """The module of the tests, whose kernels GSan leaves as they are."""
    module: Any = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(path.read_text().replace(_INSTRUMENTED, "pass"), str(path), "exec"), module.__dict__)
    return module


def _expected_line(case: dict[str, Any]) -> int:
    lines, first = inspect.getsourcelines(case["function"])
    return first + next(number for number, line in enumerate(lines) if case["marker"] in line)


def main() -> None:
    """Run all cases."""
    _without_pools()
    module = _without_instrumentation(Path(sys.argv[1]) / "python" / "test" / "gsan" / "test_gsan_failures.py")
    for name, case in module.CASE_INFO.items():
        arch, ended = "sm_100" if any(each in name for each in _BLACKWELL) else "sm_90", ""
        with consan.triton.cpu(arch=arch, global_memory="on", timeout=_LONGEST) as report:
            try:
                vars(module)["_run_case"](name)
            except Exception as error:
                ended = f"{type(error).__name__} {' '.join(str(error).split())[:200]}"
        expected = _expected_line(case)
        errors = [each for each in report.findings if each.severity == "error"]
        lines = sorted({access.line for each in errors for access in each.pair})
        kinds = sorted({f"{each.kind} {each.hazard}" for each in errors})
        where = "named" if expected in lines else f"{expected} not in {lines}"
        print(f"| {name} | {report.verdict} | {', '.join(kinds)} | {where} | {ended} |", flush=True)


if __name__ == "__main__":
    main()
