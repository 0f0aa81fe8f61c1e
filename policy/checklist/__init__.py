"""The rules of the policy pack, one module each; importing them starts nothing."""

from policy.checklist.cloud_config import CLOUD_CONFIG_IN_SECRET
from policy.checklist.order import LOAD_BALANCERS_DEPEND_ON_CCM
from policy.checklist.tolerations import CCM_TOLERATES_UNINITIALIZED

POLICIES = [CCM_TOLERATES_UNINITIALIZED, CLOUD_CONFIG_IN_SECRET, LOAD_BALANCERS_DEPEND_ON_CCM]
