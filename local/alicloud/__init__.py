"""Alibaba Cloud on one machine: a stand-in that speaks the protocol of ECS, VPC, SLB (CLB), NLB and STS."""
