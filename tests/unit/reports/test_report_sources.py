"""Excerpts: from the report or from the PTX; the caret is under the right word."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from consan.reports.formats import html, sarif, text
from consan.reports.model import Finding, Report
from consan.reports.source.sources import Sources, embed, of_texts, read_lines, within
from consan.reports.verdict.conclusion import assemble


def report(*accesses: object) -> Report:
    return assemble(device="cpu", findings=[Finding("data-race", "k", accesses=accesses)])  # type: ignore[arg-type]


def test_the_caret_is_under_the_word_at_the_column_also_behind_tabs() -> None:
    found = embed(report(samples.READ), of_texts({"reduce.cu": samples.REDUCE}))
    excerpt = Sources(found).excerpt(samples.READ)
    assert excerpt is not None
    (line,) = [text for _, text, hit in excerpt.lines if hit]
    assert line[excerpt.caret :][: excerpt.width] == "tile"
    assert line[excerpt.caret :].startswith("tile[t + s]")
    assert line.startswith("    if")


def test_the_start_of_a_statement_means_all_of_it() -> None:
    text = "  out[t] = a[t];   // two reads"
    access = replace(samples.WRITE, line=1, column=3)
    excerpt = Sources(embed(report(access), of_texts({"reduce.cu": text}))).excerpt(access)
    assert excerpt is not None
    assert text[excerpt.caret :][: excerpt.width] == "out[t] = a[t];"


def test_without_a_column_the_whole_line_is_marked() -> None:
    access = replace(samples.WRITE, column=0)
    excerpt = Sources(embed(report(access), of_texts({"reduce.cu": samples.REDUCE}))).excerpt(access)
    assert excerpt is not None
    assert (excerpt.caret, excerpt.width) == (4, len("tile[t] = in[blockIdx.x * 256 + t];"))


def test_without_a_source_the_ptx_is_shown() -> None:
    excerpt = Sources(report(samples.COPY)).excerpt(samples.COPY)
    assert excerpt is not None
    assert excerpt.lines == ((99, samples.COPY.ptx, True),)


def test_without_source_and_ptx_there_is_nothing_to_show() -> None:
    assert Sources(report()).excerpt(replace(samples.COPY, ptx="")) is None


def test_embedding_reads_files_and_keeps_only_the_lines_around_accesses(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("".join(f"line {number}\n" for number in range(1, 101)))
    access = replace(samples.WRITE, file=str(file), line=50)
    embedded = embed(report(access))
    file.unlink()
    assert embedded.sources == {str(file): {number: f"line {number}" for number in range(48, 53)}}
    excerpt = Sources(embedded).excerpt(access)
    assert excerpt is not None
    assert [number for number, _, _ in excerpt.lines] == [48, 49, 50, 51, 52]


def test_embedding_covers_inlining_chains_and_survives_missing_files() -> None:
    embedded = embed(report(samples.READ, replace(samples.WRITE, file="/nowhere/x.cu")), of_texts({"reduce.cu": samples.REDUCE}))
    assert set(embedded.sources) == {"reduce.cu"}
    assert {8, 11} <= set(embedded.sources["reduce.cu"])


def test_a_renderer_reads_no_file_that_a_report_names(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the password\n" * 60)
    named = report(replace(samples.READ, file=str(secret), line=50, ptx=""))
    assert Sources(named).line(str(secret), 50) is None
    for render in (text.render, html.render, sarif.render):
        assert "the password" not in render(named)


def test_lines_on_disk_are_decoded_with_replacements(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_bytes(b"first\nsec\xffond\n")
    assert read_lines(str(file)) == ["first", "sec\ufffdond"]


@pytest.mark.parametrize("name", ["src/k.cu", "/home/builder/src/k.cu", "C:\\work\\src\\k.cu"])
def test_a_root_has_the_sources_of_another_machine(tmp_path: Path, name: str) -> None:
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "root" / "src" / "k.cu").write_text("one\n")
    assert within(tmp_path / "root")(name) == ["one"]


@pytest.mark.parametrize("name", ["../outside.cu", "link.cu", "/etc/passwd"])
def test_a_root_gives_no_file_outside_of_it(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.cu").write_text("outside\n")
    (root / "link.cu").symlink_to(tmp_path / "outside.cu")
    assert within(root)(name) == []


def test_where_threads_wait_is_shown_once_a_place_and_only_with_a_line_of_text() -> None:
    place = {"warp": 0, "file": "reduce.cu", "line": 8, "column": 5, "ptx_line": 40, "ptx": "@%p1 bar.sync 0;"}
    waiters = (place, {**place, "warp": 1}, {**place, "file": "gone.cu", "ptx": ""}, {"warp": 2})
    stuck = Finding("deadlock", "k", waiters=waiters)
    embedded = embed(assemble(device="cpu", findings=[stuck]), of_texts({"reduce.cu": samples.REDUCE}))
    assert set(embedded.sources["reduce.cu"]) >= {7, 8}
    (shown,) = Sources(embedded).waits(stuck)
    assert (shown.role, shown.op, shown.line) == ("waits here", "bar.sync", 8)
    assert Sources(embedded).waits(replace(stuck, accesses=(samples.READ,))) == []
    written = text.render(embedded)
    assert "  waits here  bar.sync\n" in written
    assert samples.REDUCE.splitlines()[7].strip() in written
    assert "waits here" in html.render(embedded)
    locations = json.loads(sarif.render(embedded))["runs"][0]["results"][0]["locations"]
    assert [each["physicalLocation"]["region"]["startLine"] for each in locations] == [8, 8]
