"""What this project's controller costs on Alibaba Cloud: its stand-in over HTTP, the real daemon, a real API server.

The peer, Alibaba's controller in Go, can't be built here: its figures were recorded elsewhere (`recorded.py`).
"""
