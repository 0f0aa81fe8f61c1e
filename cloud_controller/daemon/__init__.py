"""What only the daemon needs: its start, its leadership, its health checks, and the server that shows them."""
