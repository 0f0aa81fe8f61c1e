"""The server of a policy pack, as Pulumi starts it: for tests of anybody's rules, and for their levels."""
