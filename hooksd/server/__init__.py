"""The server room; see docs/architecture.md."""
