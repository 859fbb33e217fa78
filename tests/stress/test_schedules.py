"""A schedule that was recorded is repeated exactly by its decisions, and a renewed device repeats what a new one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twin_file
from stress_support import FLAKY

import consan
from consan.backends.cpu.engine.decisions import HOLD, Decision, Recorder, Replay
from consan.backends.cpu.state.schedule import Schedule, for_seed
from consan.session.modules.device import Device, shared_device

KERNELS = Path(__file__).parents[1] / "kernels"

# Named barriers; cp.async; bulk copies with several mbarriers; a cluster with multicast and remote arrivals comes from test_clusters.
TWINS = ("named_barrier_partial", "cp_async_off_by_one", "bulk_store_source_overwritten", "mbarrier_phase_lap")
Schedules = Callable[[int], Schedule]


@pytest.fixture
def device() -> Iterator[Device]:
    found = shared_device("cpu")
    yield found
    found.backend.machine.schedules = for_seed


def _launcher(device: Device, name: str, engine: str = "inline") -> Callable[[Schedules, int], Any]:
    spec = twin_file.read(KERNELS / "twins" / f"{name}.cu")
    kernel = twin_file.kernel(spec.path, racy=True)

    def launch(schedules: Schedules, seed: int) -> Any:
        device.renew()
        device.backend.machine.schedules = schedules
        args = spec.fresh_args()
        options = {"smem": spec.smem, "device": "cpu", "seed": seed, "engine": engine}
        report = consan.launch(kernel, spec.grid, spec.block, spec.parameters(args), **options)
        values = [value.tobytes() for value in args.values() if isinstance(value, np.ndarray)]
        return values, [(finding.kind, finding.count) for finding in report.findings]

    return launch


@pytest.mark.parametrize("name", TWINS)
def test_all_decisions_of_a_seed_repeat_it(name: str, device: Device) -> None:
    launch, decided = _launcher(device, name), 0
    for seed in (1, 3, 4):
        decisions: list[Decision] = []
        plain = launch(for_seed, seed)
        recorded = launch(lambda seed, into=decisions: Recorder(for_seed(seed), into), seed)  # type: ignore[misc]
        assert recorded == plain, "recording changes nothing"
        for baseline in ("late", "prompt"):
            replayed = launch(lambda _, all_of=decisions, base=baseline: Replay(all_of, base), 0)  # type: ignore[misc]
            assert replayed == plain
        decided += len(decisions)
    assert decided, "there was something to repeat"


@pytest.mark.parametrize("name", ["cp_async_off_by_one", "mbarrier_phase_lap"])
def test_a_seed_is_one_schedule_of_a_kernel_whatever_its_engine(name: str, device: Device) -> None:
    for seed in (1, 2, 4):
        decided = [_decided(_launcher(device, name, engine), seed) for engine in ("record", "inline")]
        assert decided[0] == decided[1]


def _decided(launch: Any, seed: int) -> list[Any]:
    """What a seed decides in a launch, without the places, which are those of the text that ran."""
    launches: list[list[Decision]] = []  # behind the recorded launch come those whose results are compared

    def noted(each: int) -> Schedule:
        launches.append([])
        return Recorder(for_seed(each), launches[-1])

    launch(noted, seed)
    return [(each.kind, each.steps, each.who) for each in launches[0]]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (KERNELS / "twins").glob("*.cu")))
def test_every_twin_is_repeated(name: str, device: Device) -> None:
    """One seed of each: all kinds of operations, and clusters."""
    launch = _launcher(device, name)
    decisions: list[Decision] = []
    recorded = launch(lambda seed: Recorder(for_seed(seed), decisions), 7)
    assert launch(for_seed, 7) == recorded
    for baseline in ("late", "prompt"):
        assert launch(lambda _, base=baseline: Replay(decisions, base), 0) == recorded  # type: ignore[misc]


def test_a_renewed_device_is_as_new(device: Device) -> None:
    launch = _launcher(device, "cp_async_off_by_one")
    first = {seed: launch(for_seed, seed) for seed in (1, 2, 3)}
    assert {seed: launch(for_seed, seed) for seed in (3, 1, 2)} == first
    assert len({str(result) for result in first.values()}) > 1, "the seeds must differ for this to say anything"


def test_no_decisions_are_the_baseline(device: Device) -> None:
    launch = _launcher(device, "cp_async_off_by_one")
    assert launch(lambda _: Replay([], "late"), 0)[0] == launch(for_seed, 0)[0]
    assert launch(lambda _: Replay([], "prompt"), 0)[0] != launch(for_seed, 0)[0], "copies that land at once bring their data in time"


def test_one_decision_of_many_can_be_taken_alone(device: Device) -> None:
    kernel = consan.Kernel(FLAKY)

    def launch(schedule: Schedule) -> bool:
        device.renew()
        device.backend.machine.schedules = lambda _: schedule
        out = np.zeros(64, np.int32)
        consan.launch(kernel, (1,), (64,), [np.arange(64, dtype=np.int32), out], device="cpu", engine="inline")
        return bool((out == np.arange(64) ^ 32).all())

    decisions: list[Decision] = []
    assert launch(Replay([]))
    assert not all(launch(Recorder(for_seed(seed), decisions)) for seed in range(1, 20))
    replays = [Replay([decision]) for decision in decisions if decision.kind == HOLD]
    assert not all(launch(replay) for replay in replays), "one hold alone must show the race"
    assert any(trace.taken and trace.lines for replay in replays for trace in replay.traces)
