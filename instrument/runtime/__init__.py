"""The shadow runtime as text: its variants, its CUDA C++ source, and its PTX cut into functions that can be pasted.

The caller passes in the compiler (`compile`), so this package needs no toolchain. Only the functions that an instrumented module calls,
and their callees, are pasted, because assembly time is proportional to the size of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import cache
from importlib.resources import files

from consan.dataclass import dataclass
from consan.instrument.abi.header import header
from consan.instrument.abi.variant import Variant

__all__ = ["Compiler", "RuntimeLibrary", "Variant", "load", "runtime_architecture", "source"]

_ROOT = "consan.cuh"  # includes all hooks
_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"\n', re.M)
_FUNCTION = re.compile(r"^(?:\.visible |\.weak )?\.func\b[^{;]*?([\w$]+)\s*\([^{;]*?\)\s*(?:\.\w+\s*)*\{.*?^\}", re.M | re.S)
# Line information and blank lines; and a hint that assemblers before PTX ISA 8.3 refuse, although the module may be older.
_DROPPED = re.compile(r"^\s*\.(?:(?:loc|file)\b|pragma \"used_bytes_mask).*\n|^\s*(?://.*)?\n|^\$L__\w*tmp\d+:\n", re.M)
_CALLEE = re.compile(r"call(?:\.uni)?\s+(?:\([^)]*\),\s*)?([\w$]+)")


@cache
def source(variant: Variant) -> str:
    """The runtime as one CUDA C++ translation unit, for a variant."""
    return f"{header(variant)}\n{_with_includes(_ROOT, set())}"


def _with_includes(name: str, done: set[str]) -> str:
    """The text of a file. The first #include of each file is replaced by its text."""
    done.add(name)
    text = (files(__package__) / name).read_text().replace("#pragma once\n", "")
    return _INCLUDE.sub(lambda found: "" if found[1] in done else _with_includes(found[1], done), text)


@dataclass
class RuntimeLibrary:
    """The runtime's PTX for one variant and architecture, cut into functions."""

    functions: dict[str, str]
    callees: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_ptx(cls, text: str) -> RuntimeLibrary:
        """Cut the compiler's output. Every function definition becomes local to the module that it is pasted into."""
        text = _DROPPED.sub("", text)
        functions = {m.group(1): re.sub(r"^\.(visible|weak) ", "", m.group(0)) for m in _FUNCTION.finditer(text)}
        callees = {name: tuple(c for c in _CALLEE.findall(body) if c in functions) for name, body in functions.items()}
        return cls(functions, callees)

    def paste(self, hooks: Iterable[str]) -> str:
        """Definitions of the hooks and of all their callees, callees first (PTX requires declaration before use)."""
        done: dict[str, None] = {}

        def visit(name: str) -> None:
            if name in done:
                return
            for callee in self.callees[name]:
                visit(callee)
            done[name] = None

        for hook in sorted(hooks):
            visit(hook)
        return "\n".join(self.functions[name] for name in done)

    def inlined(self, name: str, arguments: list[str], label: str) -> str:
        """The body of a hook without a result, as a scope: parameters become moves, `ret` becomes a branch to the end."""
        head, _, body = self.functions[name].partition("{")
        parameters = re.findall(r"\.param \.(\w+) (\w+)", head)
        body = body.rsplit("}", 1)[0]
        for (_kind, parameter), argument in zip(parameters, arguments, strict=True):
            body = re.sub(rf"ld\.param\.([usb]\d+)(\s+)(%\w+), \[{parameter}\];", rf"mov.b\1\2\3, {argument};", body)
        body = re.sub(r"mov\.b[usb](\d+)", r"mov.b\1", body)
        return "{\n" + re.sub(r"\bret;", f"bra {label};", body) + f"{label}:\n}}\n"


Compiler = Callable[[str, str, "dict[str, str]"], str]
"""(CUDA C++ source, architecture such as "sm_90", defines) -> PTX text."""


def runtime_architecture(target: str) -> str:
    """The architecture to compile the runtime for: the module's, without the suffix of specific features."""
    return target.rstrip("af")


def load(variant: Variant, target: str, compile_ptx: Compiler) -> RuntimeLibrary:
    """Compile (or fetch from the caller's cache) and cut the runtime."""
    return RuntimeLibrary.from_ptx(compile_ptx(source(variant), runtime_architecture(target), variant.defines()))
