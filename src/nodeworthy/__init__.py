"""Nodeworthy: the lifecycle manager for GPU fleets."""

__version__ = "0.1.0"
