"""hooksd: one local daemon that runs the lifecycle hooks of coding agents."""

__version__ = "0.1.0"
