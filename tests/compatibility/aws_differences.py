"""In what this controller differs from the peer on purpose, and why: the table behind docs/compatibility/aws.md.

A test holds it against what both really leave: what differs and is not listed fails, and so does what is listed and
differs no more.
"""

from __future__ import annotations

from tests.compatibility.differences import Difference

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "type-alb",
        "refused",
        "makes a classic load balancer",
        "refuses it: Application Load Balancers come from an Ingress and the AWS Load Balancer Controller",
        "a type that nobody knows is no wish for a classic load balancer",
    ),
    Difference(
        "nlb-tcp-and-udp|nlb-tcp-and-udp-on-one-port",
        "refused",
        "refuses TCP and UDP in one Service",
        "serves both; on one port by a listener of protocol TCP_UDP, if both have one node port",
        "AWS can (DNS, QUIC beside HTTPS); Kubernetes allows it since 1.26",
    ),
    Difference(
        "nlb-session-affinity",
        "refused",
        "refuses session affinity",
        "serves it: stickiness of the target group by source address",
        "AWS can",
    ),
    Difference(
        "nlb-more-target-group-attributes",
        "refused",
        "knows `preserve_client_ip.enabled` and `proxy_protocol_v2.enabled` alone",
        "knows every attribute of network target groups, with AWS's ranges",
        "the AWS Load Balancer Controller's annotation of this name takes them all",
    ),
    Difference(
        "nlb-*",
        "load_balancers/0/security_groups/made"
        "|load_balancers/0/security_groups/clients"
        "|load_balancers/0/security_groups/egress"
        "|load_balancers/0/security_groups/tags/*",
        "makes network load balancers without security groups",
        "makes them with two: one for the Service's clients (ports, source ranges, path MTU), and one that all share",
        "AWS advises so, and never lets one be added to a network load balancer that was made without",
    ),
    Difference(
        "nlb-*",
        "opened/nodes",
        "opens each node port to the clients, in the nodes' group: rules of each port, range and subnet",
        "opens the nodes to the shared group: one rule, however many Services there are",
        "a group holds 60 rules: about 25 Services of two ports; and nobody reaches a node port past the load balancer",
    ),
    Difference(
        "nlb-extra-security-groups",
        "refused",
        "refuses extra groups of a network load balancer (1.34 ignored them)",
        "adds them",
        "AWS can",
    ),
    Difference(
        "nlb-own-security-groups",
        "load_balancers/0/security_groups/of_people",
        "ignores the annotation on network load balancers, unless `NLBSecurityGroupMode = Managed`",
        "does as it says",
        "a limit on who may reach a Service must not be dropped in silence",
    ),
    Difference(
        "classic-*",
        "load_balancers/0/security_groups/made"
        "|load_balancers/0/security_groups/egress"
        "|load_balancers/0/security_groups/tags/*",
        "one group for the clients, from which it opens the nodes: a rule a Service in the nodes' group",
        "that group, and the shared one from which the nodes are opened",
        "a group holds 60 rules: 60 Services",
    ),
    Difference(
        "classic-own-security-groups",
        "opened/nodes",
        "opens the nodes to the first group of the annotation",
        "opens them to the shared group",
        "who else is in a group of people's own is not known",
    ),
    Difference(
        "*",
        "load_balancers/0/tags/kubernetes.io/cluster"
        "|load_balancers/0/tags/kubernetes.io/service"
        "|load_balancers/0/tags/kubernetes.io/service-uid"
        "|load_balancers/0/listeners/*/target_group/tags/kubernetes.io/cluster"
        "|load_balancers/0/listeners/*/target_group/tags/kubernetes.io/service"
        "|load_balancers/0/listeners/*/target_group/tags/kubernetes.io/service-uid",
        "tags the Service's name",
        "tags its UID, too, in the create call",
        "whose a thing is stands in its tags: a Service made again under the same name is another one",
    ),
    Difference(
        "*",
        "load_balancers/0/tags/cloud-controller/cluster-uid",
        "no tag",
        "tags the Kubernetes cluster's own UID",
        "another cluster's cloud config, or an etcd that lost its data, must not lead to deletions",
    ),
    Difference(
        "nlb-*",
        "load_balancers/0/listeners/*/target_group/tags/cloud-controller/*",
        "no tag",
        "tags target groups with their load balancer and pool",
        "parts that a crash left without their load balancer are found, and taken over or deleted",
    ),
    Difference(
        "nlb-proxy-protocol",
        "load_balancers/0/listeners/*/target_group/attributes/proxy_protocol_v2.enabled",
        "ignores the annotation on network load balancers",
        "sends proxy protocol version 2",
        "as the AWS Load Balancer Controller does; backends that wait for the header would hang",
    ),
    Difference(
        "nlb-health-check-times|nlb-health-check-http|nlb-local",
        "load_balancers/0/listeners/*/target_group/health_check/timeout",
        "reads the annotation and never sends it: AWS's default (6 s for HTTP; moto's is 10)",
        "sends it, or AWS's default",
        "an annotation that is accepted must have its effect",
    ),
    Difference(
        "nlb-health-check-http|nlb-local",
        "load_balancers/0/listeners/*/target_group/health_check/matcher",
        "names no codes: AWS's default (200 to 399; moto's is 200)",
        "names AWS's default, 200 to 399",
        "the same on AWS; `healthcheck-success-codes` says others, which the peer does not know",
    ),
)
