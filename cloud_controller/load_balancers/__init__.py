"""Load balancers for every cloud: model, annotations, members, and the steps from what is to what should be."""
