"""Shows a run: on a terminal, in logs, as JSON."""
