"""Network Load Balancers (NLB), API version 2022-04-30."""
