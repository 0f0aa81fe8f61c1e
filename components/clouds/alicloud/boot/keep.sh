# By a pipe: arguments are for everybody on the machine to see.
keep() {
	printf '%s' "$2" | cluster-secret "$REGION" put "cloud-controller/$CLUSTER/$1"
}
