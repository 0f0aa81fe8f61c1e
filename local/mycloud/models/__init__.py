"""The types of mycloud's objects and requests, shared by its OpenAPI document and its database.

A `…Record` is the database's type: the public object with server-side fields. Answers are made from the public type, so
a record's own fields never leave the server.
"""
