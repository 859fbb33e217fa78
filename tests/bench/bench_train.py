"""The cost of checking a training step, by processes that live side by side and take turns: plain, `consan run` and its options.

    python tests/bench/bench_train.py [--rounds N] [--steps N] [--cores 0-3] [--ways plain recorded off overhead empty]

All have the model of train_step.py ready and checked; then each in turn, in a new order each round, makes a few steps while the others
wait. So what the machine does to one it does to all. Each line: the median of a step, its quartiles, and the median of the ratios to the
plain steps of the same round, with the interval that has it in 95 of 100 draws. `empty`: the program alone, with a subscriber of CUPTI
whose function does nothing. The losses must be the same to the last bit. Needs a GPU with torch and Triton.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
WARM = 60  # steps, in which each kernel is checked
CONSAN = (sys.executable, "-m", "consan", "run", "--allow-incomplete")
WAYS = {
    "plain": (sys.executable,),
    "recorded": CONSAN,
    "off": (*CONSAN, "--global", "off"),
    "overhead": (*CONSAN, "--overhead", "5%"),
    "empty": (sys.executable,),
}


def take_turns(empty: bool) -> None:
    """In a process of one way: make as many steps as each line of the input says, and print the milliseconds of one."""
    import torch
    from bench_cupti import SETS, Subscriber
    from train_step import training

    kept = Subscriber(SETS["followed"]) if empty else None
    step = training()
    for _ in range(WARM):
        loss = step()
    torch.cuda.synchronize()
    print("turn ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        for _ in range(int(line)):
            loss = step()
        torch.cuda.synchronize()
        print(f"turn {1e3 * (time.perf_counter() - began) / int(line)}", flush=True)
    free, total = torch.cuda.mem_get_info()
    print(f"turn loss {loss.item():.9g}, device {(total - free) >> 20} MiB in all processes", flush=True)
    del kept


class Way:
    """A process that makes steps when its turn comes."""

    def __init__(self, name: str, cores: str) -> None:
        words = ["taskset", "-c", cores, *WAYS[name], __file__, "--turns", *(["--empty"] if name == "empty" else [])]
        environment = os.environ | {"PYTHONPATH": f"{HERE.parents[1]}:{os.environ.get('PYTHONPATH', '')}", "TRAIN_STEPS": "0"}
        self.name, self.times = name, list[float]()
        self._process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rest: list[str] = []

    def said(self) -> str:
        """The next line of the program that is its own."""
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("turn "):
                return line.removeprefix("turn ").strip()
            self.rest.append(line)
        raise SystemExit(f"{self.name} has ended: {''.join(self.rest)}")

    def turn(self, steps: int) -> float:
        """The milliseconds of a step."""
        assert self._process.stdin
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return float(self.said())

    def end(self) -> str:
        """The loss, and what consan says of its cost."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        loss, rest = self.said(), [*self.rest, *self._process.stdout]
        return "; ".join((loss, *(line.strip() for line in rest if "verdict" in line or "consan's own" in line)))


def between(ratios: list[float]) -> tuple[float, float]:
    """The interval of the median, by 2,000 draws."""
    draws = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    return draws[50], draws[1949]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--cores", default="0-3")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--empty", action="store_true")
    given = parser.parse_args()
    if given.turns:
        return take_turns(given.empty)
    random.seed(0)
    ways = []
    for name in given.ways:  # one after another, so that none checks its kernels beside the others' start
        ways.append(Way(name, given.cores))
        ways[-1].said()
    end = time.perf_counter() + given.seconds
    for _ in range(given.rounds):
        if time.perf_counter() > end:
            break
        turns = {way.name: way.turn(given.steps) for way in random.sample(ways, len(ways))}
        for way in ways:
            way.times.append(turns[way.name])
    print(f"{len(ways[0].times)} rounds of {given.steps} steps, cores {given.cores}")
    for way in ways:
        low, middle, high = statistics.quantiles(way.times, n=4)
        ratios = [each / plain for each, plain in zip(way.times, ways[0].times, strict=True)]
        least, most = between(ratios)
        print(
            f"{way.name:9} {middle:.2f} ms a step ({low:.2f} to {high:.2f}), {statistics.median(ratios):.3f}x ({least:.3f} to {most:.3f}); "
            f"{way.end()}",
            flush=True,
        )
    return None


if __name__ == "__main__":
    main()
