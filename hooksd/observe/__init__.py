"""The observe room; see docs/architecture.md."""
