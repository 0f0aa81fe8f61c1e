# The part of a machine's start that is AWS's own; Amazon Linux 2023. Set before it: CLUSTER, REGION.

imds() {
	local token
	token=$(curl -sSf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
	curl -sSf -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}

parameter() {
	aws ssm get-parameter --region "$REGION" --with-decryption --name "/cloud-controller/$CLUSTER/$1" \
		--query Parameter.Value --output text
}

# By a pipe: arguments are for everybody on the machine to see.
keep() {
	local type=SecureString
	[ "$1" != state ] || type=String
	printf '{"Name": "/cloud-controller/%s/%s", "Type": "%s", "Value": "%s", "Overwrite": true}' \
		"$CLUSTER" "$1" "$type" "$2" |
		aws ssm put-parameter --region "$REGION" --cli-input-json file:///dev/stdin >/dev/null
}

NODE=$(imds local-hostname)
PROVIDER_ID="aws:///$(imds placement/availability-zone)/$(imds instance-id)"
