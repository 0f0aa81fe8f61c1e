// Writes which fields of Kubernetes' API types lose an empty value when an object goes through its Go type, as
// pulumi-kubernetes sends every input through it: local/plugins/kubernetes/api_fields.json. Alpha and beta
// versions are left out: they come and go with each release.
//
//	cd tools && go run ./api-fields > ../local/plugins/kubernetes/api_fields.json
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/scheme"
)

// A field's entry: "-" if an empty value is dropped, "*" if it is a list or map of what follows, then the struct's
// name or "quantity". A field that has none of these has no entry.
type fields map[string]string

var (
	structs   = map[string]fields{}
	kinds     = map[string]string{}
	quantity  = reflect.TypeOf(resource.Quantity{})
	converter = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
	stable    = regexp.MustCompile(`^v\d+$`)
)

func main() {
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		group := gvk.GroupVersion().String()
		_, named := goType.FieldByName("ObjectMeta")
		if !named || !stable.MatchString(gvk.Version) {
			continue
		}
		kinds[group+"/"+gvk.Kind] = describe(goType)
	}
	fmt.Printf("{\"kinds\": {\n%s\n},\n\"structs\": {\n%s\n}}\n", lines(kinds), lines(structs))
}

// One line an entry, so that a new version of Kubernetes shows as a readable difference.
func lines[V any](entries map[string]V) string {
	var written []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value, err := json.Marshal(entries[key])
		if err != nil {
			panic(err)
		}
		written = append(written, fmt.Sprintf("%q: %s", key, value))
	}
	return strings.Join(written, ",\n")
}

func describe(goType reflect.Type) string {
	path := strings.Split(goType.PkgPath(), "/")
	name := strings.Join(append(path[len(path)-2:], goType.Name()), ".")
	if _, known := structs[name]; !known {
		structs[name] = fields{}
		collect(goType, structs[name])
	}
	return name
}

func collect(goType reflect.Type, found fields) {
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			collect(field.Type, found)
			continue
		}
		// Nobody declares a status, nor what only the API server writes.
		if name == "-" || name == "status" || name == "managedFields" {
			continue
		}
		entry := content(field.Type)
		if strings.Contains(options, "omitempty") && canBeEmpty(field.Type.Kind()) {
			entry = "-" + entry
		}
		if entry != "" {
			found[name] = entry
		}
	}
}

// As apimachinery's runtime converter judges: a struct and a set pointer are never empty.
func canBeEmpty(kind reflect.Kind) bool {
	return kind != reflect.Struct && kind != reflect.Pointer && kind != reflect.Interface
}

func content(goType reflect.Type) string {
	switch {
	case goType.Kind() == reflect.Pointer:
		return content(goType.Elem())
	case goType == quantity:
		return "quantity"
	case goType.Implements(converter) || reflect.PointerTo(goType).Implements(converter):
		return ""
	case goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map:
		if inner := content(goType.Elem()); inner != "" {
			return "*" + inner
		}
	case goType.Kind() == reflect.Struct:
		return describe(goType)
	}
	return ""
}
