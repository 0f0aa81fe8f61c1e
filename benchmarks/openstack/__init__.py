"""The benchmarks on the real services of OpenStack."""
