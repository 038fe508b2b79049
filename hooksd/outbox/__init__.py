"""Durable jobs: on disk before their hook starts, until it has ended well or somebody gives them up."""
