"""The rules of the policy pack, one module each, and those of every cloud; importing them starts nothing."""

from policy import clouds
from policy.checklist.access_keys import NO_ACCESS_KEYS
from policy.checklist.access_logs import PUBLIC_BALANCERS_LOG_ACCESS
from policy.checklist.address_changes import ADDRESS_CHANGES_ACKNOWLEDGED
from policy.checklist.annotations import ANNOTATIONS_ARE_ACCEPTED
from policy.checklist.api_server import API_SERVER_WITHOUT_CLOUD
from policy.checklist.balancer_quotas import QUOTAS_SUFFICE
from policy.checklist.bindings import BINDINGS_ARE_NARROW
from policy.checklist.capabilities import CCM_DROPS_CAPABILITIES
from policy.checklist.ccm_rights import CCM_HAS_RIGHTS, CCM_RIGHTS_ARE_NARROW
from policy.checklist.clear_credentials import NO_CLEAR_CREDENTIALS
from policy.checklist.cloud_config import CLOUD_CONFIG_IN_SECRET
from policy.checklist.cluster_cidrs import CLUSTER_CIDRS_AGREE
from policy.checklist.config_syntax import CLOUD_CONFIG_IS_VALID
from policy.checklist.controller_manager import CONTROLLER_MANAGER_LEAVES_CLOUD
from policy.checklist.deletion_protection import LOAD_BALANCERS_ARE_PROTECTED
from policy.checklist.effects import ANNOTATIONS_TAKE_EFFECT
from policy.checklist.egress import CCM_EGRESS_RESTRICTED
from policy.checklist.health_checks import BALANCERS_CHECK_HEALTH
from policy.checklist.images import CCM_IMAGE_PINNED
from policy.checklist.internal_endpoints import INTERNAL_ENDPOINTS
from policy.checklist.kube_proxy import KUBE_PROXY_ANSWERS
from policy.checklist.kubelets import KUBELETS_ARE_EXTERNAL
from policy.checklist.leader_election import CCM_ELECTS_LEADER
from policy.checklist.leader_election_file import CCM_FILE_ELECTS_LEADER
from policy.checklist.local_health import LOCAL_TRAFFIC_IS_CHECKED
from policy.checklist.logs import CCM_LOGS_TO_OUTPUT
from policy.checklist.node_numbers import NODES_HAVE_ROOM
from policy.checklist.node_versions import NODES_FOLLOW_CONTROL_PLANE
from policy.checklist.non_root import CCM_RUNS_AS_NON_ROOT
from policy.checklist.one_owner import SERVICES_HAVE_ONE_OWNER
from policy.checklist.order import LOAD_BALANCERS_DEPEND_ON_CCM
from policy.checklist.powers import ROLES_WITHOUT_POWERS
from policy.checklist.priority import CCM_HAS_PRIORITY
from policy.checklist.probes import CCM_HAS_PROBES
from policy.checklist.ranges import RANGES_ARE_DISJOINT
from policy.checklist.rbac import ROLES_WITHOUT_WILDCARDS
from policy.checklist.read_only_root import CCM_HAS_READ_ONLY_ROOT
from policy.checklist.rendering import STACK_RENDERS_OBJECTS
from policy.checklist.resources import CCM_HAS_RESOURCES
from policy.checklist.rotation import CREDENTIALS_EXPIRE
from policy.checklist.seccomp import CCM_SETS_SECCOMP
from policy.checklist.shared import SHARED_PORTS_ARE_FREE
from policy.checklist.source_ranges import PUBLIC_BALANCERS_LIMIT_SOURCES
from policy.checklist.support import CLUSTER_IS_SUPPORTED
from policy.checklist.tls import PUBLIC_PORTS_ARE_ENCRYPTED
from policy.checklist.tolerations import CCM_TOLERATES_UNINITIALIZED
from policy.checklist.upgrade_notes import UPGRADE_NOTES_ACKNOWLEDGED
from policy.checklist.versions import CCM_FITS_KUBERNETES, CCM_VERSION_KNOWN
from policy.checklist.vulnerabilities import NO_KNOWN_VULNERABILITIES
from policy.checklist.workload_credentials import NO_CREDENTIALS_IN_PODS
from policy.checklist.zones import LOAD_BALANCERS_SERVE_NODE_ZONES
from policy.rules import Rule

POLICIES: list[Rule] = [
    CCM_TOLERATES_UNINITIALIZED,
    CCM_ELECTS_LEADER,
    CCM_FILE_ELECTS_LEADER,
    CCM_HAS_PROBES,
    CCM_IMAGE_PINNED,
    CCM_HAS_RESOURCES,
    CCM_HAS_PRIORITY,
    CCM_RUNS_AS_NON_ROOT,
    CCM_DROPS_CAPABILITIES,
    CCM_SETS_SECCOMP,
    CCM_HAS_READ_ONLY_ROOT,
    CCM_LOGS_TO_OUTPUT,
    STACK_RENDERS_OBJECTS,
    CLOUD_CONFIG_IN_SECRET,
    NO_CLEAR_CREDENTIALS,
    NO_CREDENTIALS_IN_PODS,
    NO_ACCESS_KEYS,
    CREDENTIALS_EXPIRE,
    CLOUD_CONFIG_IS_VALID,
    INTERNAL_ENDPOINTS,
    ROLES_WITHOUT_WILDCARDS,
    ROLES_WITHOUT_POWERS,
    BINDINGS_ARE_NARROW,
    CCM_HAS_RIGHTS,
    CCM_RIGHTS_ARE_NARROW,
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
    NODES_FOLLOW_CONTROL_PLANE,
    CLUSTER_IS_SUPPORTED,
    NO_KNOWN_VULNERABILITIES,
    UPGRADE_NOTES_ACKNOWLEDGED,
    CONTROLLER_MANAGER_LEAVES_CLOUD,
    KUBELETS_ARE_EXTERNAL,
    API_SERVER_WITHOUT_CLOUD,
    KUBE_PROXY_ANSWERS,
    CLUSTER_CIDRS_AGREE,
    RANGES_ARE_DISJOINT,
    NODES_HAVE_ROOM,
    CCM_EGRESS_RESTRICTED,
    *(policy for cloud in clouds.descriptors() for policy in cloud.policies),
]
