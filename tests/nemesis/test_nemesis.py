"""A cluster under faults ends as if there had been none; and a cluster with a planted mistake does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gossamer.testing.nemesis import KINDS, Plan, Verdict, run
from gossamer.testing.servers import ServerMissing
from gossamer.testing.servers.process import program

PLANTED = Path(__file__).with_name("planted_cluster.py")
SHORT = ("kill_worker", "cut_connections", "lose_tail", "rolling_restart")
MUTANTS = {
    "answers_are_not_kept": "cut_connections",
    "a_lost_end_is_not_noticed": "lose_tail",
    "the_sink_does_not_go_back": "lose_tail",
    "leases_of_the_dead_stay": "kill_worker",
}  # planted mistake → the kind of fault that shows it


@pytest.fixture(autouse=True)
def has_redis() -> None:
    try:
        program("redis-server", "redis-server")
    except ServerMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def told(verdict: Verdict) -> str:
    return "\n".join([verdict.line(), *verdict.complaints[:20]])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", SHORT)
def test_nothing_is_lost_doubled_or_rude(kind: str, tmp_path: Path) -> None:
    """One seed of the kinds that bite most: records, items, sums and manners are those of an unharmed crawl."""
    verdict = run(Plan(seed=1, kind=kind, pages=200, hosts=3, workers=2, faults=2, latency=0.3), tmp_path)
    assert verdict.is_good, told(verdict)
    assert not verdict.void, verdict.void


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_fault(kind: str, tmp_path: Path) -> None:
    """The whole list, with three workers and 500 pages."""
    verdict = run(Plan(seed=7, kind=kind), tmp_path)
    assert verdict.is_good, told(verdict)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_mistake_is_seen(mutant: str, tmp_path: Path) -> None:
    """A verdict that a broken product passes, too, is worth nothing."""
    for seed in range(1, 4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        plan = Plan(seed=seed, kind=MUTANTS[mutant], pages=300)
        if not run(plan, folder, {"FAULT_PLANT": f"{PLANTED}:{mutant}"}).is_good:
            return
    pytest.fail(f"three runs with {mutant} were found good")
