"""Every test of faults runs in a folder of its own that holds `k.ptx`."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults_support import MODULE


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(MODULE)
    return tmp_path
