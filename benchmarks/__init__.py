"""Measurements, as ratios in one run; see README.md."""
