
# The configuration that all machines of the control plane share. SANS: what the API server is called besides $ENDPOINT.
cluster_configuration() {
	cat <<YAML
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: $CLUSTER
kubernetesVersion: stable-$VERSION
controlPlaneEndpoint: "$ENDPOINT:6443"
encryptionAlgorithm: ECDSA-P256
networking: {podSubnet: "$POD_CIDR", serviceSubnet: "$SERVICE_CIDR"}
apiServer: {certSANs: [$SANS]}
# Leaves the cloud to the CCM. With the names of the CCM's controllers, kube-controller-manager 1.37 does not start.
controllerManager:
  extraArgs:
  - {name: cloud-provider, value: external}
  - {name: allocate-node-cidrs, value: "true"}
YAML
}
