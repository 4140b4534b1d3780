#!/bin/sh
# curate.sh PROCESSES PIPELINE.yaml OUT INPUT…: curates with the processes of mpirun (Open MPI, MPICH). They communicate only through
# the file system; mpirun starts them and gives each its rank.
set -eu
[ $# -ge 4 ] || { echo "usage: curate.sh PROCESSES PIPELINE.yaml OUT INPUT..." >&2; exit 2; }
n=$1 pipeline=$2 out=$3
shift 3
exec "${MPIRUN:-mpirun}" -n "$n" "${ANNEAL:-anneal}" data curate "$pipeline" "$@" --out "$out" --threads "${THREADS:-1}"
