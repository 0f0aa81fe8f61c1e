"""The provider of `aws:*` against a simulator of AWS on this machine, through boto3: the types that the stacks use."""
