"""The daemon: startup, leader election, dry run, and the HTTPS server for health checks and metrics."""
