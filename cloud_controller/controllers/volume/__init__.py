"""The volume controller: the cloud's volumes for claims, on clouds without a CSI driver of their own."""
