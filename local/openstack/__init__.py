"""The real Keystone, Neutron, Octavia and nova-api on one machine, as what tests of OpenStack talk to.

They run unchanged, on SQLite, in an environment of their own that is no part of the project's. Nothing moves packets:
there is no hypervisor, no agent and no amphora.
"""
