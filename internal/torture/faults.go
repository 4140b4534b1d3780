package torture

import (
	"fmt"
	"strings"
)

// A Fault is an event that runs must survive, with the tests that inject it, or the reason why there is none.
type Fault struct {
	Name  string
	Tests []string
	Why   string
}

// Faults are the cases that concern one machine. A test checks that the tests exist.
var Faults = []Fault{
	{Name: "kill -9 at any instant, also while saving", Tests: []string{
		"TestKilledRunsResumeBitForBit", "TestTortureKilledCommands", "TestTortureKilledSaves",
	}},
	{Name: "kill -9 between the data of a checkpoint and its manifest", Tests: []string{
		"TestCrashAtEveryOperation", "TestPartsWithoutAManifestAreNoCheckpoint",
	}},
	{Name: "power cut: what was not synced is lost", Tests: []string{"TestTortureFailingSaves"}},
	{Name: "disk full while saving", Tests: []string{"TestErrorAtEveryOperationOfASave", "TestTortureFullDisks"}},
	{Name: "too little space for checkpoints, found before the first step", Tests: []string{
		"TestTooLittleSpaceIsFoundBeforeWriting",
	}},
	{Name: "disk full for the metrics only", Tests: []string{"TestMetricsOfAFullDiskAreFilledIn"}},
	{Name: "input/output errors and short writes", Tests: []string{
		"TestErrorAtEveryOperationOfASave", "TestTrainReportsAFailingDisk",
	}},
	{Name: "read-only checkpoints, or saves that fail again and again", Tests: []string{
		"TestTooManyFailedCheckpointsEndTheRun",
	}},
	{Name: "the run's directory vanishes and comes back", Tests: []string{"TestARunWhoseDirectoryVanishes"}},
	{Name: "checkpoints are gone at a resume", Tests: []string{"TestARunWhoseCheckpointsAreGoneDoesNotStartOver"}},
	{Name: "bit flips in any file of a run or a data set", Tests: []string{"TestTortureDamagedFiles"}},
	{Name: "missing, cut off, empty and extra files of a checkpoint", Tests: []string{
		"TestBrokenFilesAreFallenBackFrom", "TestExtraFilesAreIgnoredAndListed",
	}},
	{Name: "a manifest that is damaged, or of a newer version", Tests: []string{
		"TestManifestIsChecked", "TestFutureCheckpointsAreKept",
	}},
	{Name: "latest points to nothing", Tests: []string{"TestLatestPointerIsAdvisoryAndMended"}},
	{Name: "two processes in one directory; a lock whose owner died", Tests: []string{
		"TestSecondProcessIsRefused", "TestADeletedLockIsTakenAgainOrRefused",
	}},
	{Name: "old checkpoints fill the disk", Tests: []string{"TestKeepsTheNewest"}},
	{Name: "the clock jumps", Why: "durations are differences of time.Time, which Go takes from the " +
		"monotonic clock, and lines of metrics are ordered by step"},
	{Name: "SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGQUIT; nohup", Tests: []string{
		"TestSignalSavesAndResumeEndsWithTheSameBits", "TestSIGUSR1SavesAndGoesOn", "TestSIGHUPIsIgnoredUnderNohup",
		"TestHangingUpTwiceSavesTheRun", "TestSIGQUITLeavesTheStacks",
	}},
	{Name: "SIGSTOP and SIGCONT", Tests: []string{"TestStoppedProcessesDoNotStall"}},
	{Name: "something hangs", Tests: []string{
		"TestTheWatchdogLearnsItsDeadlines", "TestAStalledRunLeavesItsStacks", "TestAStalledProcessEnds",
	}},
	{Name: "a reader of the output, or a sink of metrics, hangs", Tests: []string{
		"TestSignalsReachARunWhoseReaderStalls", "TestSinksThatHangCostNoStep",
	}},
	{Name: "clients of a server that never finish a request", Tests: []string{"TestSlowClientsAreHungUpOn"}},
	{Name: "more connections to a server than it takes", Tests: []string{
		"TestFloodsAreBounded", "TestConnectionsInUseKeepTheirPlace",
	}},
	{Name: "too little memory", Tests: []string{"TestControlGroupLimitsAreFound", "TestTrainingStaysWithinItsMemory"}},
	{Name: "a crash in anneal", Tests: []string{"TestCrashesHaveCodesOfTheirOwn"}},
	{Name: "NaN in a gradient", Tests: []string{
		"TestGuardRefusesGradientsThatAreNotFinite", "TestSkippedStepChangesNothing", "TestANaNOfOneRankIsSkippedByAll",
	}},
	{Name: "fp16 overflows; the loss scale is at its floor", Tests: []string{"TestAnOverflowSkipsExactlyOneUpdate"}},
	{Name: "weights that are NaN", Tests: []string{
		"TestWeightsThatAreNotFiniteAreRefused", "TestGuardStopsADivergedRun",
	}},
	{Name: "no text, or too little for a row", Tests: []string{"TestTooLittleDataIsAnError"}},
	{Name: "a spike of the loss", Tests: []string{
		"TestGuardFindsInjectedSpikes", "TestSpikeGuardSkipsAnOutlier", "TestRewindsOfADivergedRunAreLimited",
	}},
	{Name: "a bit flips in the processor", Tests: []string{"TestReplaysFindFlippedBits"}},
	{Name: "broken text: invalid UTF-8, cut lines, NUL, huge lines", Tests: []string{
		"TestHostileTextsAreParsedInBoundedTimeAndMemory",
	}},
	{Name: "another tokenizer than that of the data", Tests: []string{"TestChangedTokenizersAreRefused"}},
	{Name: "a shard is cut off while it is read", Tests: []string{
		"TestShardTruncatedWhileOpen", "TestTruncatedShardIsRefused",
	}},
	{Name: "decompression bombs", Tests: []string{
		"TestBombIsStopped", "TestBombsOfEachCompression", "TestParquetBombIsStopped",
	}},
	{Name: "hostile configs and models", Tests: []string{
		"TestHostileConfigsAreRefusedAtOnce", "TestHostileModelsAreRefused", "TestFilesThatAreNoYAML",
	}},
	{Name: "unknown keys, wrong values, impossible combinations", Tests: []string{
		"TestUnknownKeysNameTheNearestAndThePosition", "TestAllProblemsAreReportedAtOnce",
		"TestTortureMeshesThatCannotBe",
	}},
	{Name: "a resume with another config, number of ranks or kernels", Tests: []string{
		"TestResumeWithAChangedConfiguration", "TestResumeNamesWhatWasChanged", "TestResumeOnOtherRanks",
		"TestResumeOnOtherKernelsWarns",
	}},
	{Name: "a low limit of open files", Tests: []string{"TestTooManyOpenFilesAdviseTheLimit"}},
	{Name: "a processor without the kernels that were asked for", Tests: []string{"TestForcedTierIsHonouredOrAnError"}},
	{Name: "a diverged run is used or exported", Tests: []string{"TestWeightsThatAreNotFiniteAreRefused"}},
	{Name: "a checkpoint of a machine with the other byte order", Why: "every architecture that anneal is " +
		"built for is little-endian, as safetensors are"},
	{Name: "a log that is rotated", Why: "metrics.jsonl and journal.jsonl are part of the run and are not rotated"},
}

// faultTable is the table of faults.
func faultTable() string {
	var b strings.Builder
	b.WriteString("\n## Every fault of one machine\n\n" +
		"Each has tests that run with `go test ./...`, or a reason for having none.\n\n| fault | tests |\n|---|---|\n")
	for _, f := range Faults {
		tests := strings.Join(f.Tests, ", ")
		if tests == "" {
			tests = "none: " + f.Why
		}
		fmt.Fprintf(&b, "| %s | %s |\n", f.Name, tests)
	}
	return b.String()
}
