"""The pipeline room; see docs/architecture.md."""
