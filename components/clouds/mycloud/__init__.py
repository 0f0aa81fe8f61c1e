"""mycloud for the components: its resources as Pulumi resources, and the adapter that a stack's cluster uses."""
