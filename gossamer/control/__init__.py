"""The cluster deciding: submission, planning, leadership, schedules. Nothing on one machine needs it."""
