// libnccl.so.2 of the emulated cards, for ranks that are threads of one process. What ranks send each other is copied when both
// have come to it in their streams.
//
// Environment: ANNEAL_EMULATOR_NCCL_FAIL=N: exchange number N to be asked for fails later, on the rank that asks.
// _HANG_INIT=R, _HANG_CONNECT=R: rank R never comes out of ncclCommInitRank, or of its first exchange, nor do those that
// need it there.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

enum { SUCCESS = 0, UNHANDLED_CUDA_ERROR = 1, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6 };

struct Id { // ncclUniqueId
	char bytes[128];
};

typedef std::function<std::vector<void *>()> Streams;
static void (*post)(void *, const char *, std::function<bool()>, Streams);
static void (*changed)();
static int (*cardOf)();

static bool connect() {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (!driver) return false;
	*(void **)&post = dlsym(driver, "emulator_post");
	*(void **)&changed = dlsym(driver, "emulator_changed");
	*(void **)&cardOf = dlsym(driver, "emulator_card");
	return post && changed && cardOf;
}

struct Piece { // of an exchange: what is sent to or comes from a peer
	bool send;
	char *data;
	size_t size;
	int peer;
};
struct Waiting { // a piece that a stream has come to
	Piece piece;
	std::shared_ptr<size_t> left; // pieces of its exchange
};
struct Clique {
	int ranks, came = 0;
	std::vector<int> cards;
	std::set<std::pair<int, int>> dialled;                       // who has had something for or from whom
	std::vector<void *> streams;                                 // of the last exchange of each rank
	std::map<std::pair<int, int>, std::deque<Waiting>> sent, room; // by sender and receiver
};
struct Comm {
	std::shared_ptr<Clique> clique;
	int rank, error = SUCCESS;
	bool aborted = false;
};

static std::mutex mutex;
static std::condition_variable arrival;
static std::map<std::string, std::shared_ptr<Clique>> cliques; // by id
static std::vector<std::shared_ptr<Comm>> comms;               // their handles are 1 + their places
static unsigned ids;
static long exchanges;

static thread_local int depth; // of ncclGroupStart
static thread_local std::map<std::pair<size_t, void *>, std::vector<Piece>> group; // by communicator and stream

static Comm *find(size_t handle) { return handle && handle <= comms.size() ? comms[handle - 1].get() : nullptr; }

API int ncclGetVersion(int *version) { *version = 22304; return SUCCESS; }
API const char *ncclGetErrorString(int code) {
	switch (code) {
	case SUCCESS: return "no error";
	case INVALID_ARGUMENT: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
	case INVALID_USAGE: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
	case REMOTE_ERROR: return "remote process exited or there was a network error";
	}
	return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
}
API const char *ncclGetLastError(size_t) { return ""; }

API int ncclGetUniqueId(Id *id) {
	std::lock_guard<std::mutex> lock(mutex);
	if (!connect()) return UNHANDLED_CUDA_ERROR;
	for (size_t i = 0; i < sizeof id->bytes; i++) id->bytes[i] = (char)(i * 7 + 1); // all of it must arrive
	unsigned n = ++ids;
	memcpy(id->bytes + 100, &n, sizeof n);
	return SUCCESS;
}

// hang never returns on the rank of a setting.
static void hang(const char *name, int rank) {
	const char *who = getenv((std::string("ANNEAL_EMULATOR_NCCL_HANG_") + name).c_str());
	while (who && atoi(who) == rank) pause();
}

API int ncclCommInitRank(size_t *handle, int ranks, Id id, int rank) {
	hang("INIT", rank);
	std::unique_lock<std::mutex> lock(mutex);
	if (!connect() || rank < 0 || rank >= ranks) return INVALID_ARGUMENT;
	unsigned n;
	memcpy(&n, id.bytes + 100, sizeof n);
	for (size_t i = 0; i < sizeof id.bytes; i++)
		if ((i < 100 || i >= 104) && id.bytes[i] != (char)(i * 7 + 1)) return INVALID_ARGUMENT;
	if (n == 0 || n > ids) return INVALID_ARGUMENT;
	auto &clique = cliques[std::string(id.bytes, sizeof id.bytes)];
	if (!clique) clique = std::make_shared<Clique>();
	auto c = clique;
	c->ranks = ranks;
	c->streams.resize(ranks);
	for (int card : c->cards)
		if (card == cardOf()) return INVALID_USAGE; // two ranks on one card
	c->cards.push_back(cardOf());
	c->came++;
	arrival.notify_all();
	arrival.wait(lock, [&] { return c->came >= ranks; });
	comms.push_back(std::make_shared<Comm>(Comm{c, rank}));
	*handle = comms.size();
	return SUCCESS;
}

// meet copies what has a sender and a receiver.
static void meet(Clique &c, int from, int to) {
	auto &sent = c.sent[{from, to}], &room = c.room[{from, to}];
	while (!sent.empty() && !room.empty()) {
		Waiting s = sent.front(), r = room.front();
		sent.pop_front();
		room.pop_front();
		memcpy(r.piece.data, s.piece.data, s.piece.size < r.piece.size ? s.piece.size : r.piece.size);
		--*s.left;
		--*r.left;
	}
}

// dial waits until the peers of a rank's pieces have something for or from it, too.
static bool dial(Comm &comm, const std::vector<Piece> &pieces) {
	std::unique_lock<std::mutex> lock(mutex);
	Clique &c = *comm.clique;
	for (const Piece &p : pieces)
		if (c.dialled.insert({comm.rank, p.peer}).second) {
			lock.unlock();
			hang("CONNECT", comm.rank);
			lock.lock();
		}
	arrival.notify_all();
	for (const Piece &p : pieces)
		arrival.wait(lock, [&] { return comm.aborted || c.dialled.count({p.peer, comm.rank}); });
	return !comm.aborted;
}

// launch queues an exchange.
static int launch(size_t handle, void *stream, std::vector<Piece> pieces) {
	std::shared_ptr<Comm> comm;
	bool broken = false;
	{
		std::lock_guard<std::mutex> lock(mutex);
		Comm *found = find(handle);
		if (!found || found->aborted) return INVALID_ARGUMENT;
		comm = comms[handle - 1];
		comm->clique->streams[comm->rank] = stream;
		const char *fail = getenv("ANNEAL_EMULATOR_NCCL_FAIL");
		if (fail && ++exchanges == atol(fail)) {
			comm->error = REMOTE_ERROR;
			broken = true;
		}
	}
	if (!dial(*comm, pieces)) return REMOTE_ERROR;
	auto left = std::make_shared<size_t>(pieces.size());
	auto begun = std::make_shared<bool>(false);
	post(stream, "exchange", [=] {
		std::lock_guard<std::mutex> lock(mutex);
		Clique &c = *comm->clique;
		if (comm->aborted) return true;
		if (broken) return false;
		if (!*begun) {
			*begun = true;
			for (const Piece &p : pieces) {
				int from = p.send ? comm->rank : p.peer, to = p.send ? p.peer : comm->rank;
				(p.send ? c.sent : c.room)[{from, to}].push_back({p, left});
				meet(c, from, to);
			}
			changed();
		}
		return *left == 0;
	}, [=] {
		std::lock_guard<std::mutex> lock(mutex);
		std::vector<void *> others;
		for (int r = 0; r < comm->clique->ranks; r++)
			if (r != comm->rank && comm->clique->streams[r]) others.push_back(comm->clique->streams[r]);
		return others;
	});
	return SUCCESS;
}

static int add(bool send, void *data, size_t count, int type, int peer, size_t handle, void *stream) {
	static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
	if (type < 0 || type > 9 || peer < 0) return INVALID_ARGUMENT;
	Piece p{send, (char *)data, count * sizes[type], peer};
	if (depth == 0) return launch(handle, stream, {p});
	group[{handle, stream}].push_back(p);
	return SUCCESS;
}
API int ncclSend(const void *data, size_t count, int type, int peer, size_t comm, void *stream) {
	return add(true, (void *)data, count, type, peer, comm, stream);
}
API int ncclRecv(void *data, size_t count, int type, int peer, size_t comm, void *stream) {
	return add(false, data, count, type, peer, comm, stream);
}
API int ncclGroupStart() { depth++; return SUCCESS; }
API int ncclGroupEnd() {
	if (depth == 0) return INVALID_USAGE;
	if (--depth > 0) return SUCCESS;
	auto all = std::move(group);
	group.clear();
	for (auto &one : all)
		if (int error = launch(one.first.first, one.first.second, one.second)) return error;
	return SUCCESS;
}

API int ncclCommGetAsyncError(size_t handle, int *error) {
	std::lock_guard<std::mutex> lock(mutex);
	Comm *c = find(handle);
	if (!c || c->aborted) return INVALID_ARGUMENT;
	*error = c->error;
	return SUCCESS;
}
API int ncclCommAbort(size_t handle) {
	{
		std::lock_guard<std::mutex> lock(mutex);
		Comm *c = find(handle);
		if (!c || c->aborted) return INVALID_ARGUMENT;
		c->aborted = true;
		arrival.notify_all();
		c->clique->streams[c->rank] = nullptr;
		for (auto *waiting : {&c->clique->sent, &c->clique->room})
			for (auto &one : *waiting)
				if ((waiting == &c->clique->sent ? one.first.first : one.first.second) == c->rank) one.second.clear();
	}
	changed();
	return SUCCESS;
}
