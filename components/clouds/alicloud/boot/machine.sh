# The part of a machine's start that is Alibaba Cloud's own; Alibaba Cloud Linux 3. Set before it: CLUSTER, REGION.

imds() {
	local token
	token=$(curl -sSf -X PUT -H 'X-aliyun-ecs-metadata-token-ttl-seconds: 60' http://100.100.100.200/latest/api/token)
	curl -sSf -H "X-aliyun-ecs-metadata-token: $token" "http://100.100.100.200/latest/meta-data/$1"
}

@NO_METADATA@
# The role of the machine is attached after its start.
until imds ram/security-credentials/ >/dev/null 2>&1; do sleep 5; done

cat >/usr/local/sbin/cluster-secret <<'PYTHON'
@KMS@
PYTHON
chmod 700 /usr/local/sbin/cluster-secret

parameter() {
	cluster-secret "$REGION" get "cloud-controller/$CLUSTER/$1"
}

NODE=$(imds hostname)
INSTANCE=$(imds instance-id)
