"""The modules of this folder as files to audit: each as it is, and with its bug; and programs that do not reach all of their kernels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / "modules"
_EXPECT = "// expect: "


def _expectations(path: Path) -> list[str]:
    return [line.removeprefix(_EXPECT) for line in path.read_text().splitlines() if line.startswith(_EXPECT)]


@dataclass(frozen=True)
class AuditModule:
    """One file. `kernel` is reported with `kind` (any, if it is a star) where the file is built with its bug."""

    path: Path

    @property
    def expected(self) -> tuple[str, str]:
        """The kernel with the bug, and the kind of the finding."""
        kernel, kind = _expectations(self.path)[0].rsplit(" ", 1)
        return kernel, kind

    def written(self, folder: Path) -> dict[Path, bool]:
        """Both files, and whether they have the bug. Lines are the same in both."""
        text = self.path.read_text()
        right, wrong = folder / self.path.name, folder / f"{self.path.stem}_bug.cu"
        right.write_text(text)
        wrong.write_text(text.replace(_EXPECT, f"#define BUG {_EXPECT}"))
        return {right: False, wrong: True}


MODULES = [AuditModule(path) for path in sorted(FOLDER.glob("*.cu"))]
UNREACHED = {path: dict(line.split(" ", 1) for line in _expectations(path)) for path in sorted((HERE / "unreached").glob("*.cu"))}
"""Programs that are right without some of their kernels: the verdict of each kernel."""
