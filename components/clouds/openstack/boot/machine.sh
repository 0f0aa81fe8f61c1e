# The part of a machine's start that is OpenStack's own, for a plain image with cloud-init and dnf. Set before it: NODE.

# As kubeadm requires: no swap, which some images have in memory, and SELinux that only warns.
touch /etc/systemd/zram-generator.conf
swapoff -a
sed -i '/\sswap\s/d' /etc/fstab
if command -v setenforce >/dev/null; then
	setenforce 0 || true # It fails where SELinux is off.
	sed -i 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config
fi

@NO_METADATA@
INSTANCE=$(cloud-init query v1.instance_id)

# Whether the cluster takes in machines: kubeadm publishes this last of all that joining needs.
joinable() {
	curl -sf -o /dev/null --cacert /etc/kubernetes/pki/ca.crt --max-time 10 \
		"https://$ENDPOINT:6443/api/v1/namespaces/kube-public/configmaps/cluster-info"
}

# A client certificate of those that may join, from the user data.
discovery() {
	until joinable; do sleep 10; done
	printf '%s' "$JOINER" | base64 -d >/run/joiner.kubeconfig
	printf 'discovery:\n  file: {kubeConfigPath: /run/joiner.kubeconfig}\n'
}
