"""The kernels of a Python module, by its text. The module is read, not run."""

from __future__ import annotations

import ast
import re
from typing import Final

_TRITON: Final = re.compile(r"^\s*(?:import|from)\s+triton\b", re.MULTILINE)


def builds_extensions(text: str) -> bool:
    """Whether a module may build extensions of torch. One with Triton's kernels says so; another may import what does."""
    return "cpp_extension" in text or not uses_triton(text)


def uses_triton(text: str) -> bool:
    """Whether a module imports Triton."""
    return _TRITON.search(text) is not None


def triton_kernels(text: str) -> list[str]:
    """The kernels of a module: functions with `jit` that no other such function calls."""
    if not uses_triton(text):
        return []
    functions = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef) and _is_jit(each)]
    called = {
        call.func.id
        for function in functions
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id != function.name
    }
    return [each.name for each in functions if each.name not in called]


def _is_jit(function: ast.FunctionDef) -> bool:
    return any(re.search(r"\bjit\b", ast.unparse(each)) is not None for each in function.decorator_list)
