"""The command line `cloud-controller`: its commands, its options and the daemon's config file."""
