// Package tasks holds evaluation tasks in the YAML format of lm-evaluation-harness: the requests to a model and the
// measures of its answers. It does not depend on a kind of model: [Exam.Ask] asks a [Model].
//
// [Load] reads files (load.go, read.go, task.go, metriclist.go, filter.go, groups.go). docs.go reads the items of a
// task from local JSONL or parquet; prompt.go writes the text before an item's answer, with examples that shots.go
// draws as the harness does (random.go); requests.go, encode.go and exam.go turn them into sequences of tokens, which
// pack.go packs into rows; measure.go and aggregate.go turn answers into figures with standard errors. Templates are
// those of tasks/jinja.
//
// The semantics are those of lm-evaluation-harness 0.4.13 (https://github.com/EleutherAI/lm-evaluation-harness), for
// its models of type hf. What is not supported is a *Problem with its file and line. docs/evaluation.md lists what is.
//
// The package imports tokenizer and internal packages.
package tasks
