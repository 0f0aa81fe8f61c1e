"""What the CCM's manifests have on mycloud besides: the driver and the class of its volumes."""

from __future__ import annotations

from cloud_controller.clouds.mycloud.instances import PROVIDER_NAME
from cloud_controller.clouds.mycloud.volumes import DRIVER, PROVISIONER
from cloud_controller.manifests import CloudParts, Manifest

# By this object kube-controller-manager makes VolumeAttachments, and schedulers and kubelets wait for them.
_DRIVER: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": DRIVER},
    "spec": {"attachRequired": True, "podInfoOnMount": False},
}
_CLASS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": PROVIDER_NAME,
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": PROVISIONER,
    "parameters": {"type": "standard"},
    "reclaimPolicy": "Delete",
    # A volume belongs to a zone: the scheduler says which.
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}

PARTS = CloudParts(storage=(_DRIVER, _CLASS), file_keys=("token-file",))
