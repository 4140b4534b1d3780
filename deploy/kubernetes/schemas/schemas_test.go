package schemas

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	published "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	limits "k8s.io/apiserver/pkg/apis/cel"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

// A kind is what an object must be: a value of its Go type, and valid by the definition of its custom resource.
type kind struct {
	value      func() any
	module     string // that has the definition; "" for kinds that come with Kubernetes
	definition string // its file in the module
}

var kinds = map[string]kind{
	"v1/Service":   {value: func() any { return new(core.Service) }},
	"batch/v1/Job": {value: func() any { return new(batch.Job) }},
	"jobset.x-k8s.io/v1alpha2/JobSet": {func() any { return new(jobset.JobSet) },
		"sigs.k8s.io/jobset", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"},
	"kubeflow.org/v2beta1/MPIJob": {func() any { return new(mpi.MPIJob) },
		"github.com/kubeflow/mpi-operator", "manifests/base/kubeflow.org_mpijobs.yaml"},
	"trainer.kubeflow.org/v1alpha1/TrainingRuntime": {func() any { return new(trainer.TrainingRuntime) },
		"github.com/kubeflow/trainer/v2", "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml"},
	"trainer.kubeflow.org/v1alpha1/TrainJob": {func() any { return new(trainer.TrainJob) },
		"github.com/kubeflow/trainer/v2", "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"},
}

// Every object of every manifest is one that its project's schema allows, without unknown fields.
func TestManifestsMatchPublishedSchemas(t *testing.T) {
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("manifests %q, %v", files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, object := range bytes.Split(text, []byte("\n---\n")) {
			name, err := check(object)
			if seen[name] = true; err != nil {
				t.Errorf("%s, object %d: %v", file, i+1, err)
			}
		}
	}
	for name := range kinds {
		if !seen[name] {
			t.Errorf("no manifest has a %s", name)
		}
	}
}

// What schemas do not allow is found.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct{ file, was, is, want string }{
		{"train-job.yaml", "completionMode:", "completionsMode:", "unknown field"},
		{"train-jobset.yaml", "operator: All", "operator: Most", "Unsupported value"},
		{"train-mpijob.yaml", "mpiImplementation: OpenMPI", "mpiImplementation: NoMPI", "Unsupported value"},
		{"train-mpijob.yaml", "slotsPerWorker: 1", "slotsPerWorker: one", "cannot unmarshal"},
		{"train-trainjob.yaml", "numNodes: 4", "numNodes: four", "cannot unmarshal"},
		{"train-trainjob.yaml", "apiGroup: trainer.kubeflow.org, kind", "knid", "unknown field"},
	} {
		text, err := os.ReadFile("../" + c.file)
		if err != nil || !bytes.Contains(text, []byte(c.was)) {
			t.Fatalf("%s has no %q: %v", c.file, c.was, err)
		}
		var errs []error
		for object := range bytes.SplitSeq(bytes.ReplaceAll(text, []byte(c.was), []byte(c.is)), []byte("\n---\n")) {
			if _, err := check(object); err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
			t.Errorf("%s with %q: %v, want %q", c.file, c.is, errs, c.want)
		}
	}
}

// check returns the kind of an object, and what is wrong with the object.
func check(text []byte) (name string, err error) {
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%v/%v", object["apiVersion"], object["kind"])
	k, known := kinds[name]
	if !known {
		return name, fmt.Errorf("no schema of %s", name)
	}
	if err := yaml.UnmarshalStrict(text, k.value()); err != nil || k.module == "" {
		return name, err
	}
	return name, k.validate(object)
}

// validate checks an object by the definition of its custom resource, as a server does: types, enumerations, patterns,
// and rules in CEL.
func (k kind) validate(object map[string]any) error {
	s, err := k.schema(object)
	if err != nil {
		return err
	}
	validator, _, err := validation.NewSchemaValidator(s)
	if err != nil {
		return err
	}
	wrong := validation.ValidateCustomResource(nil, object, validator)
	structural, err := schema.NewStructural(s)
	if err != nil {
		return err
	}
	rules := cel.NewValidator(structural, true, limits.PerCallLimit)
	ctx, root, budget := context.Background(), field.NewPath(""), int64(limits.RuntimeCELCostBudget)
	broken, _ := rules.Validate(ctx, root, structural, object, nil, budget)
	return append(wrong, broken...).ToAggregate()
}

// schema reads the definition's schema of an object's version.
func (k kind) schema(object map[string]any) (*apiextensions.JSONSchemaProps, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", k.module).Output()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), k.definition))
	if err != nil {
		return nil, err
	}
	var definition published.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	_, version, _ := strings.Cut(object["apiVersion"].(string), "/")
	versions := definition.Spec.Versions
	i := slices.IndexFunc(versions, func(v published.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return nil, fmt.Errorf("%s defines no version %s", k.definition, version)
	}
	var s apiextensions.JSONSchemaProps
	in := versions[i].Schema.OpenAPIV3Schema
	return &s, published.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(in, &s, nil)
}
