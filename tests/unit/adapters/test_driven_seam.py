"""The stand-in driver goes with the adapter that has put it in front, and takes no other's away."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from seam_fakes import FakeSession

from consan.adapters.driven import seam
from consan.adapters.driven.seam import DrivenSeam


class Framework(DrivenSeam):
    """An adapter of a framework that was imported before."""

    name = package = "json"

    def __init__(self, *, known: bool) -> None:
        super().__init__()
        self.known, self.folders = known, list[Path]()

    def _begin(self, module: ModuleType) -> None:
        self._patches.set(module, "loads", None)
        self.folders = [self._own_folder(), self._own_folder()]
        if self.known:
            self._enter()
            self._enter()


@pytest.mark.parametrize("known", [True, False])
def test_the_driver_is_left_as_often_as_it_was_entered(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that is not known has patches, and no driver."""
    calls: list[str] = []
    monkeypatch.setattr(seam.library, "enter", lambda session: calls.append("enter"))
    monkeypatch.setattr(seam.library, "leave", lambda: calls.append("leave"))
    adapter, session = Framework(known=known), FakeSession()
    adapter.install(session)
    adapter.install(session)
    assert adapter.folders[0] == adapter.folders[1]
    assert adapter.folders[0].is_dir()
    adapter.remove()
    adapter.remove()
    assert calls == ["enter", "leave"] * 2 * known
    assert not adapter.folders[0].exists()
