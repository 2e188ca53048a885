"""The tests of this folder share `crawl_command` and `known_truth`, which lie beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
