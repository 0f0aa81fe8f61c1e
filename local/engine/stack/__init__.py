"""A stack on disk: project, configuration, secrets, state, lock."""
