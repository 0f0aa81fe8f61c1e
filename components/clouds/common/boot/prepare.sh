printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
modprobe -a overlay br_netfilter
printf 'net.ipv4.ip_forward=1\nnet.bridge.bridge-nf-call-iptables=1\n' >/etc/sysctl.d/90-kubernetes.conf
sysctl --system >/dev/null

cat >/etc/yum.repos.d/kubernetes.repo <<REPO
[kubernetes]
name=Kubernetes
baseurl=https://pkgs.k8s.io/core:/stable:/v$VERSION/rpm/
gpgcheck=1
gpgkey=https://pkgs.k8s.io/core:/stable:/v$VERSION/rpm/repodata/repomd.xml.key
REPO
dnf install -y containerd kubelet kubeadm kubectl

# Pods get addresses of their node's range, to which the CCM's route leads; out of the cluster they go by the node's.
cat >/etc/containerd/cni.template <<'CNI'
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": {"type": "host-local",
  "ranges": [{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}],
  "routes": [{"dst": "0.0.0.0/0"}]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
CNI
mkdir -p /etc/containerd /etc/cni/net.d
containerd config default | sed \
	-e 's#SystemdCgroup = .*#SystemdCgroup = true#' \
	-e 's#conf_template = .*#conf_template = "/etc/containerd/cni.template"#' >/etc/containerd/config.toml
cat >/etc/systemd/system/pod-masquerade.service <<UNIT
[Unit]
Before=kubelet.service
[Service]
Type=oneshot
ExecStart=/usr/sbin/iptables -w -t nat -A POSTROUTING -s $POD_CIDR ! -d $POD_CIDR -j MASQUERADE
[Install]
WantedBy=multi-user.target
UNIT
systemctl enable --now containerd pod-masquerade kubelet

umask 077
mkdir -p /etc/kubernetes/pki
printf '%s' "$CA" | base64 -d >/etc/kubernetes/pki/ca.crt

# The kubelet leaves the node to the CCM (uninitialized taint), and says by its provider ID which machine it is.
registration() {
	cat <<YAML
nodeRegistration:
  name: $NODE
  kubeletExtraArgs:
  - {name: cloud-provider, value: external}
  - {name: provider-id, value: "$PROVIDER_ID"}
  - {name: node-labels, value: "$LABELS"}
YAML
}
