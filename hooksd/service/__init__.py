"""The service room; see docs/architecture.md."""
