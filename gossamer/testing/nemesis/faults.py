"""What befalls a cluster. Each kind is a function that does one fault at a seeded moment and undoes it after a while."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from random import Random

from gossamer.testing.nemesis.cluster import Cluster
from gossamer.testing.servers import RedisSentinels
from gossamer.testing.servers.process import wait_until

Fault = Callable[[Cluster, Random], None]
LONGER_THAN_A_SESSION = 12.0


def kill_worker(cluster: Cluster, dice: Random) -> None:
    """F1: SIGKILL for a whole worker, which comes back after a moment."""
    worker = dice.choice(cluster.workers)
    worker.kill()
    time.sleep(dice.uniform(0.0, 1.0))
    worker.start()


def kill_child(cluster: Cluster, dice: Random) -> None:
    """F1: SIGKILL for the process that fetches; its supervisor starts another."""
    dice.choice(cluster.workers).kill_child()


def freeze_worker(cluster: Cluster, dice: Random) -> None:
    """F2: a worker with its supervisor stands still for longer than its session lives, and goes on as if nothing was."""
    worker = dice.choice(cluster.workers)
    worker.send(signal.SIGSTOP)
    time.sleep(LONGER_THAN_A_SESSION + dice.uniform(0.0, 2.0))
    worker.send(signal.SIGCONT)


def restart_store(cluster: Cluster, dice: Random) -> None:
    """F3: the store is killed and comes back with all that it had acknowledged."""
    cluster.server.kill()
    time.sleep(dice.uniform(0.0, 2.0))
    cluster.server.start()


def lose_tail(cluster: Cluster, dice: Random) -> None:
    """F4: the store comes back without the last moment of what it had acknowledged, as after a failover or a power cut."""
    kept = cluster.copy_store()
    time.sleep(dice.uniform(0.3, 1.0))
    cluster.server.kill()
    cluster.restore_store(kept)
    cluster.server.start()


def fail_over(cluster: Cluster, dice: Random) -> None:
    """F4: the master is killed, a replica promoted; the old one comes back as a replica of it."""
    old = cluster.server
    time.sleep(dice.uniform(0.0, 0.5))
    old.kill()
    wait_until(lambda: cluster.server is not old, "another master")
    time.sleep(dice.uniform(0.5, 3.0))
    old.start()
    # One fault at a time: the next one comes when both replicas have all that the master has.
    assert isinstance(cluster.store, RedisSentinels)
    wait_until(cluster.store.is_in_step, "replicas in step", 30.0)
    time.sleep(dice.uniform(2.0, 3.0))


def partition_worker(cluster: Cluster, dice: Random) -> None:
    """F5: a worker and the store do not hear each other for longer than its session lives."""
    worker = dice.choice(cluster.workers)
    worker.proxy.partition()
    time.sleep(LONGER_THAN_A_SESSION + dice.uniform(0.0, 2.0))
    worker.proxy.heal()


def cut_connections(cluster: Cluster, dice: Random) -> None:
    """F6: resets, with answers of the store on their way: what was done is not done again."""
    for _ in range(dice.randint(3, 8)):
        for worker in cluster.workers:
            worker.proxy.cut()
        time.sleep(dice.uniform(0.02, 0.3))


def delay_store(cluster: Cluster, dice: Random) -> None:
    """F6: every answer of the store is late."""
    for worker in cluster.workers:
        worker.proxy.delay = dice.uniform(0.2, 1.0)
    time.sleep(3.0)
    for worker in cluster.workers:
        worker.proxy.heal()


def rolling_restart(cluster: Cluster, dice: Random) -> None:
    """F14: one worker after the other is told to stop, finishes what it has open, and is started anew."""
    workers = list(cluster.workers)
    dice.shuffle(workers)
    for worker in workers:
        worker.drain()
        worker.start()


KINDS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        kill_worker, kill_child, freeze_worker, restart_store, lose_tail, fail_over, partition_worker, cut_connections, delay_store,
        rolling_restart,
    )
}  # fmt: skip
WITH_SENTINELS = frozenset({"fail_over"})
QUIET = frozenset({"cut_connections", "delay_store", "rolling_restart"})
"""Kinds after which nothing is fetched again: no lease is lost by them."""
