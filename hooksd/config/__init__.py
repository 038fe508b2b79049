"""The config room; see docs/architecture.md."""
