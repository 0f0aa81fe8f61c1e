# Pods with a network of their own must not learn what only their machine may. Only packets that are forwarded, or come
# from elsewhere, pass this chain; what the machine and pods in its network send does not. No network plugin writes into
# it.
cat >/etc/systemd/system/no-metadata-for-pods.service <<'UNIT'
[Unit]
Before=kubelet.service
[Service]
Type=oneshot
ExecStart=/usr/sbin/iptables -w -t raw -I PREROUTING -d @METADATA@ -j DROP
[Install]
WantedBy=multi-user.target
UNIT
command -v iptables >/dev/null || dnf install -y iptables
systemctl enable --now no-metadata-for-pods
