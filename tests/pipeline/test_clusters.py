"""Launches in clusters of several CTAs, which are not modelled: never clean where that matters, and never reported without reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from consan.__main__ import main
from consan.reports.model import Report
from consan.session import Session

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry barrier(){shape}
{{
  .reg .b32 %r<2>;
  .reg .pred %p<3>;
  .shared .align 8 .b64 full[1];
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [full], 1;
  bar.sync 0;
  @%p1 mbarrier.arrive.shared.b64 _, [full];
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
  @!%p2 bra AGAIN;
  ret;
}}
.visible .entry registers()
{{
  .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
  ret;
}}
"""
PLAIN, FIXED = KERNEL.format(shape=""), KERNEL.format(shape=" .reqnctapercluster 2, 1, 1")
REASON = "ran in clusters of 2 CTAs, which are not modelled"


def launched(text: str, entry: str, cluster: int) -> Report:
    session = Session(device="cpu")
    prepared = session.prepare(text)
    session.launch(prepared, entry, (2, 1, 1), (32, 1, 1), [], cluster=(cluster, 1, 1))
    return session.report()


@pytest.mark.parametrize(("text", "cluster"), [(PLAIN, 2), (FIXED, 2), (FIXED, 1)])
def test_a_kernel_with_mbarriers_in_a_cluster_is_incomplete(text: str, cluster: int) -> None:
    report = launched(text, "barrier", cluster)
    assert (report.verdict, report.findings) == ("incomplete", ())
    assert report.incomplete[0].startswith(f"barrier {REASON}")


@pytest.mark.parametrize(("text", "entry", "cluster"), [(PLAIN, "barrier", 1), (PLAIN, "registers", 2), (FIXED, "registers", 1)])
def test_what_clusters_do_not_concern_is_clean(text: str, entry: str, cluster: int) -> None:
    report = launched(text, entry, cluster)
    assert (report.verdict, report.incomplete) == ("clean", ())


def test_the_command_line(tmp_path: Path) -> None:
    file, out = tmp_path / "k.ptx", tmp_path / "r.json"
    file.write_text(PLAIN)
    words = ["--entry", "barrier", "--device", "cpu", "--grid", "4", "--block", "32", "--format", "json", "-o", str(out)]
    assert main(["check", str(file), *words, "--cluster", "2", "--strict"]) == 67
    assert json.loads(out.read_text())["incomplete"][0].startswith(f"barrier {REASON}")
    assert main(["check", str(file), *words, "--strict"]) == 0
