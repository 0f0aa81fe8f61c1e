"""Measures what users wait for. These are not tests: no result fails a run."""
