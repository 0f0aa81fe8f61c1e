"""What clouds share: a cloud imports from here what its API needs, and keeps only its own rules.

Each module's first sentence says what a cloud uses it for. No module here knows a cloud.
"""
