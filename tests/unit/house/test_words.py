"""One word has one meaning: words that once had several, or none that the PTX ISA knows, do not come back.

They are refused as names in code, as names of files, and in documents. `tutorials/guide/glossary.md` has the words that are used instead.
`make lint` runs this file.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
PRODUCT = ("consan", "instrument", "reports")
SOURCES = sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".hpp", ".cpp", ".c", ".cuh"})
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(page for folder in (*PRODUCT, "tests", "tutorials") for page in (ROOT / folder).rglob("*.md"))])
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


class Retired(NamedTuple):
    """A name that is refused, as a pattern of a whole identifier, and what to say instead."""

    name: str
    better: str
    where: tuple[str, ...] = PRODUCT


def _part(word: str) -> str:
    """The word as a part of a name: `kept`, `most_kept`, `KEPT`, `KeptLaunch`."""
    return rf"(?:.*_)?(?:{word}|{word.upper()})(?:_.*)?|(?:.*[a-z0-9_])?{word.capitalize()}(?:[A-Z_].*)?"


CHECKER, SESSION, RECORD = "consan/checker", "consan/session", "instrument/record"
NAMES = {
    "beside": Retired(_part("beside"), "background (a thread of consan), concurrent (launches), launch_race (a finding)"),
    "Found": Retired("_?Found", "FindingRecord, or what was found"),
    "told": Retired(_part("told"), "described, Explanation, symbol_addresses"),
    "takes": Retired("takes|doubtful", "recordable, unjudgeable_reason"),
    "stands": Retired("stands?|Stand|standing|Standing", "positions, stopped_at", (CHECKER, SESSION, RECORD, "reports")),
    "Started": Retired("Started|Sent|Account|[Oo]verdue", "LaunchCheck, InFlightLaunch, ReceiptGroup, time_limit"),
    "meetings": Retired(f"{_part('meetings')}|{_part('meeting')}", "convergence (of lanes), overlaps (of accesses)"),
    "apart": Retired(r"(?!WORDS_APART)" + f"(?:{_part('apart')})", "disjoint, separate, seal_failed"),
    "kept": Retired(_part("kept"), "retained", (CHECKER,)),
    "outer": Retired(_part("outer"), "global_races", (CHECKER, SESSION, RECORD)),
    "unit": Retired(f"{_part('unit')}|{_part('units')}", "cluster (a CTA by itself is one)", (CHECKER,)),
    "Manner": Retired("Manner|manner", "TextVariant, variant"),
    "Certainty": Retired("Certainty|certainty", "Computability"),
    "owed": Retired(_part("owed"), "pending"),
    "GIVES": Retired("GIVES|TAKES|gives", "RELEASES, ACQUIRES", (CHECKER, SESSION)),
    "rounds": Retired("rounds?|ROUNDS?|.*_rounds?", "iterations", ("consan/ranges", CHECKER, RECORD)),
    "preferred": Retired("preferred", "select"),
}
# Names of files, without their suffix, and of folders.
FILES = {
    "beside": "concurrent_launches, launch_race",
    "beside_program": "background",
    "found": "finding_records",
    "takes": "recordable",
    "standing": "positions",
    "started": "launch_check",
    "sent": "in_flight",
    "overdue": "time_limit",
    "opening": "session_options",
    "meetings": "convergence, overlaps",
    "apart": "separate",
    "kept": "retained",
    "outer": "global_races",
    "outer_items": "global_race_items",
    "ways": "control_dependence",
    "marks": "dataflow",
    "uses": "stored_values",
    "depends": "value_dependence",
    "sides": "global_operands",
    "ahead": "prefetch",
    "rounds": "iterations",
    "unit": "cluster",
}
# What a document does not say: the pattern, and how to say it.
PHRASES = {
    r"told": "described, named, known",
    r"beside (?:each other|it|them|others)": "at the same time, concurrently",
    r"of which": "a second sentence",
    r"that which": "what it is",
    r"doubtful": "not judged, with the reason",
    r"rooms": "packages (of consan); room is free space, in a log or in memory",
    r"left no record|records? of (?:a|the|its|this) launch": "log; a record is a row of a table, such as that of a finding",
}
# Words that are still in use, because their renames have not landed. Take a word out with its last use.
UNDER_WAY: set[str] = set()
FILES_UNDER_WAY: set[str] = set()
PHRASES_UNDER_WAY: set[str] = set()


def _identifiers(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text()
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from ((token.start[0], token.string) for token in tokens if token.type == tokenize.NAME)
        return
    code = _NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for number, line in enumerate(code.splitlines(), 1):
        yield from ((number, match[0]) for match in re.finditer(r"[A-Za-z_]\w*", line))


@pytest.fixture(scope="module")
def names() -> dict[str, list[str]]:
    """For each identifier of the product the places that have it, as FILE:LINE."""
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for line, name in _identifiers(path):
            places.setdefault(name, []).append(f"{path.relative_to(ROOT)}:{line}")
    return places


def _uses(word: str, names: dict[str, list[str]]) -> list[str]:
    retired = NAMES[word]
    matching = [name for name in names if re.fullmatch(retired.name, name)]
    return [f"{place}: {name}" for name in matching for place in names[name] if place.startswith(retired.where)]


def _file_uses(stem: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in SOURCES if stem in (path.stem, *path.relative_to(ROOT).parts)]


def _phrase_uses(phrase: str) -> list[str]:
    pattern = re.compile(rf"\b{phrase}\b", re.IGNORECASE)
    texts = ((page, re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)) for page in DOCUMENTS)
    return [f"{page.relative_to(ROOT)}: {match[0]}" for page, text in texts for match in pattern.finditer(text)]


def _hold(uses: list[str], better: str, under_way: bool) -> None:
    """A retired word has no uses; one that is still under way has some, so that the lists above shrink."""
    if under_way:
        assert uses, "nothing uses it any longer: take it out of its list of words under way"
    else:
        assert uses == [], f"better: {better}"


@pytest.mark.parametrize("word", NAMES)
def test_no_name_has_a_retired_word(word: str, names: dict[str, list[str]]) -> None:
    _hold(_uses(word, names), NAMES[word].better, word in UNDER_WAY)


@pytest.mark.parametrize("stem", FILES)
def test_no_file_has_a_retired_name(stem: str) -> None:
    _hold(_file_uses(stem), FILES[stem], stem in FILES_UNDER_WAY)


def test_docstrings_begin_with_their_subject() -> None:
    """Not with a clause in its place: `What it holds.`"""
    begun = re.compile(r'"""(?:What|Of|The same of)\b')
    texts = ((path, path.read_text()) for path in SOURCES if path.suffix == ".py")
    found = [f"{path.relative_to(ROOT)}: {match[0]}" for path, text in texts for match in begun.finditer(text)]
    assert found == []


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_document_has_a_retired_phrase(phrase: str) -> None:
    _hold(_phrase_uses(phrase), PHRASES[phrase], phrase in PHRASES_UNDER_WAY)
