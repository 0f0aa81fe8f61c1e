"""AWS's limits on calls: which calls share a bucket, how it fills again, and what AWS answers."""

from __future__ import annotations

from benchmarks.aws.limits import Buckets, refusal
from tests.clock import Clock


def accepted(buckets: Buckets, *operations: str, calls: int = 1000) -> int:
    """How many of these calls, made in turn, are within the limits."""
    return sum(buckets.take(operations[number % len(operations)]) for number in range(calls))


def test_reads_of_one_elb_api_share_a_bucket() -> None:
    buckets = Buckets(Clock())

    assert accepted(buckets, "elbv2 DescribeTags", "elbv2 DescribeListeners") == 40
    assert accepted(buckets, "elb DescribeTags") == 40


def test_registrations_and_other_changes_of_an_elb_api_have_a_bucket_each() -> None:
    buckets = Buckets(Clock())

    assert accepted(buckets, "elbv2 RegisterTargets", "elbv2 DeregisterTargets") == 20
    assert accepted(buckets, "elbv2 CreateListener", "elbv2 ModifyListener", "elbv2 AddTags") == 20


def test_each_operation_of_ec2_has_a_bucket() -> None:
    buckets = Buckets(Clock())

    assert accepted(buckets, "ec2 DescribeSubnets") == accepted(buckets, "ec2 DescribeVpcs") == 100
    assert accepted(buckets, "ec2 CreateSecurityGroup") == accepted(buckets, "ec2 CreateTags") == 50


def test_a_bucket_fills_again_up_to_its_capacity() -> None:
    clock = Clock()
    buckets = Buckets(clock)
    accepted(buckets, "elbv2 CreateListener")

    clock.now = 2.0
    assert accepted(buckets, "elbv2 CreateListener") == 6
    clock.now = 100.0
    assert accepted(buckets, "elbv2 CreateListener") == 20


def test_a_refused_call_takes_no_token() -> None:
    clock = Clock()
    buckets = Buckets(clock)
    accepted(buckets, "elbv2 RegisterTargets")

    for clock.now in (0.1, 0.2):
        assert not buckets.take("elbv2 RegisterTargets")
    clock.now = 0.3
    assert buckets.take("elbv2 RegisterTargets")


def test_calls_to_other_services_are_not_limited() -> None:
    assert accepted(Buckets(Clock()), "sts GetCallerIdentity") == 1000


def test_a_refusal_has_the_form_of_its_service() -> None:
    assert refusal("ec2 CreateTags")[0] == 503
    assert b"<Response><Errors><Error><Code>RequestLimitExceeded</Code>" in refusal("ec2 CreateTags")[1]
    assert refusal("elbv2 AddTags")[0] == 400
    assert b"<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code>" in refusal("elbv2 AddTags")[1]
