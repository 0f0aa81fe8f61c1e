"""Checks resources against policy packs."""
