"""tinycloud's one annotation."""

from __future__ import annotations

from cloud_controller.load_balancers.catalogue import Annotation, Catalogue, Mutability

PREFIX = "tiny.example.com/"
CLASS = "tiny.example.com/load-balancer"
CATALOGUE = Catalogue(
    cloud="tiny",
    prefixes=(PREFIX,),
    entries=(
        Annotation(
            name=f"{PREFIX}scheme",
            argument="scheme",
            sets="scheme",
            type=str,
            allowed=("public", "internal"),
            default="public",
            description="From where clients reach the load balancer.",
            applies_to="load balancers",
            mutability=Mutability.REPLACE,
            since="1.0",
            source="tinycloud's manual",
        ),
    ),
)
