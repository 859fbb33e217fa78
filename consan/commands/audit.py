"""`consan audit PATH...`: runs the kernels of files with their own host code on the virtual machine, and prints a table.

Files are run, in processes with limits (consan/audit/child/limits.py says which).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from consan import late, options
from consan._errors import UsageError
from consan.audit import table
from consan.commands.parts.output import DOCUMENT, JSON, add_output, chosen_output, put
from consan.files import read_file
from consan.progress import remark

_MOST_ON_GPU: Final = 4


class AuditCommand:
    """Audit files and folders."""

    def prepare(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "paths", nargs="+", metavar="PATH", help="CUDA C++ (.cu), Python modules with kernels (.py), PTX (.ptx), folders of them"
        )
        group = parser.add_argument_group("audit")
        group.add_argument("-j", "--jobs", metavar="N", help="files at a time [cores; on a GPU 4 at most]")
        group.add_argument("--executor", metavar="dask://HOST:PORT", help="audit on an existing Dask cluster (install consan[dask])")
        group.add_argument("--reference", metavar="FILE", help="a module whose Model gives the right results")
        group.add_argument("--arguments", default="", metavar="TEXT", help="of each main [those of `make run`, with smaller numbers]")
        group.add_argument("-I", "--include", action="append", default=[], metavar="FOLDER", help="with headers; may be repeated")
        group.add_argument("--file-timeout", default="120", metavar="SECONDS", help="for each file [120]")
        group.add_argument("--launch-timeout", default="20", metavar="SECONDS", help="for each launch [20]")
        group.add_argument("--memory", default="8G", metavar="SIZE", help="for each file [8G]")
        group.add_argument(
            "--seeds", default="0", metavar="N", help="run each launch with N schedules, compare its results, look at its writes [0]"
        )
        group.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="cpu is the virtual machine [cpu]")
        group.add_argument("--journal", metavar="FILE", help="keep each result there, and take over those that it has")
        options.add(parser, options.EXIT, "checking")
        options.add_to(add_output(parser, DOCUMENT), options.TERMINAL)

    def run(self, args: argparse.Namespace) -> int:
        """Audit all files, then print."""
        chosen = chosen_output(args)
        read = options.read_as
        limits: dict[str, Any] = {
            "timeout": read("--file-timeout", args.file_timeout, options.read_seconds),
            "launch_timeout": read("--launch-timeout", args.launch_timeout, options.read_seconds),
            "arguments": tuple(shlex.split(args.arguments)),
            "folders": tuple(str(Path(each).resolve()) for each in args.include),
            "memory": read("--memory", args.memory, options.read_bytes),
            "seeds": read("--seeds", args.seeds, options.read_count),
            "device": args.device,
        }
        _check(limits)
        reference = None if args.reference is None else read_file(args.reference)
        requests = late.audit_runner.requests_for(args.paths, reference, limits)
        journal = late.audit_runner.Journal(None if args.journal is None else Path(args.journal))
        with _executor(args) as executor:
            results = late.audit_runner.run(requests, executor, journal, lambda done: remark(lambda: f"{done.file}: {done.verdict}"))
        status = table.status(results, strict=args.strict, allow_incomplete=args.allow_incomplete)
        text = table.as_json(results, status) if chosen == JSON else table.as_text(results)
        written = put(args, text, f"verdict: {table.verdict(results)}")
        return status or written


def _check(limits: dict[str, Any]) -> None:
    """Raises UsageError for what a GPU does not do."""
    if limits["device"] == "gpu" and limits["seeds"]:
        raise UsageError("--seeds is for --device cpu: nobody chooses the schedule of a GPU")


def _default_jobs(args: argparse.Namespace) -> int:
    """As many as there are cores; on a GPU each file has a context, with logs in the memory of the device."""
    cores = os.cpu_count() or 1
    return min(cores, _MOST_ON_GPU) if args.device == "gpu" else cores


@contextlib.contextmanager
def _executor(args: argparse.Namespace) -> Iterator[Executor]:
    """The workers that audit the files: threads that each have a server, or the workers of a cluster."""
    if args.executor is None:
        jobs = _default_jobs(args) if args.jobs is None else options.read_as("--jobs", args.jobs, options.read_positive)
        yield ThreadPoolExecutor(jobs)
        return
    client = late.executors.connected(args.executor)
    try:
        yield client.get_executor(pure=False, retries=0)
    finally:
        client.close()
