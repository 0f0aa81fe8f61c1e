"""`cloud-stacks`: what a commit does to the stacks of a Pulumi program, for the people who decide about it.

`offline` plans a commit without state, secrets and network, and `recorded` what it would leave; `outcome` reads what
Pulumi's CLI wrote; `comparison`, `effects`, `rights` and `costs` say what that means; `report/` renders it.
"""
