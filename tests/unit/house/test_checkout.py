"""A checkout is importable as it is: `python -m pytest` in it tests its own files, however consan is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_WITHOUT_INSTALLATION = """
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in getattr(each, "__name__", "").lower()]
sys.path[:] = ["", *(each for each in sys.path if each != {root!r})]
import consan, consan.instrument.ptx, consan.reports.model
print(consan.__file__, consan.instrument.__file__, consan.reports.__file__, sep="\\n")
"""


def test_the_folders_beside_the_package_belong_to_it() -> None:
    code = _WITHOUT_INSTALLATION.format(root=str(ROOT))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [Path(line).parent for line in done.stdout.split()] == [ROOT / "consan", ROOT / "instrument", ROOT / "reports"]
