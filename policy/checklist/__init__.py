"""The rules of the policy pack, one module each, and those of every cloud; importing them starts nothing."""

from policy import clouds
from policy.checklist.access_keys import NO_ACCESS_KEYS
from policy.checklist.address_changes import ADDRESS_CHANGES_ACKNOWLEDGED
from policy.checklist.clear_credentials import NO_CLEAR_CREDENTIALS
from policy.checklist.cloud_config import CLOUD_CONFIG_IN_SECRET
from policy.checklist.config_syntax import CLOUD_CONFIG_IS_VALID
from policy.checklist.egress import CCM_EGRESS_RESTRICTED
from policy.checklist.health_checks import BALANCERS_CHECK_HEALTH
from policy.checklist.images import CCM_IMAGE_PINNED
from policy.checklist.internal_endpoints import INTERNAL_ENDPOINTS
from policy.checklist.leader_election import CCM_ELECTS_LEADER
from policy.checklist.order import LOAD_BALANCERS_DEPEND_ON_CCM
from policy.checklist.priority import CCM_HAS_PRIORITY
from policy.checklist.probes import CCM_HAS_PROBES
from policy.checklist.rbac import ROLES_WITHOUT_WILDCARDS
from policy.checklist.resources import CCM_HAS_RESOURCES
from policy.checklist.rotation import CREDENTIALS_EXPIRE
from policy.checklist.source_ranges import PUBLIC_BALANCERS_LIMIT_SOURCES
from policy.checklist.tolerations import CCM_TOLERATES_UNINITIALIZED
from policy.checklist.versions import CCM_FITS_KUBERNETES, CCM_VERSION_KNOWN
from policy.checklist.workload_credentials import NO_CREDENTIALS_IN_PODS
from policy.rules import Rule

POLICIES: list[Rule] = [
    CCM_TOLERATES_UNINITIALIZED,
    CCM_ELECTS_LEADER,
    CCM_HAS_PROBES,
    CCM_IMAGE_PINNED,
    CCM_HAS_RESOURCES,
    CCM_HAS_PRIORITY,
    CLOUD_CONFIG_IN_SECRET,
    NO_CLEAR_CREDENTIALS,
    NO_CREDENTIALS_IN_PODS,
    NO_ACCESS_KEYS,
    CREDENTIALS_EXPIRE,
    CLOUD_CONFIG_IS_VALID,
    INTERNAL_ENDPOINTS,
    ROLES_WITHOUT_WILDCARDS,
    LOAD_BALANCERS_DEPEND_ON_CCM,
    PUBLIC_BALANCERS_LIMIT_SOURCES,
    BALANCERS_CHECK_HEALTH,
    ADDRESS_CHANGES_ACKNOWLEDGED,
    CCM_FITS_KUBERNETES,
    CCM_VERSION_KNOWN,
    CCM_EGRESS_RESTRICTED,
    *(policy for cloud in clouds.descriptors() for policy in cloud.policies),
]
