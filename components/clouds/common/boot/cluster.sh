
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
controllerManager:
  extraArgs:
  - {name: cloud-provider, value: external}
  # What the CCM runs, off (requirements 002, section 8.3); the two that kubeadm turns on itself, on.
  - name: controllers
    value: "*,bootstrap-signer-controller,token-cleaner-controller,\
-cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller"
  - {name: allocate-node-cidrs, value: "true"}
YAML
}
