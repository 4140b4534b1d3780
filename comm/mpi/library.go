//go:build mpi && linux

package mpi

import (
	"fmt"
	"strings"
	"unsafe"

	"anneal/internal/dynlib"
)

// library holds the functions of an MPI library that this process calls.
type library struct {
	*abi
	lib *dynlib.Library

	world, bytes, errorsReturn uintptr

	getLibraryVersion, initThread, finalize          dynlib.Function
	commRank, commSize, commSetErrhandler, errorText dynlib.Function
	isend, irecv, testsome, getCount                 dynlib.Function

	args [7]uintptr // of the calls of every step
}

func newLibrary(lib *dynlib.Library, a *abi) (*library, error) {
	l := &library{abi: a, lib: lib}
	err := lib.Functions(
		dynlib.Named{Name: "MPI_Get_library_version", To: &l.getLibraryVersion},
		dynlib.Named{Name: "MPI_Init_thread", To: &l.initThread},
		dynlib.Named{Name: "MPI_Finalize", To: &l.finalize},
		dynlib.Named{Name: "MPI_Comm_rank", To: &l.commRank},
		dynlib.Named{Name: "MPI_Comm_size", To: &l.commSize},
		dynlib.Named{Name: "MPI_Comm_set_errhandler", To: &l.commSetErrhandler},
		dynlib.Named{Name: "MPI_Error_string", To: &l.errorText},
		dynlib.Named{Name: "MPI_Isend", To: &l.isend},
		dynlib.Named{Name: "MPI_Irecv", To: &l.irecv},
		dynlib.Named{Name: "MPI_Testsome", To: &l.testsome},
		dynlib.Named{Name: "MPI_Get_count", To: &l.getCount},
	)
	if err != nil {
		return nil, err
	}
	for _, h := range []struct {
		to   *uintptr
		from handle
	}{{&l.world, a.world}, {&l.bytes, a.bytes}, {&l.errorsReturn, a.errorsReturn}} {
		if *h.to, err = h.from.find(lib); err != nil {
			return nil, err
		}
	}
	return l, nil
}

const maxText = 8192 // bytes of a library's texts, at most

// version returns the library's description of itself, which must match the table of ABIs.
func (l *library) version() (string, error) {
	text, length := make([]byte, maxText+1), new(int32)
	if code := l.getLibraryVersion.Call(uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(length))); code != 0 {
		return "", fmt.Errorf("%s does not say its version (error %d)", l.lib.Path(), code)
	}
	says := strings.TrimSpace(dynlib.String(uintptr(unsafe.Pointer(&text[0]))))
	line, _, _ := strings.Cut(says, "\n")
	line = strings.Join(strings.Fields(line), " ")
	for _, s := range l.says {
		if strings.Contains(says, s) {
			line, _, _ = strings.Cut(line, ", package:") // Open MPI also says who built it
			return line, nil
		}
	}
	return "", fmt.Errorf("%s says it is %q, not %s\n  set ANNEAL_MPI to the library of the launcher",
		l.lib.Path(), line, strings.Join(l.says, " or "))
}

// fault returns an error for a code that a function returned, nil for success.
func (l *library) fault(function string, code int32) error {
	if code == 0 {
		return nil
	}
	text, length := make([]byte, maxText+1), new(int32)
	why := fmt.Sprintf("error %d", code)
	if l.errorText.Call(uintptr(code), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(length))) == 0 {
		why = strings.TrimSpace(dynlib.String(uintptr(unsafe.Pointer(&text[0]))))
	}
	return fmt.Errorf("%s: %s", function, why)
}

// begin initialises the library, and returns the level of thread support and this process's place.
func (l *library) begin() (level string, rank, size int, err error) {
	provided, me, all := new(int32), new(int32), new(int32)
	want := l.levels[funneled]
	code := l.initThread.Call(0, 0, uintptr(want), uintptr(unsafe.Pointer(provided)))
	if err := l.fault("MPI_Init_thread", code); err != nil {
		return "", 0, 0, err
	}
	if int(*provided) < want {
		return "", 0, 0, fmt.Errorf("%s was built for programs with a single thread", l.lib.Path())
	}
	err = l.fault("MPI_Comm_set_errhandler", l.commSetErrhandler.Call(l.world, l.errorsReturn))
	if err == nil {
		err = l.fault("MPI_Comm_rank", l.commRank.Call(l.world, uintptr(unsafe.Pointer(me))))
	}
	if err == nil {
		err = l.fault("MPI_Comm_size", l.commSize.Call(l.world, uintptr(unsafe.Pointer(all))))
	}
	return l.level(*provided), int(*me), int(*all), err
}

// A message is the memory that one call sends or receives. The memory must not move, and its owner keeps it alive.
type message struct {
	send bool
	full bool // a message that is received fills its room
	peer int
	tag  int
	data unsafe.Pointer
	size int // bytes, at most most; of a message that is received, the room for it
}

// most is the largest message: counts are 32 bits.
var most = 1<<31 - 64

// post starts a message; request is its place in a list of requests.
func (l *library) post(m *message, request unsafe.Pointer) error {
	peer := m.peer
	function, name := l.isend, "MPI_Isend"
	if !m.send {
		function, name = l.irecv, "MPI_Irecv"
	}
	l.args = [7]uintptr{
		uintptr(m.data), uintptr(m.size), l.bytes, uintptr(peer), uintptr(m.tag), l.world, uintptr(request),
	}
	return l.fault(name, function.CallWith(l.args[:7]))
}

// test returns how many of n requests have completed since the last test. It writes their indices to done and their
// statuses to statuses.
func (l *library) test(requests, statuses unsafe.Pointer, n int, count *int32, done *int32) (int, error) {
	l.args = [7]uintptr{
		uintptr(n), uintptr(requests), uintptr(unsafe.Pointer(count)), uintptr(unsafe.Pointer(done)), uintptr(statuses),
	}
	err := l.fault("MPI_Testsome", l.testsome.CallWith(l.args[:5]))
	return max(int(*count), 0), err
}

// received returns the number of bytes of a received message.
func (l *library) received(status unsafe.Pointer, count *int32) (int, error) {
	l.args = [7]uintptr{uintptr(status), l.bytes, uintptr(unsafe.Pointer(count))}
	err := l.fault("MPI_Get_count", l.getCount.CallWith(l.args[:3]))
	return int(*count), err
}
