"""Faults against a whole cluster, repeatable from a seed: real stores, real workers, a web that knows the truth about itself.

    run(Plan(seed=3, kind="kill_worker"), folder) → Verdict

The life of a run: the web and the store are started → workers begin → the task is submitted → faults of one kind come at
seeded moments → everything is healed → the task must end in time → the verdict is read from the origin's log, the output file
and the store's own rows, never from what the product says of itself. A run whose faults hit nothing is void: it shows nothing.

    python -m gossamer.testing.nemesis --kinds kill_worker,freeze_worker --seeds 1-20
"""

from __future__ import annotations

from gossamer.testing.nemesis.cluster import Cluster
from gossamer.testing.nemesis.faults import KINDS
from gossamer.testing.nemesis.running import Plan, run
from gossamer.testing.nemesis.verdict import Verdict

__all__ = ["KINDS", "Cluster", "Plan", "Verdict", "run"]
