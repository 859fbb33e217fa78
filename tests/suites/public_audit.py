"""The sets of kernels of AUDIT.md: brings their files here, and counts what `consan audit` said of them.

    python tests/suites/public_audit.py fetch --into SETS                  each set of audit.toml, as a folder of SETS
    python tests/suites/public_audit.py fetch --into SETS llm.c CUDA-L1    two of them
    python tests/suites/public_audit.py table --sets SETS audit.json ...   the rates, from what `consan audit` wrote of these folders
    python tests/suites/public_audit.py findings                           the errors as read, for AUDIT.md

`fetch` needs git alone: it takes one commit of each repository from github.com, or from a folder of mirrors (`--mirrors`, or the variable
PUBLIC_MIRRORS) that has OWNER/NAME.git, OWNER/NAME or OWNER+NAME/repo. A set that is there is left as it is. SETS/llm.c.files lists the
files of a set that are audited, a line each (AUDIT.md has the command). `table` prints text; `-o` writes JSON, too. audit_findings.toml
has the judgement of each error that was read. An error without one counts as unread, not as benign.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


HERE: Final = Path(__file__).resolve().parent
MIRRORS: Final = "PUBLIC_MIRRORS"  # not CONSAN_*: consan warns of those that it does not know
_ERRORS: Final = ("violations", "wrong result")
_UNREACHED: Final = ("not reached", "timed out", "crashed")
_MIRROR_FORMS: Final = ("{0}/{1}.git", "{0}/{1}", "{0}+{1}/repo")


@dataclass(frozen=True)
class PublicSet:
    """A set of audit.toml. `files`: globs of what is audited; `beside`: of headers and Makefiles; `without`: of what is left out.

    `contains`: a pattern that a file has to have. `every`: one file in so many, by name. `problem`: the path of a problem of KernelBench
    with `{}` for its level and number, which the pattern `named` finds in a solution's name, or a JSON file `index`. It is appended to the
    solution. `launches`: files of the folder launches for the sources that a glob names: launch files, or modules that call a source's
    functions, which are audited in place of it.
    """

    name: str
    repository: str
    commit: str
    files: tuple[str, ...]
    beside: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    contains: str = ""
    every: int = 1
    problem: str = ""
    named: str = ""
    index: str = ""
    launches: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PublicSet:
        """A table of the file."""
        return cls(**_frozen(given))


def _frozen(table: Mapping[str, Any]) -> dict[str, Any]:
    """Its lists as tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def public_sets(path: Path = HERE / "audit.toml") -> list[PublicSet]:
    """All sets."""
    return [PublicSet.of(each) for each in tomllib.loads(path.read_text())["set"]]


# -- fetching -----------------------------------------------------------------------------------------------------------------


def _git(*arguments: str, at: Path) -> str:
    done = subprocess.run(["git", "-C", str(at), *arguments], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments[:2])}: {done.stderr.strip()}")
    return done.stdout


def _bring(chosen: PublicSet, mirrors: Path | None, whole: Path) -> None:
    """The commit of a set, into an empty repository.

    A mirror may lack large files, and then git cannot fetch from it: its objects are shared.
    """
    if mirrors is None:
        _git("fetch", "-q", "--depth", "1", f"https://github.com/{chosen.repository}.git", chosen.commit, at=whole)
        return
    places = [mirrors / form.format(*chosen.repository.split("/")) for form in _MIRROR_FORMS]
    found = [each for each in places if each.is_dir()]
    if not found:
        raise SystemExit(f"{chosen.repository}: not in {mirrors}")
    objects = _git("rev-parse", "--path-format=absolute", "--git-path", "objects", at=found[0]).strip()
    (whole / ".git/objects/info/alternates").write_text(f"{objects}\n")


def fetch(chosen: PublicSet, into: Path, mirrors: Path | None) -> int:
    """Bring the files of a set, and list those that are audited; how many these are."""
    folder = into.resolve() / chosen.name
    if folder.exists():
        return _listed(chosen, folder)
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as made:
        whole = Path(made) / "set"
        whole.mkdir()
        _git("init", "-q", at=whole)
        _bring(chosen, mirrors, whole)
        wanted = [*chosen.files, *chosen.beside, *filter(None, [chosen.index, chosen.problem.format("*", "*")])]
        _git("checkout", "-q", chosen.commit, "--", *(f":(glob){each}" for each in wanted), at=whole)
        _append_problems(chosen, whole)
        for sources, launches in chosen.launches.items():
            for source in _matching([sources], whole):
                shutil.copyfile(HERE / "launches" / launches, _beside(source, launches))
        whole.rename(folder)
    return _listed(chosen, folder)


def _listed(chosen: PublicSet, folder: Path) -> int:
    """Write the list of the files that are audited; how many they are."""
    found = _sample(chosen, folder)
    folder.with_name(f"{folder.name}.files").write_text("".join(f"{path}\n" for path in found))
    return len(found)


def _matching(globs: Iterable[str], folder: Path) -> list[Path]:
    return sorted({path for each in globs for path in folder.glob(each) if path.is_file()})


def _sample(chosen: PublicSet, folder: Path) -> list[Path]:
    """The files of a set that are audited."""
    left_out = set(_matching(chosen.without, folder))
    found = (path for path in _matching(chosen.files, folder) if path not in left_out)
    kept = [path for path in found if re.search(chosen.contains, path.read_text(errors="replace"))][:: chosen.every]
    modules = {
        source: _beside(source, name) for sources, name in chosen.launches.items() if name.endswith(".py")
        for source in _matching([sources], folder)
    }  # fmt: skip
    return [modules.get(path, path) for path in kept]


def _beside(source: Path, launches: str) -> Path:
    """The text that says how a source is launched."""
    return source.with_suffix(Path(launches).suffix)


def _append_problems(chosen: PublicSet, folder: Path) -> None:
    """Append its problem to each solution."""
    for path in _matching(chosen.files, folder) if chosen.problem else ():
        for problem in _matching([chosen.problem.format(*_problem_of(chosen, folder, path))], folder):
            path.write_text(f"{path.read_text()}\n\n{problem.read_text()}")


def _problem_of(chosen: PublicSet, folder: Path, path: Path) -> tuple[str, ...]:
    """The level and the number of a solution's problem."""
    unknown = "", ""
    if chosen.index:
        return _indexed(folder / chosen.index).get(path.stem, unknown)
    names = re.search(chosen.named, str(path.relative_to(folder)))
    return names.groups() if names else unknown


@functools.cache
def _indexed(index: Path) -> dict[str, tuple[str, ...]]:
    """The level and the number of each solution's problem, of an index like `{"Level 1: 23_Softmax": [{"file": NAME}]}`."""
    titles = json.loads(index.read_text()).items()
    return {entry["file"]: tuple(re.findall(r"\d+", title)[:2]) for title, entries in titles for entry in entries}


# -- rates --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """The judgement of errors: of a kernel of a file, those of some kinds; without kinds all. `why`: the argument."""

    set: str
    file: str
    kernel: str
    judgement: str
    why: str
    kinds: tuple[str, ...] = ()
    lines: str = ""

    def speaks_of(self, kernel: tuple[str, str, str], kind: str) -> bool:
        """Whether it judges an error of this kind there: of a set, a file and a kernel."""
        return kernel == (self.set, self.file, self.kernel) and (not self.kinds or kind in self.kinds)


@functools.cache
def findings(path: Path = HERE / "audit_findings.toml") -> tuple[Finding, ...]:
    """All judgements."""
    given = tomllib.loads(path.read_text()).get("finding", [])
    return tuple(Finding(**_frozen(each)) for each in given)


@dataclass
class Rates:
    """The counts of a set. `launched`: kernels with a launch; of these `true`, `benign`, `false` and `unread` are kernels with errors.

    `kernels`: with those that no launch reached. `stopped`: files without a kernel that was launched. `seconds`: of each file.
    """

    set: str
    files: int = 0
    kernels: int = 0
    launched: int = 0
    clean: int = 0
    warnings: int = 0
    incomplete: int = 0
    guessed: int = 0
    true: int = 0
    benign: int = 0
    false: int = 0
    unread: int = 0
    unreached: int = 0
    not_compiled: int = 0
    stopped: int = 0
    seconds: list[float] = field(default_factory=list, repr=False)

    def add(self, result: Mapping[str, Any], place: tuple[str, str], judged: tuple[Finding, ...]) -> None:
        """One file. `place`: its set, and its path there."""
        rows = [row for row in result["rows"] if row["kernel"]]
        self.files += 1
        self.kernels += len(rows)
        self.stopped += not any(row["launches"] for row in rows)
        self.not_compiled += any(row["verdict"] == "does not compile" for row in result["rows"])
        self.seconds.append(result["seconds"])
        for row in rows:
            self._add_row(row, place, judged)

    def _add_row(self, row: Mapping[str, Any], place: tuple[str, str], judged: tuple[Finding, ...]) -> None:
        if not row["launches"]:
            self.unreached += row["verdict"] in _UNREACHED
            return
        self.launched += 1
        if row["guessed"]:
            self.guessed += 1
        elif row["verdict"] in _ERRORS:
            found = worst(place, row, judged)
            setattr(self, found, getattr(self, found) + 1)
        elif row["verdict"] == "incomplete":
            self.incomplete += 1
        else:
            self.clean += not row["findings"]
            self.warnings += bool(row["findings"])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the seconds as median, ninth tenth and sum."""
        return {**asdict(self), "seconds": _spread(self.seconds)}


def worst(place: tuple[str, str], row: Mapping[str, Any], judged: tuple[Finding, ...]) -> str:
    """The judgement of a kernel's errors: false, if one is; then unread, true, benign."""
    kernel = *place, unqualified(row["kernel"])
    said = {
        next((each.judgement for each in judged if each.speaks_of(kernel, found["kind"])), "unread")
        for found in row["findings"]
        if found["severity"] == "error"
    }
    return next((each for each in ("false", "unread", "true", "benign") if each in said), "unread")


def unqualified(kernel: str) -> str:
    """A kernel's name without namespaces and arguments."""
    return kernel.partition("<")[0].rpartition("::")[2]


def _spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds) or [0.0]
    median, tenth = statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    return {"median": round(median, 1), "p90": round(tenth, 1), "sum": round(sum(ordered), 1)}


def rates(results: Iterable[Mapping[str, Any]], folder: Path, judged: tuple[Finding, ...]) -> list[Rates]:
    """The counts of each set, and of all."""
    found: dict[str, Rates] = {}
    total = Rates("all")
    by_file: dict[str, list[Mapping[str, Any]]] = {}
    for each in results:
        by_file.setdefault(each["file"], []).append(each)
    for file, several in by_file.items():
        result = united(several)
        of_set, *rest = PurePosixPath(os.path.relpath(file, folder)).parts
        for counted in (found.setdefault(of_set, Rates(of_set)), total):
            counted.add(result, (of_set, "/".join(rest)), judged)
    return [*found.values(), total]


def united(several: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The results of a file that was audited more than once, with other arguments: each kernel with its last launch."""
    rows = [row for result in several for row in result["rows"]]
    launched = {unqualified(row["kernel"]) for row in rows if row["launches"]}
    kept = {row["kernel"]: row for row in rows if row["launches"] or unqualified(row["kernel"]) not in launched}
    return {"rows": list(kept.values()), "seconds": sum(result["seconds"] for result in several)}


_COLUMNS: Final = (
    *("set", "files", "kernels", "launched", "clean", "true", "benign", "false", "unread"),
    *("warnings", "incomplete", "guessed", "unreached", "not_compiled", "stopped"),
)


def as_text(counted: list[Rates]) -> str:
    """A table in Markdown."""
    heads = [each.replace("_", " ") for each in _COLUMNS] + ["seconds a file: median, p90"]
    lines = [heads, ["---"] * len(heads)]
    for each in counted:
        spread = _spread(each.seconds)
        lines.append([*(str(getattr(each, column)) for column in _COLUMNS), f"{spread['median']}, {spread['p90']}"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def findings_as_text(judged: Iterable[Finding]) -> str:
    """A table in Markdown."""
    lines = ["| set | file | kernel | lines | kinds | judgement |", "|---|---|---|---|---|---|"]
    for each in judged:
        kinds = ", ".join(f"`{kind}`" for kind in each.kinds)
        lines.append(f"| {each.set} | `{each.file}` | `{each.kernel}` | {each.lines} | {kinds} | {each.judgement}. {each.why} |")
    return "".join(f"{line}\n" for line in lines)


def read_results(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The files' results in what `consan audit` wrote: JSON, or a journal."""
    found: list[dict[str, Any]] = []
    for path in paths:
        lines = path.read_text().splitlines()
        if path.suffix == ".json":
            found += json.loads("\n".join(lines))["files"]
        else:
            found += [json.loads(line)["result"] for line in lines if line.endswith("}")]
    return found


# -- the command --------------------------------------------------------------------------------------------------------------


def _fetch(options: argparse.Namespace) -> None:
    known = {each.name: each for each in public_sets()}
    if unknown := [name for name in options.set if name not in known]:
        raise SystemExit(f"no set {', '.join(unknown)}; there are {', '.join(known)}")
    for name in options.set or known:
        print(f"{name}: {fetch(known[name], options.into, options.mirrors)} files", flush=True)


def _table(options: argparse.Namespace) -> None:
    counted = rates(read_results(options.results), options.sets.resolve(), findings())
    if options.output is not None:
        options.output.write_text(json.dumps([each.as_dict() for each in counted], indent=2) + "\n")
    sys.stdout.write(as_text(counted))


def main() -> None:
    """Do what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    fetching = commands.add_parser("fetch", help="bring the files of sets")
    fetching.add_argument("set", nargs="*", help="sets of audit.toml [all]")
    fetching.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    mirrors = Path(os.environ[MIRRORS]) if MIRRORS in os.environ else None
    fetching.add_argument("--mirrors", type=Path, default=mirrors, metavar="FOLDER", help=f"instead of github.com [${MIRRORS}]")
    fetching.set_defaults(run=_fetch)
    table = commands.add_parser("table", help="the rates of an audit")
    table.add_argument("results", nargs="+", type=Path, help="what `consan audit -o FILE.json` or `--journal FILE` wrote")
    table.add_argument("--sets", type=Path, required=True, metavar="FOLDER", help="where the sets are")
    table.add_argument("-o", "--output", type=Path, metavar="FILE", help="the rates as JSON")
    table.set_defaults(run=_table)
    commands.add_parser("findings", help="the errors as read").set_defaults(run=lambda _: sys.stdout.write(findings_as_text(findings())))
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
