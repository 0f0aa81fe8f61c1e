"""What holds resources to the policy packs."""
