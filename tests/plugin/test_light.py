"""What the plugin costs who does not use it: no module of consan's but itself, no NumPy."""

from __future__ import annotations

from importlib import metadata

import pytest

pytest_plugins = ["pytester"]


def test_the_entry_point_is_there() -> None:
    """`pip install -e .` once more if this fails: entry points are written at installation."""
    ours = [entry for found in metadata.distributions() if found.name == "consan" for entry in found.entry_points]
    assert {(entry.name, entry.value) for entry in ours if entry.group == "pytest11"} == {("consan", "consan.plugin")}


def test_nothing_heavy_is_imported_where_it_is_not_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_it(pytestconfig):
            assert pytestconfig.pluginmanager.hasplugin("consan")
            ours = {name for name in sys.modules if name.partition(".")[0] == "consan"}
            assert ours == {"consan", "consan.late", "consan.plugin", "consan.plugin.keys"}
            assert not {"numpy", "rich", "cupy"} & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_the_options_and_markers_explain_themselves(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest_inprocess("--help").stdout.str()
    switches, others = ("", "-strict", "-allow-incomplete", "-notes"), ("-device=DEVICE", "-seed=SEED", "-report=REPORT")
    for option in (f"--consan{rest}" for rest in (*switches, *others)):
        assert option in shown
    assert "consan_report (string):" in shown
    markers = pytester.runpytest_inprocess("--markers").stdout.str()
    assert "@pytest.mark.consan(expect=KIND): " in markers
    assert "@pytest.mark.consan_allow(KIND, reason=..., kernel='*', source='*'): " in markers
    assert "consan.check()" in pytester.runpytest_inprocess("--fixtures", "-v").stdout.str()


def test_an_installed_consan_keeps_its_assertions(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest rewrites those of all files of an installation that has a plugin; a checkout does not list them."""
    installed = pytester.mkdir("consan-1.dist-info")
    for name, text in {
        "METADATA": "Metadata-Version: 2.1\nName: consan\nVersion: 1\n",
        "RECORD": "consan/__init__.py,,\nconsan/late.py,,\n",
        "entry_points.txt": "[pytest11]\nconsan = consan.plugin\n",
    }.items():
        (installed / name).write_text(text)
    monkeypatch.syspath_prepend(str(pytester.path))
    pytester.makepyfile("from consan import suggest\ndef test_it(): assert '@pytest_ar' not in vars(suggest)")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
