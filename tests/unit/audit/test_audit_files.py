"""The files of an audit, and what belongs to each."""

from __future__ import annotations

from pathlib import Path

import pytest

from consan._errors import UsageError
from consan.audit import sources_in
from consan.audit.files import launches_of


def test_of_a_folder_files_with_kernels_are_taken(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    texts = {"inner/a.cu": "", "b.ptx": "", "c.py": "@triton.jit", "d.py": "print()", "e.toml": "", "b.toml": "[[launch]]"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert [str(each.relative_to(tmp_path.resolve())) for each in sources_in(tmp_path)] == ["b.ptx", "c.py", "inner/a.cu"]
    assert sources_in(tmp_path / "d.py", str(tmp_path / "d.py")) == [(tmp_path / "d.py").resolve()]
    assert (launches_of(tmp_path / "b.ptx"), launches_of(tmp_path / "inner/a.cu")) == ("[[launch]]", None)


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \.cu, \.py or \.ptx file in"):
        sources_in(tmp_path)
    with pytest.raises(UsageError, match=r"expected a \.cu, \.py or \.ptx file"):
        sources_in(tmp_path / "e.toml")
