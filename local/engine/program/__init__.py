"""The program that declares the resources, and what it says and is asked."""
