"""The dialects: one module per agent family, all of the shape of `base.Dialect`."""

from __future__ import annotations

from collections.abc import Mapping

from hooksd.dialects.bamboo import BAMBOO
from hooksd.dialects.base import Dialect
from hooksd.dialects.chrys import CHRYS


__all__ = ["DIALECTS"]

DIALECTS: Mapping[str, Dialect] = {BAMBOO.name: BAMBOO, CHRYS.name: CHRYS}
"""Every dialect by name."""
