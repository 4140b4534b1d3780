#!/bin/sh
# curate.sh PIPELINE.yaml OUT TASKS INPUT…: curates with TASKS processes on this machine. A process that dies is restarted at
# most twice. Run again, the command continues where it stopped.
set -eu
[ $# -ge 4 ] || { echo "usage: curate.sh PIPELINE.yaml OUT TASKS INPUT..." >&2; exit 2; }
pipeline=$1 out=$2 tasks=$3
shift 3
anneal=${ANNEAL:-anneal}
threads=${THREADS:-1}

task() { # INDEX INPUT...
	index=$1
	shift
	for attempt in 1 2 3; do
		code=0
		"$anneal" data curate "$pipeline" "$@" --out "$out" --task-index "$index" --task-count "$tasks" --threads "$threads" || code=$?
		case $code in
		0 | 2) return $code ;;               # done, or a mistake that a retry would repeat
		75 | 129 | 130 | 143) return $code ;; # stopped by hand
		esac
		echo "task $index ended with $code (attempt $attempt of 3)" >&2
	done
	return $code
}

pids=
i=0
while [ "$i" -lt "$tasks" ]; do
	task "$i" "$@" &
	pids="$pids $!"
	i=$((i + 1))
done
code=0
for pid in $pids; do
	wait "$pid" || code=$?
done
exit $code
