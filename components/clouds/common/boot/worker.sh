
{
	printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n'
	registration
	discovery
} >/run/join.yaml
rm /etc/kubernetes/pki/ca.crt # kubeadm writes it itself, as the API server has it
kubeadm join --config /run/join.yaml
rm /run/join.yaml
