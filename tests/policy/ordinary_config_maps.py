"""Entries of ConfigMaps as ordinary clusters have them: none holds a credential, and many come near."""

from __future__ import annotations

import json

_CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIDBTCCAe2gAwIBAgIIUe7fdc3CcoowDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE
-----END CERTIFICATE-----
"""

ORDINARY = {
    "shop: messages_de.properties": "login.password=Passwort eingeben\npassword=Passwort\nlabel.token=Token\n",
    "shop: i18n.json": json.dumps({"password": "Your password", "errors": {"invalid_password": "It is wrong"}}),
    "coredns: Corefile": """
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loadbalance
}
""",
    "kube-proxy: config.conf": """
apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
clientConnection:
  acceptContentTypes: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
conntrack: {maxPerCore: null, min: null}
kind: KubeProxyConfiguration
mode: nftables
""",
    "kube-proxy: kubeconfig.conf": """
apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: https://10.0.0.1:6443
  name: default
contexts:
- context: {cluster: default, namespace: default, user: default}
  name: default
current-context: default
users:
- name: default
  user:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
""",
    "cluster-info: kubeconfig": f"""
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {"TUlJREJUQ0NBZTJnQXdJQkFnSUlVZTdmZGM=" * 3}
    server: https://10.0.0.1:6443
  name: ""
contexts: null
kind: Config
users: null
""",
    "extension-apiserver-authentication: client-ca-file": _CERTIFICATE,
    "kube-root-ca.crt: ca.crt": _CERTIFICATE,
    "kubeadm-config: ClusterConfiguration": """
apiServer:
  extraArgs:
  - {name: authorization-mode, value: "Node,RBAC"}
  - {name: service-account-key-file, value: /etc/kubernetes/pki/sa.pub}
certificatesDir: /etc/kubernetes/pki
encryptionAlgorithm: RSA-2048
kind: ClusterConfiguration
kubernetesVersion: v1.36.0
""",
    "kubelet-config: kubelet": """
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization: {mode: Webhook}
kind: KubeletConfiguration
rotateCertificates: true
serverTLSBootstrap: true
tlsPrivateKeyFile: /var/lib/kubelet/pki/kubelet.key
""",
    "aws-auth: mapRoles": """
- rolearn: arn:aws:iam::111122223333:role/nodes
  username: system:node:{{EC2PrivateDNSName}}
  groups: [system:bootstrappers, system:nodes]
""",
    "prometheus: prometheus.yml": """
global: {scrape_interval: 30s}
scrape_configs:
- job_name: kubernetes-nodes
  scheme: https
  tls_config:
    ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    key_file: /etc/prometheus/tls/tls.key
  bearer_token_file: /var/run/secrets/kubernetes.io/serviceaccount/token
  basic_auth: {username: scrape, password_file: /etc/prometheus/secrets/password}
  kubernetes_sd_configs: [{role: node}]
  relabel_configs:
  - {source_labels: [__meta_kubernetes_secret], target_label: secret, action: keep}
""",
    "alertmanager: alertmanager.yml": """
global:
  smtp_auth_username: alerts
  smtp_auth_password_file: /etc/alertmanager/secrets/smtp
  slack_api_url_file: /etc/alertmanager/secrets/slack
receivers:
- name: on-call
  pagerduty_configs: [{routing_key_file: /etc/alertmanager/secrets/pagerduty}]
""",
    "nginx: nginx.conf": """
events {}
http {
  server {
    listen 443 ssl;
    ssl_certificate /etc/tls/tls.crt;
    ssl_certificate_key /etc/tls/tls.key;
    ssl_password_file /etc/tls/password;
    auth_basic "restricted";
    auth_basic_user_file /etc/nginx/htpasswd;
    location / {
      proxy_pass http://backend:8080;
      proxy_set_header Authorization $http_authorization;
      proxy_set_header X-Token "";
    }
  }
}
""",
    "ingress-nginx-controller: global-auth-url": "https://auth.example.com/oauth2/auth?token=check",
    "ingress-nginx-controller: ssl-ciphers": "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
    "fluent-bit: fluent-bit.conf": """
[SERVICE]
    Flush         1
    Log_Level     info
    HTTP_Server   On
[FILTER]
    Name                kubernetes
    Match               kube.*
    Kube_URL            https://kubernetes.default.svc:443
    Kube_Token_File     /var/run/secrets/kubernetes.io/serviceaccount/token
    Kube_Token_TTL      600
    Use_Kubelet         On
[OUTPUT]
    Name            es
    Host            ${ELASTICSEARCH_HOST}
    HTTP_User       ${ELASTICSEARCH_USER}
    HTTP_Passwd     ${ELASTICSEARCH_PASSWORD}
    tls.key_passwd  ${KEY_PASSWORD}
""",
    "fluentd: output.conf": """
<match **>
  @type elasticsearch
  user "#{ENV['ES_USER']}"
  password "#{ENV['ES_PASSWORD']}"
</match>
""",
    "argocd-cm: dex.config": """
connectors:
- type: github
  id: github
  name: GitHub
  config:
    clientID: aabbccddeeff00112233
    clientSecret: $dex.github.clientSecret
    orgs: [{name: example}]
""",
    "argocd-cm: oidc.config": """
name: Okta
issuer: https://dev.okta.com
clientID: abc
clientSecret: $oidc.okta.clientSecret
""",
    "argocd-cm: repositories": """
- url: https://github.com/example/app.git
  usernameSecret: {name: repository, key: username}
  passwordSecret: {name: repository, key: password}
""",
    "argocd-rbac-cm: policy.csv": "p, role:org-admin, applications, *, */*, allow\ng, org:team, role:org-admin\n",
    "grafana: grafana.ini": """
[database]
password = $__file{/etc/secrets/db}
;password =
# If the password contains # or ; you have to wrap it with triple quotes.
[security]
admin_password = ${GF_SECURITY_ADMIN_PASSWORD}
disable_initial_admin_creation = true
cookie_secure = true
[auth.generic_oauth]
client_secret = $__env{CLIENT_SECRET}
token_url = https://login.example.com/oauth/token
auto_login = false
[auth]
login_maximum_lifetime_duration = 30d
token_rotation_interval_minutes = 10
""",
    "grafana: dashboard.json": json.dumps(
        {"panels": [{"title": "Tokens per second", "targets": [{"expr": "rate(tokens_total[5m])"}], "key": "a1b2c3d4"}]}
    ),
    "otel-collector: config.yaml": """
extensions:
  bearertokenauth: {token: "${env:TOKEN}"}
exporters:
  otlp:
    endpoint: collector:4317
    headers: {authorization: "Bearer ${env:API_KEY}"}
""",
    "loki: config.yaml": """
auth_enabled: false
storage_config:
  aws:
    s3: s3://eu-central-1/logs
    access_key_id: ${ACCESS_KEY}
    secret_access_key: "{{ .Values.secret }}"
""",
    "istio: mesh": """
defaultConfig:
  discoveryAddress: istiod:15012
trustDomain: cluster.local
enableAutoMtls: true
""",
    "dex: config.yaml": """
expiry:
  signingKeys: 6h
  idTokens: 24h
  refreshTokens: {validIfNotUsedFor: 2160h, absoluteLifetime: 3960h}
oauth2: {passwordConnector: ldap, responseTypes: [code, token, id_token], grantTypes: [password, refresh_token]}
ttl: {access_token: 3600s, refresh_token: 720h}
""",
    "my-app: application.properties": """
spring.datasource.url=jdbc:postgresql://db:5432/app
spring.datasource.username=app
spring.datasource.password=${DB_PASSWORD}
server.ssl.key-store-password=%KEYSTORE_PASSWORD%
security.password.min-length=12
security.token.validity=86400
""",
    "my-app: app.env": """
export DB_HOST=db
DB_PASSWORD_FILE=/run/secrets/db
SECRET_NAME=app-tls
TOKEN=<your token>
API_KEY=changeme
PWD=/srv/app
""",
    "my-app: start.sh": """
#!/bin/sh
set -e
TOKEN=$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)
PASSWORD="$(kubectl get secret db -o jsonpath='{.data.password}' | base64 -d)"
export API_KEY="${API_KEY:?}"
if [ -z "$TOKEN" ]; then echo "no token"; exit 1; fi
curl -H "Authorization: Bearer $TOKEN" https://api.example.com/v1
psql "postgres://app:$PASSWORD@db:5432/app"
""",
    "my-app: settings.py": """
import os
SECRET_KEY = os.environ["SECRET_KEY"]
password = os.getenv("DB_PASSWORD")
token = request.headers.get("X-Token")
""",
    "model: tokenizer_config.json": json.dumps(
        {"eos_token": "<|endoftext|>", "unk_token": "[UNK]", "max_token": 128000}
    ),
    "manifests: app.yaml": """
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      automountServiceAccountToken: false
      imagePullSecrets: [{name: registry-credentials}]
      containers:
      - name: app
        env:
        - {name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
        - {name: AWS_WEB_IDENTITY_TOKEN_FILE, value: /var/run/secrets/eks.amazonaws.com/serviceaccount/token}
      volumes:
      - {name: tls, secret: {secretName: app-tls, items: [{key: token, path: token}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  annotations: {nginx.ingress.kubernetes.io/auth-secret: basic-auth}
""",
    "my.cnf: my.cnf": """
[mysqld]
default_authentication_plugin = caching_sha2_password
skip-name-resolve
ssl-key = /tls/tls.key
""",
    "postgresql: postgresql.conf": "password_encryption = scram-sha-256\nssl_key_file = '/tls/tls.key'\nssl = on\n",
    "cloud-provider-config: cloud.conf": """
[Global]
KubernetesClusterID = prod-1
Region = eu-central-1
VPC = vpc-0123456789abcdef0
""",
    "mycloud: cloud.conf": """
[Global]
endpoint = https://api.mycloud.internal
token-file = /etc/cloud/token
token =
""",
    "locale: sk.json": '{"sk": "Slovenčina", "cs": "Čeština"}',
    "keys: authorized_keys": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl admin\n",
    "keys: public-key": "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo",
}
"""By ConfigMap and entry."""
