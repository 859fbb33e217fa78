"""The names that kernels of Pallas use where Triton compiles them: `plgpu` is jax.experimental.pallas.triton."""

from __future__ import annotations

import re
from typing import Final

_RENAMED: Final = (
    (re.compile(r"\btl\.(?=atomic_|debug_barrier|load)"), "plgpu."),
    (re.compile(r"\btl\.inline_asm_elementwise\b"), "plgpu.elementwise_inline_asm"),
    (re.compile(r' with sem="\w+"'), ""),  # its atomics release and acquire
    (re.compile(r' \((?:tl\.extra\.[\w.]+\(\)|scope="gpu")\)'), ""),  # it has no name for these
)


def by_pallas(word: str) -> str:
    """A word of Triton's."""
    for name, own in _RENAMED:
        word = name.sub(own, word)
    return word
