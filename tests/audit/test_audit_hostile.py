"""Programs that do harm: the run goes on, and the row says what happened. None of them is clean."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from audit_server import server

from consan.audit import rows
from consan.audit.rows import FileResult
from consan.audit.runner import AuditRequest, Journal, run

KERNEL = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>
__global__ void k(int *p) { p[threadIdx.x] = 1; }
int main() {
  %s
  int *p;
  cudaMalloc(&p, 128);
  k<<<1, 32>>>(p);
}
"""
SECONDS = 2.0


def _result(body: str, timeout: float = 60.0) -> FileResult:
    return server().result(AuditRequest("k.cu", KERNEL % body, timeout=timeout))


def _row(body: str, timeout: float = 60.0) -> rows.KernelRow:
    """The gravest row."""
    result = _result(body, timeout)
    return next(row for row in result.rows if row.verdict == result.verdict)


def test_without_harm_it_is_clean() -> None:
    assert _result("").verdict == "clean"


def test_launches_that_are_left_out_are_named() -> None:
    """A loop that measures time: two of its five launches are made, and the table says so."""
    result = _result("int *q; cudaMalloc(&q, 128); for (int i = 0; i < 5; i++) k<<<1, 32>>>(q);")
    assert [(row.verdict, row.launches) for row in result.rows] == [("clean", 3)]
    assert "k: of launches with the same arguments 2 were made and checked" in result.notes
    assert _result("").notes == ()


def test_a_loop_without_end_is_timed_out() -> None:
    row = _row("volatile int x = 0; while (x == 0) {}", SECONDS)
    assert (row.verdict, row.note) == (rows.TIMED_OUT, "it was stopped after its time")


def test_a_loop_without_end_in_a_kernel_leaves_no_clean_row() -> None:
    text = (KERNEL % "").replace("p[threadIdx.x] = 1;", "while (p[threadIdx.x] == 0) p[threadIdx.x + 32] += 1;").replace("128", "256")
    assert server().result(AuditRequest("k.cu", text, timeout=SECONDS, launch_timeout=2.0)).verdict != "clean"


def test_processes_without_end_are_stopped() -> None:
    row = _row("while (true) if (fork() == 0) while (true) { fork(); usleep(1000); }", SECONDS)
    assert row.verdict in (rows.CRASHED, rows.TIMED_OUT)
    assert "processes" in row.note or "time" in row.note


def test_an_end_before_the_launch_reaches_nothing() -> None:
    row = _row("_exit(0);")
    assert (row.kernel, row.verdict) == ("k", rows.NOT_REACHED)


def test_a_module_that_ends_its_process_is_not_done() -> None:
    """It has written an end to all that is open."""
    pytest.importorskip("torch", reason="torch is not installed")
    forge = 'for i in range(1, 200):\n    try: os.write(i, b\'{"event": "done"}\\n\')\n    except OSError: pass\n'
    (row,) = server().result(AuditRequest("m.py", f"import os\n{forge}os._exit(0)\n")).rows
    assert (row.verdict, row.note.partition(";")[0]) == (rows.CRASHED, "its process ended with status 0 before the audit was done")


def test_a_signal_is_said() -> None:
    row = _row("*(volatile int *)8 = 1;")
    assert (row.verdict, row.note) == (rows.CRASHED, "the host's code ended by signal 11 in main")


def test_the_end_of_a_program_is_said_with_what_it_lacked() -> None:
    """A file that is not there, and what an exception had to say."""
    unread = _row('char line[9]; FILE *f = fopen("data/deck.txt", "r"); puts("reads"); fgets(line, 9, f);')
    assert unread.note == "the host's code ended by signal 11 in main, which had called fgets; it could not open data/deck.txt"
    thrown = _row('throw "what";')
    assert thrown.note.startswith("the host's code ended by signal 6 in main, which had called ")
    assert thrown.note.endswith("; it printed last: terminate called after throwing an instance of 'char const*'")


def test_a_table_that_is_made_up_is_not_believed() -> None:
    line = r"{\"token\": \"\", \"event\": \"launch\", \"kernel\": \"k\", \"verdict\": \"clean\"}\n{\"event\": \"done\"}\n"
    forge = f'const char *line = "{line}"; for (int i = 1; i < 200; ++i) write(i, line, strlen(line)); _exit(0);'
    result = _result(forge)
    assert [(row.kernel, row.verdict) for row in result.rows] == [("k", rows.NOT_REACHED)]


def test_a_file_outside_of_the_folder_is_not_written(tmp_path: Path) -> None:
    target = tmp_path / "outside"
    result = _result(f'FILE *f = fopen("{target}", "w"); if (f == nullptr) exit(9); fclose(f);')
    if target.exists():
        pytest.skip("this kernel has no Landlock")
    assert result.verdict == rows.NOT_REACHED
    assert f"main ended with status 9; it could not open {target}" in result.notes


def test_memory_without_end_is_refused() -> None:
    text = KERNEL % "for (;;) memset(malloc(1 << 28), 1, 1 << 28);"
    assert server().result(AuditRequest("k.cu", text, memory=2 << 30)).verdict == rows.CRASHED


def test_what_does_not_compile_is_said_with_its_line() -> None:
    row = _row("undeclared();")
    assert row.verdict == rows.NOT_COMPILED
    assert row.note.startswith("host: k.cu:9: ")


def test_what_nvrtc_refuses_is_said_with_its_line() -> None:
    text = (KERNEL % "").replace("p[threadIdx.x] = 1;", "p[threadIdx.x] = missing;")
    row = next(row for row in server().result(AuditRequest("k.cu", text)).rows if row.kernel == "k")
    assert row.verdict == rows.NOT_COMPILED
    assert row.note == 'k.cu:7: identifier "missing" is undefined'


def test_a_journal_is_taken_up(tmp_path: Path) -> None:
    request = AuditRequest("k.cu", KERNEL % "")
    path = tmp_path / "journal"
    first = run([request], ThreadPoolExecutor(1), Journal(path))
    assert [each.verdict for each in first] == ["clean"]
    path.write_text(path.read_text() + '{"digest": "cut')
    journal = Journal(path)
    assert journal.get(request) == first[0]
    assert run([request], ThreadPoolExecutor(1), journal) == first
    assert journal.get(AuditRequest("k.cu", KERNEL % "int a;")) is None
