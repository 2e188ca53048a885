"""What all suites share."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("gossamer.testing.contracts")  # so that a broken promise shows its values
