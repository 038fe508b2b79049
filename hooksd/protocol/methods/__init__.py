"""Every method of the protocol: one struct for its params, one for its result.

The structs are the contract: the server decodes into them, the reference page and `hooksd schema` are made from them.
Unknown fields of a request are an error; unknown fields of a result must be ignored by clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hooksd.protocol.methods import config, daemon, events, executions, hooks, outbox, programmatic, trust
from hooksd.protocol.methods.base import Method


__all__ = ["METHODS"]

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for room in (daemon, executions, hooks, programmatic, config, trust, outbox, events)
        for method in room.METHODS
    }
)
"""All methods by name, in the order of the reference page."""
