"""What PersistentVolumeClaims refer to on mycloud: the driver and the default class of its volumes."""

from __future__ import annotations

from cloud_controller.clouds.descriptor import Manifest
from cloud_controller.clouds.mycloud.names import DRIVER, PROVIDER_NAME, PROVISIONER

# kube-controller-manager creates VolumeAttachments because of this object; schedulers and kubelets wait for them.
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
    # A volume belongs to a zone, which the scheduler chooses.
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}

STORAGE = (_DRIVER, _CLASS)
