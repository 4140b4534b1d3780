#!/bin/sh
# train.sh RANKS CONFIG RUN [section.key=value...]: trains with ranks that mpirun starts (Open MPI, MPICH, Intel MPI). If RUN is a run
# already, it is resumed. If a rank is lost, the run is resumed from its last checkpoint, at most ATTEMPTS times in all. SIGTERM,
# SIGINT and SIGUSR1 have all ranks save; the script then ends with 75, and the same command continues. HOSTFILE names the hosts, where
# the launcher does not know them.
set -u
[ $# -ge 3 ] || { echo "usage: train.sh RANKS CONFIG RUN [section.key=value...]" >&2; exit 2; }
ranks=$1 config=$2 run=$3
shift 3

# Open MPI binds a process to one core, unless it is told not to.
launch() {
	exec "${MPIRUN:-mpirun}" -n "$ranks" --bind-to none ${HOSTFILE:+--hostfile "$HOSTFILE"} "${ANNEAL:-anneal}" "$@"
}

# resumable reports whether a run that ended with a code can be resumed as it is: what the run wrote down, if it did, because launchers
# may end with other codes than their ranks.
resumable() {
	if [ -e "$run/exit.json" ]; then
		grep -q '"resume":true' "$run/exit.json"
		return
	fi
	case $1 in
	8 | 9 | 137 | 139 | 143) return 0 ;; # a rank was lost: 8 says anneal, the others are of signals, 9 with MPICH
	esac
	return 1
}

# mpirun answers SIGTERM by killing the ranks a second later. It passes SIGUSR1 on.
leave() {
	leaving=yes
	[ -z "$job" ] || kill -USR1 "$job" 2>/dev/null
}
job='' leaving='' attempt=1
trap leave TERM INT USR1

while :; do
	rm -f "$run/exit.json"
	if [ -e "$run/config.yaml" ]; then
		launch resume "$run" &
	else
		launch train "$config" "$@" --out "$run" &
	fi
	job=$!
	wait "$job"
	code=$?
	while kill -0 "$job" 2>/dev/null; do # a signal ended the wait, not the ranks
		wait "$job"
		code=$?
	done
	job=''
	case $code in 0 | 75) exit "$code" ;; esac
	resumable "$code" || exit "$code"
	[ -z "$leaving" ] || exit 75
	if [ "$attempt" -ge "${ATTEMPTS:-5}" ]; then
		echo "train.sh: a rank was lost $attempt times, the last time with $code" >&2
		exit 8
	fi
	attempt=$((attempt + 1))
	echo "train.sh: a rank was lost ($code); attempt $attempt goes on with $run" >&2
done
