"""The protocol room; see docs/architecture.md."""
