"""Figures of what users wait for. Nothing here is a test: no figure makes a run fail."""
