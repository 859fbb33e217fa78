"""Real bugs in small: how each is launched. Kernels of the tutorials and of `tests/kernels/twins` are used where they have the shape."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import twin_file

from consan.reports.formats import html, json_format, sarif
from consan.reports.model import Report

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEED = "7"
DATE = datetime(2026, 1, 1, tzinfo=timezone.utc)
VERSION = "VERSION"


@dataclass(frozen=True)
class Bug:
    """One bug: the file from the root of the repository, and the rest of the command."""

    name: str
    kind: str
    severity: str
    file: str
    words: tuple[str, ...]

    def run(self, folder: Path) -> Report:
        """The report of `consan check`, in a process of its own, read back from the run that it stored."""
        stored = folder / f"{self.name}.json"
        words = [self.file, "--device", "cpu", "--seed", SEED, *self.words]
        command = [sys.executable, "-m", "consan", "check", "-q", *words, "-o", str(stored)]
        subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=False)
        report = json_format.loads(stored.read_text(encoding="utf-8"))
        kernels = tuple(replace(kernel, recalled=0) for kernel in report.kernels)  # whatever ran on this machine before
        return replace(report, command=("consan", "check", *words), version=VERSION, kernels=kernels)


def _twin(name: str, kind: str, twin: str, severity: str = "error") -> Bug:
    """A racy twin, launched as its header says."""
    path = ROOT / "tests" / "kernels" / "twins" / f"{twin}.cu"
    spec = twin_file.read(path)
    shape = [(option, ",".join(map(str, getattr(spec, option)))) for option in ("grid", "block")]
    launch = [word for option, value in shape for word in (f"--{option}", value)]
    args = [line.split(" ", 3)[3] for line in path.read_text().splitlines() if line.startswith("// arg: ")]
    given = [word for arg in args for word in ("--arg", arg)]
    policy = ["--policy", "isa"] if spec.policy == "isa" else []
    words = ("-D", "RACY=1", "--arch", spec.arch, *launch, *policy, *given)
    return Bug(name, kind, severity, str(path.relative_to(ROOT)), words)


def _words(grid: str, block: int, *args: str) -> tuple[str, ...]:
    return ("--grid", grid, "--block", str(block), *(word for arg in args for word in ("--arg", arg)))


BUGS = (
    Bug(
        "epilogue_over_tile_in_flight", "missing-wait", "error", "tutorials/02_missing_cp_async_wait/exercise.cu",
        _words("2,2", 64, "f32[3072]=random", "f32[3072]=random", "f32[1024]=zeros", "i32=32", "i32=96"),
    ),
    Bug(
        "storage_reused", "data-race", "error", "tests/reports_gold/storage_reused.cu",
        _words("1", 128, "f32[128]=random", "f32[2]=zeros"),
    ),
    _twin("fence_by_the_issuer_only", "missing-proxy-fence", "tma_epilogue_issuer_fences", "note"),
    _twin("bulk_store_without_fence", "missing-proxy-fence", "bulk_store_no_proxy_fence"),
    _twin("epilogue_over_wgmma_operand", "missing-wait", "wgmma_epilogue_over_operand"),
    Bug(
        "multicast_not_waited", "missing-wait", "error", "tutorials/06_flaky_multicast/exercise.cu",
        ("--arch", "sm_90", *_words("2", 64, "f32[64]=random", "f32[256]=random", "f32[128]=zeros", "i32=4")),
    ),
    _twin("syncthreads_in_a_branch", "barrier-misuse", "divergent_syncthreads"),
)  # fmt: skip


def page(report: Report) -> str:
    """The page without its style sheet and script, which are the same in each, and without their hashes (`test_report_html.py`)."""
    text = html.render(report, DATE)
    for tag in ("style", "script"):
        head, rest = text.split(f"<{tag}>", 1)
        text = f"{head}<{tag}></{tag}>{rest.split(f'</{tag}>', 1)[1]}"
    return re.sub(r"'sha256-[\w+/=]+'", "'sha256-HASH'", text)


def log(report: Report) -> str:
    """The SARIF log without the version and the folder of this machine; of the rules, which are the same in each, only the names."""
    data = json.loads(sarif.render(report).replace(f"{ROOT.as_uri()}/", "file:///ROOT/"))
    driver = data["runs"][0]["tool"]["driver"]
    driver.update(version=VERSION, rules=[{"id": rule["id"]} for rule in driver["rules"]])
    return json.dumps(data, indent=1) + "\n"
