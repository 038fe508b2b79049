"""The process room; see docs/architecture.md."""
