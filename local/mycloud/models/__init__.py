"""What mycloud's objects and requests look like: the types that its OpenAPI document and its database share.

A `…Record` is what the database holds: the public object and what only the server knows. Answers are made from the
public type, so a record's own fields never leave the server.
"""
