"""Builds other people's programs from the Go modules that `tools/` pins, once per machine."""
