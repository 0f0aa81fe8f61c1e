// pulumi-resource-kubernetes: Pulumi's Kubernetes provider. Its own main package embeds two files that its build
// generates and its Go module lacks: the schema, which only SDK generators read, and Terraform's names.
package main

import (
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

func main() {
	provider.Serve("kubernetes", version.Version, []byte("{}"), []byte("{}"))
}
