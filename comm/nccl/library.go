//go:build cuda && linux

package nccl

import (
	"fmt"
	"unsafe"

	"anneal/device/cuda/find"
	"anneal/internal/dynlib"
)

// library holds the functions of libnccl, for calls from one goroutine.
type library struct {
	lib *dynlib.Library

	getVersion, getUniqueId, commInitRank, commAbort, asyncError dynlib.Function
	errorString, groupStart, groupEnd, send, recv                dynlib.Function

	initRank func(to *uintptr, ranks int32, id uniqueID, rank int32) int32
	args     [6]uintptr // of the current call of the rank
	question [2]uintptr // of failed
	answer   int32
}

// uniqueID tells the ranks of a communicator where to meet: ncclUniqueId, which is passed by value.
type uniqueID struct{ Internal [128]byte }

// oldest is NCCL 2.7, the first version with sends and receives.
const oldest = 2700

func openLibrary() (*library, error) {
	lib, err := find.Open("install it with `pip install nvidia-nccl-cu12`, or NVIDIA's package libnccl2",
		"libnccl.so.2")
	if err != nil {
		return nil, fmt.Errorf("ranks on GPUs need NCCL: %w", err)
	}
	l := &library{lib: lib}
	err = lib.Functions(
		dynlib.Named{Name: "ncclGetVersion", To: &l.getVersion},
		dynlib.Named{Name: "ncclGetUniqueId", To: &l.getUniqueId},
		dynlib.Named{Name: "ncclCommInitRank", To: &l.commInitRank},
		dynlib.Named{Name: "ncclCommAbort", To: &l.commAbort},
		dynlib.Named{Name: "ncclCommGetAsyncError", To: &l.asyncError},
		dynlib.Named{Name: "ncclGetErrorString", To: &l.errorString},
		dynlib.Named{Name: "ncclGroupStart", To: &l.groupStart},
		dynlib.Named{Name: "ncclGroupEnd", To: &l.groupEnd},
		dynlib.Named{Name: "ncclSend", To: &l.send},
		dynlib.Named{Name: "ncclRecv", To: &l.recv},
	)
	if err != nil {
		return nil, err
	}
	l.commInitRank.Into(&l.initRank)
	var version int32
	if err := l.check("ncclGetVersion", l.getVersion.Call(uintptr(unsafe.Pointer(&version)))); err != nil {
		return nil, err
	}
	if version < oldest {
		return nil, fmt.Errorf("%s is version %d of NCCL, but 2.7 or later is needed", lib.Path(), version)
	}
	return l, nil
}

// check converts a result to an error, nil for success.
func (l *library) check(call string, result int32) error {
	if result == 0 {
		return nil
	}
	return fmt.Errorf("NCCL: %s (error %d in %s)", l.errorString.Text(uintptr(result)), result, call)
}

// newID makes the id of a new communicator.
func (l *library) newID() (id uniqueID, err error) {
	err = l.check("ncclGetUniqueId", l.getUniqueId.Call(uintptr(unsafe.Pointer(&id))))
	return id, err
}

// join makes a communicator. It waits for all its ranks.
func (l *library) join(ranks int, id uniqueID, rank int) (comm uintptr, err error) {
	err = l.check("ncclCommInitRank", l.initRank(&comm, int32(ranks), id, int32(rank)))
	return comm, err
}

// abort frees a communicator and ends its work on the card. Any goroutine may call it.
func (l *library) abort(comm uintptr) { l.commAbort.Call(comm) }

// failed returns the error of a queued operation, if any. One goroutine at a time calls it.
func (l *library) failed(comm uintptr) error {
	l.question = [2]uintptr{comm, uintptr(unsafe.Pointer(&l.answer))}
	err := l.check("ncclCommGetAsyncError", l.asyncError.CallWith(l.question[:]))
	const inProgress = 7
	if err != nil || l.answer == inProgress {
		return err
	}
	return l.check("a transfer", l.answer)
}

// begin and end enclose a group of sends and receives.
func (l *library) begin() error { return l.check("ncclGroupStart", l.groupStart.CallWith(nil)) }
func (l *library) end() error   { return l.check("ncclGroupEnd", l.groupEnd.CallWith(nil)) }

const bytes = 1 // ncclUint8

// move sends memory of the card to a peer, or receives it.
func (l *library) move(send bool, data unsafe.Pointer, size, peer int, comm, stream uintptr) error {
	l.args = [6]uintptr{uintptr(data), uintptr(size), bytes, uintptr(peer), comm, stream}
	if send {
		return l.check("ncclSend", l.send.CallWith(l.args[:]))
	}
	return l.check("ncclRecv", l.recv.CallWith(l.args[:]))
}
