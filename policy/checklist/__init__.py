"""The rules of the policy pack, one module each, and those of every cloud; importing them starts nothing."""

from policy import clouds
from policy.checklist.access_logs import PUBLIC_BALANCERS_LOG_ACCESS
from policy.checklist.address_changes import ADDRESS_CHANGES_ACKNOWLEDGED
from policy.checklist.annotations import ANNOTATIONS_ARE_ACCEPTED
from policy.checklist.balancer_quotas import QUOTAS_SUFFICE
from policy.checklist.cloud_config import CLOUD_CONFIG_IN_SECRET
from policy.checklist.deletion_protection import LOAD_BALANCERS_ARE_PROTECTED
from policy.checklist.effects import ANNOTATIONS_TAKE_EFFECT
from policy.checklist.health_checks import BALANCERS_CHECK_HEALTH
from policy.checklist.images import CCM_IMAGE_PINNED
from policy.checklist.leader_election import CCM_ELECTS_LEADER
from policy.checklist.local_health import LOCAL_TRAFFIC_IS_CHECKED
from policy.checklist.one_owner import SERVICES_HAVE_ONE_OWNER
from policy.checklist.order import LOAD_BALANCERS_DEPEND_ON_CCM
from policy.checklist.priority import CCM_HAS_PRIORITY
from policy.checklist.probes import CCM_HAS_PROBES
from policy.checklist.rbac import ROLES_WITHOUT_WILDCARDS
from policy.checklist.resources import CCM_HAS_RESOURCES
from policy.checklist.shared import SHARED_PORTS_ARE_FREE
from policy.checklist.source_ranges import PUBLIC_BALANCERS_LIMIT_SOURCES
from policy.checklist.tls import PUBLIC_PORTS_ARE_ENCRYPTED
from policy.checklist.tolerations import CCM_TOLERATES_UNINITIALIZED
from policy.checklist.versions import CCM_FITS_KUBERNETES, CCM_VERSION_KNOWN
from policy.checklist.zones import LOAD_BALANCERS_SERVE_NODE_ZONES
from policy.rules import Rule

POLICIES: list[Rule] = [
    CCM_TOLERATES_UNINITIALIZED,
    CCM_ELECTS_LEADER,
    CCM_HAS_PROBES,
    CCM_IMAGE_PINNED,
    CCM_HAS_RESOURCES,
    CCM_HAS_PRIORITY,
    CLOUD_CONFIG_IN_SECRET,
    ROLES_WITHOUT_WILDCARDS,
    LOAD_BALANCERS_DEPEND_ON_CCM,
    PUBLIC_BALANCERS_LIMIT_SOURCES,
    BALANCERS_CHECK_HEALTH,
    ADDRESS_CHANGES_ACKNOWLEDGED,
    ANNOTATIONS_ARE_ACCEPTED,
    ANNOTATIONS_TAKE_EFFECT,
    SERVICES_HAVE_ONE_OWNER,
    SHARED_PORTS_ARE_FREE,
    LOCAL_TRAFFIC_IS_CHECKED,
    LOAD_BALANCERS_SERVE_NODE_ZONES,
    PUBLIC_PORTS_ARE_ENCRYPTED,
    LOAD_BALANCERS_ARE_PROTECTED,
    PUBLIC_BALANCERS_LOG_ACCESS,
    QUOTAS_SUFFICE,
    CCM_FITS_KUBERNETES,
    CCM_VERSION_KNOWN,
    *(policy for cloud in clouds.descriptors() for policy in cloud.policies),
]
