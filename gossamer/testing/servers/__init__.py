"""Real servers for tests: each started on loopback in a folder of its own, waited for, and ended by its own process.

A server whose program is not installed raises `ServerMissing`, which a test suite turns into a skip with this reason at a
desk and into a failure where `CI` is set. Nothing is ended by name, and nothing outlives the process that started it.
"""

from __future__ import annotations

from gossamer.testing.servers.process import ServerMissing, ServerProcess, free_port
from gossamer.testing.servers.redis import RedisSentinels, RedisServer

__all__ = ["RedisSentinels", "RedisServer", "ServerMissing", "ServerProcess", "free_port"]
