"""AWS's resources in the components' shape, in AWS's own Pulumi package."""
