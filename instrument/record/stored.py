"""A recorded module as text, so that the next process need not parse and rewrite the same PTX again.

The first line is JSON; the second has the numbers of the templates, which are read when somebody asks; then comes what
`consan.instrument.stored` keeps of the module. The texts that compute full logs and footprints are made again when they are needed.

Not handled: as there.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from typing import Any, overload

from consan.instrument import Instrumented
from consan.instrument.ptx import Module
from consan.instrument.record.global_memory import Mode
from consan.instrument.record.recorded import Compact, Recorded, Refusal
from consan.instrument.record.templates import Template, TemplateEvent
from consan.instrument.stored import dump, restore

_PLAIN = ("target", "words", "loops", "calls", "isa", "leaves", "outer_refusal")
_SHARED = ("ptx", "target", "sites", "functions", "entries", "external", "lines", "hazards", "debug")  # with an instrumented module
_EVENT_NUMBERS = len(astuple(TemplateEvent(0)))


class _Templates(Sequence[Template]):
    """Templates in a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def _read(self) -> tuple[Template, ...]:
        return tuple(_templates(iter(map(int, self._text.split()))))

    @overload
    def __getitem__(self, at: int) -> Template: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Template]: ...
    def __getitem__(self, at: int | slice) -> Template | Sequence[Template]:
        return self._read[at]

    def __len__(self) -> int:
        return len(self._read)


def dump_recorded(module: Instrumented, done: Recorded) -> str:
    """Everything but the texts for the host. `module`: the same in the form that the rest of a session uses."""
    plain = {name: getattr(done, name) for name in _PLAIN} | {
        "mode": int(done.mode),
        "clusters": done.clusters,
        "silent": sorted(done.silent),
        "compact": [[each.stores, each.hashes, list(each.constants.items()), each.of_grid, each.most] for each in done.compact],
        "expands": done.expand is not None,
        "spans": done.footprint is not None,
    }
    return "\n".join((json.dumps(plain, separators=(",", ":")), " ".join(map(str, _numbers(done.templates))), dump(module)))


def dump_refusal(reason: str) -> str:
    """Why a module is not recorded."""
    return json.dumps({"refusal": reason})


def restore_recorded(text: str, plain: Callable[[], Module], again: Callable[[], Recorded]) -> tuple[Instrumented, Recorded]:
    """The stored module. `plain` gives the PTX that it was made from, `again` makes it again. Raises `Refusal`."""
    first, *rest = text.split("\n", 2)
    values: dict[str, Any] = json.loads(first)
    if "refusal" in values:
        raise Refusal(values["refusal"])
    templates, stored = rest
    module, made = restore(stored, plain), functools.cache(again)
    known: dict[str, Any] = {name: values[name] for name in _PLAIN} | {name: getattr(module, name) for name in _SHARED}
    done = Recorded(
        **known,
        templates=_Templates(templates),
        mode=Mode(values["mode"]),
        clusters=tuple(map(tuple, values["clusters"])),
        silent=frozenset(values["silent"]),
        compact=tuple(map(_compact, values["compact"])),
        expand=functools.cache(lambda: _made(made().expand)) if values["expands"] else None,
        footprint=functools.cache(lambda: _made(made().footprint)) if values["spans"] else None,
    )
    return module, done


def _made(make: Callable[[], Any] | None) -> Any:
    assert make is not None, "the module has another form than the stored one"
    return make()


def _compact(values: list[Any]) -> Compact:
    stores, hashes, constants, of_grid, most = values
    return Compact(stores, hashes, {place: (nbytes, hashed) for place, (nbytes, hashed) in constants}, of_grid, most)


def _numbers(templates: Sequence[Template]) -> Iterator[int]:
    for template in templates:
        yield from (template.number, template.words, len(template.events))
        for event in template.events:
            yield from map(int, astuple(event))


def _templates(numbers: Iterator[int]) -> Iterator[Template]:
    for number in numbers:
        words, events = next(numbers), next(numbers)
        yield Template(number, words, [TemplateEvent(*(next(numbers) for _ in range(_EVENT_NUMBERS))) for _ in range(events)])
