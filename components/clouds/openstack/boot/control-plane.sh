
# Every machine of the control plane has the same authorities and keys, so that kubeadm need not hand them over.
mkdir -p /etc/kubernetes/pki/etcd
while read -r file content; do
	printf '%s' "$content" | base64 -d >"/etc/kubernetes/pki/$file"
done <<<"$PKI"

# Whether there is a cluster. Any answer counts: a second cluster would be worse than none. Only two minutes of silence
# mean that there is none.
begun() {
	local _
	for _ in {1..12}; do
		[ "$(answer)" = 000 ] || return 0
		sleep 10
	done
	return 1
}

# FIRST is true on the one machine that may begin the cluster. It joins one that is there: it was replaced.
if [ "$FIRST" = true ] && ! begun; then
	{
		printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n'
		registration
		cluster_configuration
	} >/run/init.yaml
	kubeadm init --config /run/init.yaml
	rm /run/init.yaml
else
	{
		printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n'
		registration
		discovery
		printf 'controlPlane: {}\n'
	} >/run/join.yaml
	kubeadm join --config /run/join.yaml
	rm /run/join.yaml /run/joiner.kubeconfig
fi
