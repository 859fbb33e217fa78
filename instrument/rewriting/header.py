"""The head of an instrumented module: its version and its target, and what is declared before all functions."""

from __future__ import annotations

from consan.instrument.rewriting.context import Context

_DIRECTIVES = (".version", ".target", ".address_size")


def later_target(target: str, other: str) -> str:
    """From two targets such as `sm_80`, the one of the later architecture; the first if they are of the same."""
    return max(target, other, key=lambda name: int("".join(filter(str.isdigit, name)) or 0))


def extend_header(context: Context, oldest: tuple[int, int], target: str, declarations: str) -> None:
    """Raise the version to `oldest`, set the target, and insert declarations before the first item that could use them."""
    module, edits = context.module, context.edits
    anchor = None
    for item in module.items:
        name = getattr(item, "name", "")
        anchor = item if name in _DIRECTIVES else anchor
        if name == ".version" and module.version < oldest:
            edits.replace(item, ".version {}.{}".format(*oldest))
        if name == ".target" and module.target != target:
            edits.replace(item, item.text.replace(module.target, target))
    if anchor is None:
        edits.insert_at(0, declarations)
    else:
        edits.insert_after(anchor, declarations)
