"""The base of stand-ins of clouds: they speak a cloud's real protocol and accept nothing that the cloud would refuse.

A stand-in is a dialect (the wire: signatures, envelopes, error codes), an action table (what each call does, with the
schemas of its request and answer) and a store. It names no cloud.
"""
