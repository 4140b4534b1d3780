// Package schemas checks the manifests of deploy/kubernetes against the schemas that their projects publish. It is a
// module of its own, so that anneal does not depend on Kubernetes.
package schemas
