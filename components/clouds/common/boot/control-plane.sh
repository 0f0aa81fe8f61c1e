
# FIRST is true on the one machine that may begin the cluster; it does so once: parameter `state` tells that it has.
begin() {
	parameter ca-key >/etc/kubernetes/pki/ca.key
	{
		printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n'
		registration
		cluster_configuration
	} >/run/init.yaml
	kubeadm init --config /run/init.yaml
	rm /run/init.yaml
	keep state initialised
	keep certificate-key "$(kubeadm certs certificate-key)"
}

join() {
	local key
	until key=$(parameter certificate-key) && [ "$key" != none ]; do sleep 10; done
	{
		printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n'
		registration
		discovery
		printf 'controlPlane:\n  certificateKey: "%s"\n' "$key"
	} >/run/join.yaml
	rm /etc/kubernetes/pki/ca.crt # kubeadm fetches it with the others
	kubeadm join --config /run/join.yaml
	rm /run/join.yaml
}

if [ "$FIRST" = true ] && [ "$(parameter state)" = new ]; then begin; else join; fi

# What joins needs a token and, for the control plane, the certificates; both are short-lived and made anew each hour.
{
	printf '#!/bin/bash\nset -euo pipefail\numask 077\nexport KUBECONFIG=/etc/kubernetes/admin.conf\n'
	printf 'CLUSTER=%q REGION=%q\n' "$CLUSTER" "$REGION"
	declare -f parameter keep
	cat <<'HOURLY'
printf 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\ncertificateKey: "%s"\n' \
	"$(parameter certificate-key)" >/run/upload.yaml
kubeadm init phase upload-certs --upload-certs --skip-certificate-key-print --config /run/upload.yaml
rm /run/upload.yaml
keep join-token "$(kubeadm token create --ttl 3h)"
HOURLY
} >/usr/local/sbin/keep-join-secrets
chmod 700 /usr/local/sbin/keep-join-secrets
printf '[Service]\nType=oneshot\nExecStart=/usr/local/sbin/keep-join-secrets\n' \
	>/etc/systemd/system/keep-join-secrets.service
printf '[Timer]\nOnActiveSec=0\nOnUnitActiveSec=1h\n[Install]\nWantedBy=timers.target\n' \
	>/etc/systemd/system/keep-join-secrets.timer
systemctl enable --now keep-join-secrets.timer
