"""Printing a tree.

Proves that nothing was lost: the text is restored from the nodes of the tree, and only white space and comments may lie between two
nodes. `print_module(parse(text)) == text` for every text that parses.
"""

from __future__ import annotations

from collections.abc import Iterator

from consan._errors import InternalError
from consan.instrument.ptx.tree import Block, Function, Module, Node


def print_module(module: Module) -> str:
    """The module's text, from its nodes."""
    source = module.source
    pieces: list[str] = []
    offset = 0
    for start, end in (*_leaves(module), (len(source.text), len(source.text))):
        if not source.is_trivia(offset, start):
            line, column = source.position(offset)
            raise InternalError(f"{source.name}:{line}:{column}: text outside the tree: {source.text[offset:start][:60]!r}")
        pieces += (source.text[offset:start], source.text[start:end])
        offset = end
    return "".join(pieces)


def _leaves(module: Module) -> Iterator[tuple[int, int]]:
    for item in module.items:
        if isinstance(item, Function) and item.body is not None:
            yield item.start, item.body.start
            yield from _block(item.body)
        else:
            yield item.span


def _block(outermost: Block) -> Iterator[tuple[int, int]]:
    """The braces and statements of a block in order, without recursion, because inline asm may nest to any depth."""
    stack: list[tuple[Block, Iterator[Node]]] = []
    current: Block | None = outermost
    while current is not None or stack:
        if current is not None:
            yield current.open, current.open + 1
            stack.append((current, iter(current.statements)))
            current = None
        block, rest = stack[-1]
        for statement in rest:
            if isinstance(statement, Block):
                current = statement
                break
            yield statement.span
        else:
            yield block.close, block.close + 1
            stack.pop()
