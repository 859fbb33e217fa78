"""Triton's own sanitizer tests as a yardstick: which verdicts of consan agree with what those tests expect.

    python tests/bench/triton_sanitizer.py PATH/python/test/gluon/test_consan.py [-k WORDS] [--ctas 1,2] [--arch sm_100] [-o ROWS.json]
    python tests/bench/triton_sanitizer.py PATH/python/test/gsan/test_gsan.py    the same of GSan; test_gsan_failures.py, too

The file is Triton's, of the version that is installed, fetched by whoever runs this (nothing of it is kept here). Its tests run with
their own kernels, parameters and arguments, but Triton's instrumentation is switched off: the plain PTX, compiled for sm_90 (or --arch) as
for a real chip, runs on consan's virtual machine. What a test expects is asked of the test itself: each one runs its launch in a process of
its own and asserts what came of it, so it is shown a launch without a failure, then one with every failure, and the messages that it looks
for are noted. Tests for other chips are listed as not modelled. GSan's shadow cells and its allocator are not there: a test that reads
a cell finds what it wants.

`agree`: clean where the test expects nothing, and otherwise an error of a kind that means what Triton's message means (`MEANINGS`).
`kind`: errors, but of other kinds. Needs Triton, PyTorch (its CPU build will do) and pytest; no GPU. Does NOT handle: what a test
asserts about Triton itself (`NOT_VERDICTS`); a failed comparison of results is shown as a remark.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

# What a part of Triton's message means in kinds of ours; the first part that occurs counts.
MEANINGS = {
    "race detected": {"global-race", "scope"},
    "scope": {"global-race", "scope"},
    "pending access": {"missing-wait"},
    "outstanding": {"data-race", "missing-wait", "scope"},
    "fence_async_shared": {"missing-proxy-fence"},
    "deadlock": {"deadlock"},
    "barrier": {"barrier-misuse"},
}
NOT_VERDICTS = {"test_consan_uses_profile_scratch": "asks where Triton's own instrumentation keeps its memory"}
UNTOLD = ("not modelled", "skipped", "no verdict")  # outcomes that the table leaves out and the counts give
NEVER = "GSanLibrary.cu"  # a test wants the message not to name this file
ANY = "a failure"  # what a test expects that looks for no message
CTAS = "num_ctas"  # the parameter that gives the size of the cluster

Session = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Row:
    """One variant of one test; `expects`: Triton's test wants one of these messages, none for a clean launch."""

    test: str
    variant: str
    ctas: str
    outcome: str
    expects: tuple[str, ...] = ()
    verdict: str = ""
    kinds: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    remark: str = ""
    seconds: float = 0.0


class Heard(str):
    """Text that keeps what is looked for in it, and gives the answer that it was made with."""

    __slots__ = ("answer", "asked")

    def __new__(cls, answer: bool) -> Heard:
        made = super().__new__(cls, "everything" if answer else "nothing")
        made.answer, made.asked = answer, []
        return made

    def __contains__(self, part: object) -> bool:
        if part == NEVER:
            return False
        self.asked.append(str(part))
        return self.answer


class Anything:
    """A cell of GSan's shadow memory: it is as a test wants it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __getitem__(self, place: Any) -> Any:
        return Anything()

    def _yes(self, other: object) -> bool:
        return True

    __eq__ = __ne__ = __ge__ = __le__ = __gt__ = __lt__ = _yes  # type: ignore[assignment]
    __hash__ = object.__hash__

    def _same(self, other: object) -> Any:
        return Anything()

    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __mod__ = _same


class Result:
    """What Triton's helper returns of a process: the exception, and what the driver printed."""

    def __init__(self, failed: bool, printed: str) -> None:
        self.exc = RuntimeError("CUDA error: device-side assert triggered") if failed else None
        self.driver_stderr_output = printed


def judge(expects: Sequence[str], verdict: str, kinds: Sequence[str]) -> str:
    """`agree`, `kind`, `disagree`, or `incomplete` where consan does not say clean though it found nothing."""
    if not expects:
        return {"clean": "agree", "incomplete": "incomplete"}.get(verdict, "disagree")
    if verdict != "violations" or set(expects) == {ANY}:
        return "agree" if verdict == "violations" else "disagree"
    meant = set().union(*(next((kinds for part, kinds in MEANINGS.items() if part in text.lower()), set()) for text in expects))
    return "agree" if meant & set(kinds) else "kind"


def described(report: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of the errors, and one line for each finding."""
    lines = []
    for finding in report.findings:
        places = " / ".join(f"{access.role} {access.op} L{access.line} ptx {access.ptx_line}" for access in finding.accesses)
        lines.append(f"{finding.severity} {finding.kind} {finding.hazard or ''} {finding.message} [{places}] x{finding.count}")
    return tuple(sorted({finding.kind for finding in report.findings if finding.severity == "error"})), tuple(lines)


class Yardstick:
    """A plugin of pytest that runs each test its own way and keeps a row of it."""

    def __init__(self, session: Session, ctas: Sequence[int] = (), say: Callable[[Row], None] = lambda row: None) -> None:
        self.rows: list[Row] = []
        self._session, self._ctas, self._say = session, ctas, say

    # -- fixtures of Triton's conftest, which is not loaded ---------------------------------------------------------------------------

    @pytest.fixture
    def device(self) -> str:
        return "cuda"

    @pytest.fixture
    def process_pool(self) -> None:
        """No process is started."""

    @pytest.fixture
    def fresh_knobs(self) -> Any:
        """Those that there are: no test changes them here."""
        from triton import knobs

        return knobs

    @pytest.fixture
    def with_allocator(self) -> None:
        """Memory for the tensor maps that a kernel makes."""
        import torch
        import triton

        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

    # -- hooks ------------------------------------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        with self._session():  # the marks of the tests ask for the device
            return (yield)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            raise pytest.UsageError(str(report.longrepr))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not self._ctas or _params(item).get(CTAS, 1) in self._ctas]
        for item in [item for item in items if item.name.partition("[")[0] in NOT_VERDICTS]:
            items.remove(item)
            self._keep(Row(item.name, "", "", "no verdict", remark=NOT_VERDICTS[item.name.partition("[")[0]]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup" and report.outcome != "passed":
            reason = str(getattr(report, "wasxfail", "")) or str(report.longrepr)
            self._keep(Row(report.nodeid.rpartition("::")[2], "", "", "not modelled", remark=reason.removeprefix("reason: ")))

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        params = _params(pyfuncitem)
        variant = ", ".join(f"{name}={value}" for name, value in params.items() if name != CTAS)
        row = Row(pyfuncitem.originalname, variant, str(params.get(CTAS, 1)), "")
        started = time.perf_counter()
        try:
            row = self._run(pyfuncitem, row)
        except pytest.skip.Exception as skipped:
            row = replace(row, outcome="skipped", remark=str(skipped))
        self._keep(replace(row, seconds=round(time.perf_counter() - started, 1)))
        return True

    def _keep(self, row: Row) -> None:
        self.rows.append(row)
        self._say(row)

    # -- one test ---------------------------------------------------------------------------------------------------------------------

    def _run(self, item: pytest.Function, row: Row) -> Row:
        function = item.obj
        arguments = {name: item.funcargs[name] for name in inspect.signature(function).parameters}
        failures: list[str] = []

        def inside(client: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None, *rest: Any, **more: Any) -> Result:
            with noted(failures):
                client(*args, **(kwargs or {}))
            return Result(False, "")

        asked = mock.Mock(side_effect=inside)
        unasked: list[str] = []  # of a test that launches itself; one that asks a process may well refuse its answer
        with self._session() as report, noted(unasked), _helper(function, asked):
            function(**arguments)
        failures += [] if asked.called else unasked
        expects = tuple(_messages(function, arguments)) if asked.called else ()
        if not any(kernel.launches for kernel in report.kernels):
            return replace(row, outcome="not run", expects=expects, remark="; ".join(failures))
        kinds, findings = described(report)
        outcome = judge(expects, report.verdict, kinds)
        why = [*failures, *(report.incomplete if report.verdict == "incomplete" else ())]
        return replace(
            row, outcome=outcome, expects=expects, verdict=report.verdict, kinds=kinds, findings=findings, remark="; ".join(map(str, why))
        )


@contextlib.contextmanager
def noted(failures: list[str]) -> Iterator[None]:
    """Keep the first line of an exception, and go on."""
    try:
        yield
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), "")
        failures.append(f"{type(error).__name__}: {first}")


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}


def _helper(function: Any, stub: Any) -> AbstractContextManager[Any]:
    return mock.patch.dict(function.__globals__, {"run_in_process": stub})


def _messages(function: Any, arguments: dict[str, Any]) -> Iterator[str]:
    """What a test looks for in a failed launch; nothing where it is content with one that did not fail."""
    with contextlib.suppress(AssertionError), _helper(function, lambda *args, **kwargs: Result(False, "")):
        function(**arguments)
        return
    asked = []
    for answer in (True, False):
        heard = Heard(answer)
        with contextlib.suppress(AssertionError), _helper(function, lambda *args, heard=heard, **kwargs: Result(True, heard)):
            function(**arguments)
        asked += heard.asked
    yield from dict.fromkeys(asked or [ANY])


# -- on Triton ----------------------------------------------------------------------------------------------------------------------------


def on_the_machine(seed: int, arch: str, global_memory: str) -> Session:
    """Sessions on the virtual machine, with Triton's instrumentation off whatever a test asks for."""
    import triton

    import consan.triton

    type(triton.knobs.compilation).instrumentation_mode = property(lambda knobs: "", lambda knobs, value: None)
    return lambda: consan.triton.cpu(arch=arch, seed=seed, global_memory=global_memory)


def without_gsan() -> None:
    """GSan's pools give memory as any other, and nothing reads its shadow memory."""
    import torch
    from triton._C.libtriton import gsan_testing
    from triton.experimental import gsan
    from triton.experimental.gsan import _testing_utils

    gsan.create_mem_pool = lambda *_, **__: None
    torch.cuda.use_mem_pool = lambda *_, **__: contextlib.nullcontext()
    torch.cuda.device_count = lambda: 1
    gsan_testing.ScalarClock = lambda *_, **__: Anything()
    gsan_testing.SHADOW_GRANULARITY_BYTES = 4  # names that versions of the tests have and that of the library may lack
    _testing_utils.shadow_cell_from_address = _testing_utils.thread_state_from_smid = lambda *_, **__: Anything()


def run(file: Path, yardstick: Yardstick, words: str = "") -> None:
    """All tests of a file, or those that `words` (pytest's -k) select."""
    options = ["-c", os.devnull, "--rootdir", str(file.parent), "--noconftest", "--assert=plain", "-s", "-W", "ignore", "-k", words]
    plugins = ("terminal", "cacheprovider", "xdist", "timeout")
    status = pytest.main([str(file), *options, *itertools.chain.from_iterable(("-p", f"no:{name}") for name in plugins)], [yardstick])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"{file}: pytest ended with {pytest.ExitCode(status).name}")


def table(*rows: Sequence[str]) -> str:
    """Markdown; the first row is the head."""
    lines = ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def by_test(rows: Sequence[Row]) -> str:
    """How many variants of each test agree: those that Triton's test wants to fail, and the clean ones."""
    told = []
    for test, group in itertools.groupby(rows, key=lambda row: row.test):
        of_test = list(group)
        wrong, fine = [row for row in of_test if row.expects], [row for row in of_test if not row.expects]
        kinds = sorted({kind for row in wrong for kind in row.kinds})
        told.append((test, " ".join(sorted({row.ctas for row in of_test})), _agreeing(wrong), ", ".join(kinds), _agreeing(fine)))
    return table(("test", "CTAs", "faulty variants that agree", "kinds found in them", "clean variants that agree"), *told)


def _agreeing(rows: Sequence[Row]) -> str:
    return f"{sum(row.outcome == 'agree' for row in rows)} of {len(rows)}" if rows else ""


def differing(rows: Sequence[Row]) -> str:
    """The rows that do not agree, and those with a remark."""
    shown = [row for row in merged(rows) if row.outcome != "agree" or row.remark]
    told = [
        (row.test, row.variant, row.ctas, " or ".join(row.expects) or "clean", row.verdict, ", ".join(row.kinds), row.outcome, row.remark)
        for row in shown
    ]
    return table(("test", "variant", "CTAs", "Triton's test expects", "consan", "kinds of errors", "outcome", "remark"), *told)


def merged(rows: Sequence[Row]) -> list[Row]:
    """Rows that differ in the size of the cluster only become one."""
    groups: dict[Row, list[str]] = {}
    for row in rows:
        groups.setdefault(replace(row, ctas="", findings=(), seconds=0.0), []).append(row.ctas)
    return [replace(row, ctas=" ".join(ctas)) for row, ctas in groups.items()]


def _progress(row: Row) -> None:
    said = (row.verdict, ", ".join(row.kinds), f"{row.seconds} s", row.remark)
    print(f"{row.outcome:12} {row.test}[{row.variant}] {row.ctas}:", *filter(None, said), file=sys.stderr)


def stored(files: Sequence[Path]) -> list[Row]:
    """The rows of earlier runs; of a variant that ran twice, the later one, in the place of the first."""
    found: dict[tuple[str, str, str], Row] = {}
    for file in files:
        for told in json.loads(file.read_text()):
            row = Row(**{name: tuple(value) if isinstance(value, list) else value for name, value in told.items()})
            judged = judge(row.expects, row.verdict, row.kinds) if row.verdict else row.outcome
            found[row.test, row.variant, row.ctas] = replace(row, outcome=judged)
    return list(found.values())


def show(rows: Sequence[Row]) -> None:
    """The tables, and the counts."""
    judged = [row for row in rows if row.outcome not in UNTOLD]
    names = list(dict.fromkeys(row.test for row in judged))
    print(by_test(sorted(judged, key=lambda row: names.index(row.test))), differing(judged), sep="\n\n")
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in Counter(row.outcome for row in rows).most_common()))


def main() -> None:
    """Run the tests of a file, or show what earlier runs have stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="Triton's python/test/gluon/test_consan.py; or rows that -o has stored")
    parser.add_argument("-k", dest="words", default="", help="as pytest's -k")
    parser.add_argument("--ctas", default="", help="only these sizes of the cluster, as 1,2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arch", default="sm_90", help="the chip: sm_90 or sm_100")
    parser.add_argument("-o", dest="output", type=Path, help="store all rows, with their findings, as JSON")
    given = parser.parse_args()
    missing = next((file for file in given.files if not file.is_file()), None)
    if missing:
        parser.error(f"{missing}: no such file")
    if given.files[0].suffix == ".json":
        return show(stored(given.files))

    def keep(row: Row) -> None:  # at once: a run takes long, and somebody may stop it
        _progress(row)
        if given.output:
            given.output.write_text(json.dumps([asdict(row) for row in yardstick.rows], indent=1))

    is_gsan = given.files[0].name.startswith("test_gsan")
    if is_gsan:
        without_gsan()
    session = on_the_machine(given.seed, given.arch, "on" if is_gsan else "auto")
    yardstick = Yardstick(session, [int(count) for count in given.ctas.split(",") if count], keep)
    run(given.files[0], yardstick, given.words)
    return show(yardstick.rows)


if __name__ == "__main__":
    main()
