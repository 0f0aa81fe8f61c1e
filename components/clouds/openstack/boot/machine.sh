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

# What an API server of our authority answers, as an HTTP status; 000 if none does. kubeadm publishes what is asked for
# last of all that joining needs.
answer() {
	curl -s -o /dev/null -w '%{http_code}' --cacert /etc/kubernetes/pki/ca.crt --max-time 10 \
		"https://$ENDPOINT:6443/api/v1/namespaces/kube-public/configmaps/cluster-info"
}

# Until the cluster takes in machines. A refusal means for some minutes that kubeadm is not done yet; later, that the
# cluster does not tell strangers.
wait_for_cluster() {
	local refused=0
	until [ "$refused" = 30 ]; do
		case $(answer) in
		200) return ;;
		401 | 403) refused=$((refused + 1)) ;;
		esac
		sleep 10
	done
}

# A client certificate of those that may join, from the user data.
discovery() {
	wait_for_cluster
	printf '%s' "$JOINER" | base64 -d >/run/joiner.kubeconfig
	printf 'discovery:\n  file: {kubeConfigPath: /run/joiner.kubeconfig}\n'
}
