"""Provers' own suites through `consan check` and `consan prove`, against their labels: a table, and each case that differs.

    python tests/suites/prover_suites.py gpuverify CHECKOUT            GPUVerify's CUDA tests (prover_cases.py names repository and commit)
    python tests/suites/prover_suites.py benchmarks CHECKOUT --only CUDA20 --full
    python tests/suites/prover_suites.py faial CHECKOUT -o faial.jsonl

Each kernel of a file is launched once by `consan check` with its defaults, on the virtual machine: buffers of zeros (of 0, 1, 2 ... if that
gives warnings only, which are about equal values), and for integers values with which the suite's conditions hold. `consan prove` gets the
suite's grid and those conditions as assumptions, as the suite's own tool does. Tests of cuRAND need its headers: `--include FOLDER`.
A file is found racy where one of its kernels has an error of a race or of a barrier.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from prover_cases import CLEAN, OTHER, RACY, SUITES, Labelled, cases_of, values_for

from consan.__main__ import main as consan
from consan._errors import ConsanError
from consan.commands.parts.signatures import argument_for
from consan.instrument.ptx import Function, parse
from consan.launching.declarations import declarations
from consan.launching.entries import entries_of, has_dynamic_shared
from consan.launching.parameter_kind import POINTER
from consan.launching.signature import kinds_of
from consan.launching.source import compile_for
from consan.prove.assumptions import Assumption, names_of
from consan.prove.values.by_many import ONE_VALUE
from consan.reports.source.names import function_name
from consan.session.modules.device import shared_device

RACES: Final = ("data-race", "global-race", "scope", "missing-wait", "missing-order", "barrier-misuse", "deadlock")
WORST: Final = ("clean", "warned", "found", "other", "incomplete", "failed")  # the last one of a file's kernels counts, but `found` first
COLUMNS: Final = ("found", "warned", "clean", "other", "incomplete", "failed")
ANSWERS: Final = ("proven", "one value", "counterexample", "unknown", "failed")  # one value: nothing but stores of one may meet
_COUNTEREXAMPLE: Final = ANSWERS.index("counterexample")
_ELEMENTS: Final = 1 << 20
_FILLERS: Final = ("zeros", "arange")
_ADDRESS: Final = 8  # bytes
_INCLUDED: Final = list[str]()  # folders of headers that the command line names


@dataclass
class Row:
    """What consan said of a file. `check`, `prove`: a word; `why`: findings, reasons; seconds of processor time."""

    suite: str
    name: str
    label: str
    check: str = ""
    prove: str = ""
    why: list[str] = field(default_factory=list)
    check_seconds: float = 0.0
    prove_seconds: float = 0.0

    @property
    def differs(self) -> bool:
        """Whether a person has to look."""
        right = {RACY: ("found",), CLEAN: ("clean",)}.get(self.label, ("clean", "found", "other", "warned", "incomplete", "failed"))
        return (
            self.check not in right
            or (self.label == RACY and self.prove == "proven")
            or (self.label == CLEAN and self.prove == "counterexample")
        )


@dataclass(frozen=True)
class _Kernel:
    """A kernel of a file, and the options that describe its launch."""

    symbol: str
    arguments: tuple[str, ...]
    assumed: tuple[str, ...]
    in_part: bool  # a condition of the suite's is not among these, so a counterexample may break it
    dynamic: bool


def judge(case: Labelled, into: Path, *, seconds: float) -> Row:
    """Check and prove the kernels of a file."""
    row, file = Row(case.suite, case.name, case.label), into / f"{case.name.replace('/', '.')}.cu"
    file.write_text(case.text())
    try:
        kernels = list(_kernels(case, file))
    except ConsanError as error:
        row.check = row.prove = "failed"
        row.why.append(" ".join(str(error).split()[:40]))
        return row
    for kernel in kernels:
        _check(case, file, kernel, row, seconds)
        _prove(case, file, kernel, row, seconds)
        shared_device("cpu").modules.clear()
    return row


def _kernels(case: Labelled, file: Path) -> Iterator[_Kernel]:
    source = file.read_text()
    made, _ = compile_for(
        source, case.entry, name=str(file), arch="sm_90a", std="c++17", include_dirs=_folders(case),
        defines=dict(each.partition("=")[::2] for each in case.defines), optimised=True,
    )  # fmt: skip
    module = parse(made.ptx, str(file))
    for entry in entries_of(module):
        kinds = kinds_of(entry, lambda: source)
        pointers = [place for place, kind in enumerate(kinds) if kind.kind == POINTER]
        declared = _declared(entry, source)
        names = names_of(entry.params, declared, pointers)
        values = values_for(list(names), case.requires, case.block[0] * case.block[1] * case.block[2])
        by_symbol = {symbol: values[name] for name, (symbol, _) in names.items()}
        specs = tuple(_argument(parameter, place in pointers, by_symbol) for place, parameter in enumerate(entry.params))
        assumed, in_part = tuple(_assumptions(case, names)), not all(_is_assumption(text, names) for text in case.requires)
        yield _Kernel(case.entry or entry.name, specs, assumed, in_part, has_dynamic_shared(module))


def _folders(case: Labelled) -> tuple[str, ...]:
    return str(case.path.parent), *_INCLUDED


def _declared(entry: Function, source: str) -> list[str]:
    name = function_name(entry.name).rpartition("::")[2].partition("<")[0]
    found = [each for each in declarations(source) if each.name == name]
    return [text.replace("[", " ").replace("*", " ").split()[-1] for text in found[0].parameters] if len(found) == 1 else []


def _argument(parameter: Any, is_pointer: bool, values: dict[str, int]) -> str:
    if is_pointer:
        return f"i32[{_ELEMENTS}]=zeros"
    if parameter.name in values:
        kind, bits = "i" if parameter.type[0] == "s" else "u", 8 * parameter.nbytes
        return f"{kind}{bits}={min(values[parameter.name], (1 << bits - 1) - 1)}"
    if parameter.size is not None and parameter.nbytes % _ADDRESS == 0:  # a struct: of addresses, as far as is known
        return "struct:" + ";".join([f"i32[{_ELEMENTS}]=zeros"] * (parameter.nbytes // _ADDRESS))
    return argument_for(parameter, "")


def _assumptions(case: Labelled, names: dict[str, tuple[str, int]]) -> Iterator[str]:
    yield " and ".join(f"gridDim.{axis} == {extent}" for axis, extent in zip("xyz", case.grid, strict=True))
    yield from (text for text in case.requires if _is_assumption(text, names))


def _is_assumption(text: str, names: dict[str, tuple[str, int]]) -> bool:
    """Whether `--assume` takes a condition."""
    try:
        Assumption(text, names)
    except (ConsanError, ValueError):
        return False
    return True


def _consan(words: list[str]) -> tuple[Any, str]:
    """A command's JSON document (None: there is none) and what it said on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        consan([*words, "--format", "json"])
    try:
        return json.loads(out.getvalue()), err.getvalue()
    except json.JSONDecodeError:
        return None, err.getvalue() or out.getvalue()


def _common(case: Labelled, file: Path, kernel: _Kernel) -> list[str]:
    words = [str(file), "--block", ",".join(map(str, case.block)), "--entry", kernel.symbol]
    words += [word for each in _folders(case) for word in ("-I", each)]
    return [*words, *(word for each in case.defines for word in ("--define", each))]


def _check(case: Labelled, file: Path, kernel: _Kernel, row: Row, seconds: float) -> None:
    began = time.process_time()
    for filler in _FILLERS:
        found, why = _checked(case, file, kernel, filler, seconds)
        if found != "warned":  # else the values of this run may be alike
            break
    row.check_seconds += time.process_time() - began
    row.why += why
    if not row.check or (found == "found" or (row.check != "found" and WORST.index(found) > WORST.index(row.check))):
        row.check = found


def _checked(case: Labelled, file: Path, kernel: _Kernel, filler: str, seconds: float) -> tuple[str, list[str]]:
    """The outcome of one launch, and why."""
    grid = ",".join(map(str, case.run_grid()))
    words = ["check", *_common(case, file, kernel), "--grid", grid, "--device", "cpu", "--timeout", str(seconds)]
    words += [word for each in kernel.arguments for word in ("--arg", each.replace("=zeros", f"={filler}"))]
    page, said = _consan([*words, *(["--smem", "16K"] if kernel.dynamic else [])])
    if page is None:
        return "failed", [" ".join(said.split()[:40])]
    kinds = {(each["kind"], each["severity"]) for each in page["findings"] if each["severity"] != "note"}
    found = _outcome(page["verdict"], kinds)
    why = sorted(f"{kind} {severity}" for kind, severity in kinds)
    return found, [*why, *(str(each)[:150] for each in page["not_checked"] if found == "incomplete")]


def _outcome(verdict: str, kinds: set[tuple[str, str]]) -> str:
    if any(kind in RACES and severity == "error" for kind, severity in kinds):
        return "found"
    if any(severity == "error" for _, severity in kinds):
        return "other"
    return "warned" if kinds else verdict


def _prove(case: Labelled, file: Path, kernel: _Kernel, row: Row, seconds: float) -> None:
    began = time.process_time()
    words = ["prove", *_common(case, file, kernel), "--within", str(seconds)]
    page, said = _consan([*words, *(word for each in kernel.assumed for word in ("--assume", each))])
    row.prove_seconds += time.process_time() - began
    answer = "failed" if page is None else _answer(page)
    answer = "unknown" if answer == "counterexample" and kernel.in_part else answer
    row.why += [f"prove: {' '.join(said.split()[:40])}"] if page is None else [f"prove: {each['why']}" for each in page["reasons"][:3]]
    if not row.prove or ANSWERS.index(answer) > ANSWERS.index(row.prove) != _COUNTEREXAMPLE:
        row.prove = answer


def _answer(page: Any) -> str:
    return "one value" if any(ONE_VALUE in each for each in page["assumptions"]) else str(page["answer"])


def table(rows: list[Row]) -> str:
    """Files by label: what `check` and `prove` said, and the seconds of processor time, median and most."""
    head = ["label", "files", *COLUMNS, *(f"prove: {each}" for each in ANSWERS), "seconds, check", "seconds, prove"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for label in (RACY, CLEAN, OTHER):
        own = [row for row in rows if row.label == label]
        checks, answers = collections.Counter(row.check for row in own), collections.Counter(row.prove for row in own)
        times = [_median([row.check_seconds for row in own]), _median([row.prove_seconds for row in own])]
        cells = [label, len(own), *(checks[each] for each in COLUMNS), *(answers[each] for each in ANSWERS), *times]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _median(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 2]:.1f}; {ordered[-1]:.1f}" if ordered else ""


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose name contains this")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="only each Nth of the files with a label, in the order of their names"
    )
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="K", help="of these, begin with number K")
    parser.add_argument("--full", action="store_true", help="each file, not only those that differ")
    parser.add_argument("--within", type=float, default=20.0, metavar="SECONDS", help="of a check, and of a proof [20]")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a JSON object a line for each file")
    parser.add_argument("--include", action="append", default=[], metavar="FOLDER", help="headers")
    options = parser.parse_args()
    _INCLUDED.extend(options.include)
    rows = []
    with tempfile.TemporaryDirectory() as folder, (options.output or Path("/dev/null")).open("a") as out:
        for number, case in enumerate(cases_of(options.suite, options.checkout)):
            if options.only in case.name and number % options.every == options.first:
                rows.append(judge(case, Path(folder), seconds=options.within))
                print(json.dumps(asdict(rows[-1])), file=out, flush=True)
                print(f"{rows[-1].name}: {rows[-1].label}: {rows[-1].check}, {rows[-1].prove}", file=sys.stderr, flush=True)
    for row in rows:
        if options.full or row.differs:
            print(f"{row.name}: {row.label}; check: {row.check}; prove: {row.prove}; {'; '.join(dict.fromkeys(row.why))}")
    print(table(rows))


if __name__ == "__main__":
    main()
