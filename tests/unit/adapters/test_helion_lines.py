"""Lines of a Helion program in the PTX of what Helion has generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan.adapters import sources
from consan.adapters.triton import helion

GENERATED = """import triton.language as tl
from helion.runtime import default_launcher as _default_launcher

def _helion_k(x):
    pid = tl.program_id(0)
    # src[program.py:22]: for tile in hl.tile(x.size(0)):
    # src[program.py:23-24]: part = x[tile, :]
    part = tl.load(x + pid)
    tl.store(x, part)
"""


def ptx(generated: Path) -> str:
    return f"""\t.loc\t1 5 10
\t.loc\t1 8 3 discriminator 2
\t.loc\t2 9 1, function_name $L__info0, inlined_at 1 9 7
\t.file\t1 "{generated}"
\t.file\t2 "/site/triton/language/standard.py"
"""


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    (tmp_path / "made.py").write_text(GENERATED)
    return tmp_path / "made.py"


def test_places_become_those_of_the_statement_above(generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "user_file", lambda name: f"/home/me/{name}")
    text = helion.with_lines(ptx(generated)).splitlines()
    assert text[0] == "\t.loc\t1 5 10", "nothing is known above the first comment"
    assert text[1] == "\t.loc\t3 23 1 discriminator 2"
    assert text[2] == "\t.loc\t2 9 1, function_name $L__info0, inlined_at 3 23 1"
    assert text[-1] == '\t.file\t3 "/home/me/program.py"'


def test_other_text_is_unchanged(generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "user_file", lambda name: "")
    assert helion.with_lines(ptx(generated)) == ptx(generated), "no file of the program has that name, or several do"
    other = generated.with_name("other.py")
    other.write_text(GENERATED.replace("helion.runtime", "other"))
    monkeypatch.setattr(sources, "user_file", lambda name: f"/home/me/{name}")
    assert helion.with_lines(ptx(other)) == ptx(other)


def test_one_file_of_the_program_has_a_name() -> None:
    assert sources.user_file(Path(__file__).name) == str(Path(__file__).absolute())
    assert sources.user_file("no such file.py") == ""
