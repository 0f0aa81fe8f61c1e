# By a pipe: arguments are for everybody on the machine to see.
keep() {
	local type=SecureString
	[ "$1" != state ] || type=String
	printf '{"Name": "/cloud-controller/%s/%s", "Type": "%s", "Value": "%s", "Overwrite": true}' \
		"$CLUSTER" "$1" "$type" "$2" |
		aws ssm put-parameter --region "$REGION" --cli-input-json file:///dev/stdin >/dev/null
}
