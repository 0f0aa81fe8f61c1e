discovery() {
	local token hash
	until token=$(parameter join-token) && [ "$token" != none ]; do sleep 10; done
	hash=$(openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum)
	cat <<YAML
discovery:
  bootstrapToken:
    apiServerEndpoint: "$ENDPOINT:6443"
    token: "$token"
    caCertHashes: ["sha256:${hash%% *}"]
YAML
}
