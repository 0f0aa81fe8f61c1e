"""The `cloud-controller` command line: commands, options and the daemon's config file."""
