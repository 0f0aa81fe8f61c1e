"""What runs in the services' environment, beside the services; nothing of the project's is imported here."""
