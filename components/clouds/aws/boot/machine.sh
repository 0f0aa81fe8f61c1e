# Runs first on every machine of a cluster that runs itself; Amazon Linux 2023. Set before it: CLUSTER, REGION, VERSION,
# ENDPOINT, POD_CIDR, SERVICE_CIDR, CA (base64), LABELS.

imds() {
	local token
	token=$(curl -sSf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
	curl -sSf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}

parameter() {
	aws ssm get-parameter --region "$REGION" --with-decryption --name "/cloud-controller/$CLUSTER/$1" \
		--query Parameter.Value --output text
}

INSTANCE=$(imds instance-id)
ZONE=$(imds placement/availability-zone)
NODE=$(imds local-hostname)
