//go:build mpi && linux

package mpi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/dynlib"
)

// abi holds the constants that a compiled program knows of a library, which differ between libraries. Handles are
// integers, or addresses of variables in the library.
type abi struct {
	name         string
	says         []string // one of these is in the library's description of itself
	names        []string // of files
	world        handle   // MPI_COMM_WORLD
	bytes        handle   // MPI_BYTE
	errorsReturn handle   // MPI_ERRORS_RETURN
	anySource    int      // MPI_ANY_SOURCE
	request      int      // bytes of an MPI_Request
	status       int      // and of an MPI_Status, at most maxStatus
	levels       []int    // of thread support, as in levelNames
}

const maxStatus = 32

type handle struct {
	value    uintptr
	variable string
}

var (
	openMPI = &abi{
		name: "Open MPI", says: []string{"Open MPI"}, names: []string{"libmpi.so.40"},
		world: handle{variable: "ompi_mpi_comm_world"}, bytes: handle{variable: "ompi_mpi_byte"},
		errorsReturn: handle{variable: "ompi_mpi_errors_return"},
		anySource:    -1, request: 8, status: 24, levels: []int{0, 1, 2, 3},
	}
	// MPICH and its relatives: Intel MPI, Cray MPICH, MVAPICH.
	mpich = &abi{
		name: "MPICH", says: []string{"MPICH", "Intel", "MVAPICH"}, names: []string{"libmpi.so.12", "libmpich.so.12"},
		world: handle{value: 0x44000000}, bytes: handle{value: 0x4c00010d}, errorsReturn: handle{value: 0x54000001},
		anySource: -2, request: 4, status: 20, levels: []int{0, 1, 2, 3},
	}
	// The standard's own ABI, since MPI 5.0. The library's description of itself may be anything.
	standard = &abi{
		name: "MPI 5", says: []string{""}, names: []string{"libmpi_abi.so.1", "libmpi_abi.so.0"},
		world: handle{value: 0x101}, bytes: handle{value: 0x247}, errorsReturn: handle{value: 0x143},
		anySource: -1, request: 8, status: 32, levels: []int{0, 1024, 2048, 4096},
	}
)

var levelNames = []string{"single", "funneled", "serialized", "multiple"}

const funneled = 1 // of levelNames: only one thread makes calls

// level returns the name of a level of thread support.
func (a *abi) level(provided int32) string {
	if i := slices.Index(a.levels, int(provided)); i >= 0 {
		return levelNames[i]
	}
	return fmt.Sprint(provided)
}

// find returns the value of a handle in a library.
func (h handle) find(lib *dynlib.Library) (uintptr, error) {
	if h.variable == "" {
		return h.value, nil
	}
	if address := lib.Variable(h.variable); address != 0 {
		return address, nil
	}
	return 0, fmt.Errorf("%s has no %s: it is not Open MPI", lib.Path(), h.variable)
}

// launcher describes the program that started this process, recognised by the environment.
type launcher struct {
	name   string
	prefix string // of its variables
	size   string // the variable with the number of processes, if there is one
	abis   []*abi // in the order in which their libraries are tried
}

var launchers = []launcher{
	{"Open MPI", "OMPI_COMM_WORLD_", "OMPI_COMM_WORLD_SIZE", []*abi{openMPI, standard}},
	{"Hydra or PMI", "PMI_", "PMI_SIZE", []*abi{mpich, standard}},
	{"PMIx", "PMIX_", "", []*abi{openMPI, mpich, standard}}, // srun --mpi=pmix, for either
	{"none", "", "", []*abi{standard, openMPI, mpich}},
}

// launchedBy returns the launcher that an environment shows.
func launchedBy(environ []string) launcher {
	for _, l := range launchers {
		if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, l.prefix) }) {
			return l
		}
	}
	return launchers[len(launchers)-1]
}

// load opens the library that ANNEAL_MPI names, or the launcher's.
func (l launcher) load() (*dynlib.Library, *abi, error) {
	if path := os.Getenv("ANNEAL_MPI"); path != "" {
		lib, faults := dynlib.Open(path)
		if lib == nil {
			return nil, nil, fmt.Errorf("the MPI library that ANNEAL_MPI names cannot be loaded: %s%s\n"+
				"  ANNEAL_MPI is the path of a file, such as /usr/lib/x86_64-linux-gnu/libmpi.so.40", path, faults)
		}
		return lib, abiOf(path, lib), nil
	}
	var names []string
	var faults string
	for _, a := range l.abis {
		lib, fault := dynlib.Open(places(a.names)...)
		if lib != nil {
			return lib, a, nil
		}
		names, faults = append(names, a.names...), faults+fault
	}
	return nil, nil, fmt.Errorf("no MPI library found: %s%s\n"+
		"  install Open MPI or MPICH (Debian: apt install openmpi-bin, or mpich), or set ANNEAL_MPI to the path of one",
		strings.Join(names, ", "), faults)
}

// abiOf returns the ABI of a library, recognised by its symbols and its file name.
func abiOf(path string, lib *dynlib.Library) *abi {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	switch {
	case strings.HasPrefix(filepath.Base(path), "libmpi_abi"):
		return standard
	case lib.Variable(openMPI.world.variable) != 0:
		return openMPI
	}
	return mpich
}

// places returns the paths to try. First come directories beside the programs that started this process (mpirun, or
// its helper on another machine), because the system's loader does not find an MPI that is installed in its own
// directory. Then come the bare names, for the loader.
func places(names []string) []string {
	var all []string
	for pid := os.Getppid(); pid > 1; pid = parent(pid) {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			break
		}
		for _, dir := range []string{"lib", "lib64"} {
			for _, name := range names {
				path := filepath.Join(filepath.Dir(filepath.Dir(exe)), dir, name)
				if _, err := os.Stat(path); err == nil {
					all = append(all, path)
				}
			}
		}
	}
	return append(all, names...)
}

// parent returns the process that started a process, 0 if that is unknown.
func parent(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ") // the name may hold anything but this
	var state string
	var ppid int
	fmt.Sscan(after, &state, &ppid)
	return ppid
}
