"""Pulumi's CLI on this machine: where it comes from, the language host that runs Python for it, what it keeps."""
