"""The command that installs an extra of consan: by the names of its packages, since consan itself may come from a checkout."""

from __future__ import annotations

import functools
import shlex

from consan import late


@functools.cache
def install(extra: str) -> str:
    """`pip install 'nvidia-cuda-nvrtc<14,>=13.0' ...` for `cpu`, with the extras that this one includes."""
    try:
        required = late.metadata.requires("consan") or []
    except late.metadata.PackageNotFoundError:
        required = []
    packages = _packages(required, extra)
    return f"pip install {shlex.join(packages)}" if packages else f"pip install '.[{extra}]'  # in a checkout of consan"


def _packages(required: list[str], extra: str) -> list[str]:
    found: dict[str, None] = {}
    for name, _, marker in (requirement.partition(";") for requirement in required):
        if f'extra == "{extra}"' not in marker.replace("'", '"'):
            continue
        own = name.partition("[")
        inner = own[2].strip(" ]").split(",") if own[0] == "consan" else []
        found |= dict.fromkeys(package for each in inner for package in _packages(required, each)) if inner else {name.strip(): None}
    return list(found)
