from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from deep500.measure.environment.noise import observe_noise, take_witness
from deep500.measure.environment.system import System
from tests.unit.measure.environment.support import CPU, machine, write, write_cpu_time, write_groups_v2


def test_what_happened_between_two_witnesses(tmp_path: Path) -> None:
    system = machine(tmp_path)
    write_groups_v2(tmp_path)
    earlier = take_witness(system)
    # 1000 ticks more: 250 stolen, 450 idle, 300 busy.
    write_cpu_time(tmp_path, user=800, idle=850, steal=350)
    write(tmp_path, "/sys/fs/cgroup/job/task/cpu.stat", "nr_throttled 5\nthrottled_usec 3000000")
    write(tmp_path, "/proc/loadavg", "1.75 0 0 1/2 3")
    for cpu in range(8):
        write(tmp_path, f"{CPU}/cpufreq/policy{cpu}/scaling_cur_freq", 1_500_000)

    interval = take_witness(system).since(earlier)

    assert interval.steal_share == 0.25
    assert interval.others_share == pytest.approx(0.3, abs=0.05)  # less what this test itself used
    assert (interval.throttled, interval.throttled_s) == (2, 0.5)
    assert interval.load_1min == 1.75
    assert interval.frequency_mhz == (2003.5, 1500)
    assert interval.reasons == {}
    assert interval.elapsed_s > 0


def test_shares_of_a_few_ticks_are_not_told(tmp_path: Path) -> None:
    system = machine(tmp_path)
    earlier = take_witness(system)
    write_cpu_time(tmp_path, user=510)

    content = take_witness(system).since(earlier).to_dict()

    assert content["steal_share"] == content["others_share"] == "unavailable"
    assert content["reasons"]["steal_share"] == "only 10 ticks of CPU time passed, fewer than 50"


@pytest.mark.parametrize("text", ["", "nonsense", "cpu 1 2", "cpu a b c d e f g h", "cpu 0 0 0 0 0 0 0 0"])
def test_garbage_is_told_with_the_reason(tmp_path: Path, text: str) -> None:
    system = machine(tmp_path)
    write(tmp_path, "/proc/stat", text)
    write(tmp_path, "/proc/loadavg", text)
    write(tmp_path, f"{CPU}/cpufreq/policy0/scaling_cur_freq", "<unknown>")

    content = take_witness(system).since(take_witness(system)).to_dict()

    for name in ("steal_share", "others_share", "frequency_mhz", "throttled", "throttled_s"):
        assert content[name] == "unavailable"
        assert content["reasons"][name]
    if not text.startswith("cpu 0"):
        assert content["load_1min"] == "unavailable"
    json.dumps(content, allow_nan=False)


def test_empty_machine_gives_a_witness_that_tells_own_use(tmp_path: Path) -> None:
    earlier = take_witness(System(tmp_path))
    touched = bytearray(20_000_000)
    touched[::4096] = b"x" * len(touched[::4096])
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass

    interval = take_witness(System(tmp_path)).since(earlier)

    assert 0.04 < interval.own_cpu_s < 5
    assert interval.minor_faults > 10
    assert interval.involuntary_context_switches >= 0


def test_own_work_is_not_noise_of_others() -> None:
    earlier = take_witness()
    if earlier.cpu_time is None:
        pytest.skip("no /proc/stat here")
    until = time.perf_counter() + 0.6
    while time.perf_counter() < until:
        pass
    later = take_witness()

    interval = later.since(earlier)

    assert later.cpu_time is not None
    if interval.others_share is None:
        pytest.skip("a single CPU's ticks are too few")
    all_busy = (later.cpu_time.busy - earlier.cpu_time.busy) / (later.cpu_time.total - earlier.cpu_time.total)
    assert interval.others_share < all_busy


def test_observation_waits() -> None:
    assert 0.05 <= observe_noise(0.05).elapsed_s < 5


def test_witness_is_cheap() -> None:
    started = time.perf_counter()
    for _ in range(20):
        take_witness()

    assert (time.perf_counter() - started) / 20 < 0.02
