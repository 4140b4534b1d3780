//go:build unix

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"anneal/config"

	"github.com/goccy/go-yaml"
)

// jobSet has the fields of jobset.x-k8s.io/v1alpha2 that deploy/kubernetes uses.
type jobSet struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   meta   `yaml:"metadata"`
	Spec       struct {
		FailurePolicy struct {
			MaxRestarts int `yaml:"maxRestarts"`
			Rules       []struct {
				Name                string   `yaml:"name"`
				Action              string   `yaml:"action"`
				OnJobFailureReasons []string `yaml:"onJobFailureReasons"`
			} `yaml:"rules"`
		} `yaml:"failurePolicy"`
		SuccessPolicy struct {
			Operator             string   `yaml:"operator"`
			TargetReplicatedJobs []string `yaml:"targetReplicatedJobs"`
		} `yaml:"successPolicy"`
		ReplicatedJobs []struct {
			Name     string `yaml:"name"`
			Replicas int    `yaml:"replicas"`
			Template struct {
				Spec jobSpec `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"replicatedJobs"`
	} `yaml:"spec"`
}

func TestJobSetTrains(t *testing.T) {
	var s jobSet
	manifest(t, "train-jobset.yaml", &s)
	job := s.Spec.ReplicatedJobs[0]
	p := job.Template.Spec.Template.Spec
	trains(t, p.Containers[0].Command, 4)
	reasons := []string{"BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded",
		"PodFailurePolicy"}
	if s.APIVersion != "jobset.x-k8s.io/v1alpha2" || s.Kind != "JobSet" || s.Spec.FailurePolicy.MaxRestarts == 0 ||
		!slices.Equal(s.Spec.SuccessPolicy.TargetReplicatedJobs, []string{job.Name}) ||
		s.Spec.FailurePolicy.Rules[0].Action != "FailJobSet" ||
		!slices.Contains(reasons, s.Spec.FailurePolicy.Rules[0].OnJobFailureReasons[0]) {
		t.Errorf("%+v", s)
	}
	// Exit codes for which a retry is useless fail the set: all but those of a lost rank and a saved state.
	codes := job.Template.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Values
	for code, helps := range map[int]bool{
		exitUsage: false, exitData: false, exitDiverged: false, exitCheckpoint: false, exitResources: false,
		exitCorrupt: false, exitStalled: true, exitStopped: true,
	} {
		if slices.Contains(codes, code) == helps {
			t.Errorf("exit code %d: a retry helps: %v; the set fails with %v", code, helps, codes)
		}
	}
}

// The unit restarts a run when a retry can help, and knows the exit code of a stopped run.
func TestSystemdUnit(t *testing.T) {
	text, err := os.ReadFile("../../deploy/systemd/anneal@.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nSuccessExitStatus=75\n", "\nRestartPreventExitStatus=2 3 4 5 6 9\n", "\nKillSignal=SIGTERM\n",
		"anneal resume runs/%i", "anneal train %i.yaml --out runs/%i",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the unit lacks %q", want)
		}
	}
}

// The image contains the static binary and the certificates to trust servers.
func TestContainerIsTheBinary(t *testing.T) {
	text, err := os.ReadFile("../../deploy/container/Dockerfile")
	if err != nil || !strings.Contains(string(text), "CGO_ENABLED=0 go build -trimpath -o /anneal ./cmd/anneal") ||
		!strings.Contains(string(text), "\nFROM scratch\n") ||
		!strings.HasSuffix(string(text), "\nCOPY --from=build /anneal /anneal\nENTRYPOINT [\"/anneal\"]\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

// A run listens at the address that Prometheus scrapes.
func TestPrometheusScrapesARun(t *testing.T) {
	var scrape struct {
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	text, err := os.ReadFile("../../deploy/prometheus/prometheus.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &scrape)
	}
	if err != nil || scrape.ScrapeConfigs[0].StaticConfigs[0].Targets[0] != config.Default().Log.PrometheusListen {
		t.Errorf("%v: %+v", err, scrape)
	}
}
