// libcuda.so.1 of the emulated cards. Work is queued when it is asked for and done when somebody waits, in the order of its
// stream: a program that reads results without waiting sees old memory, as it may on a card. Work that waits for another stream
// has that one go on; if it waits for another card, until another thread asks for something. One thread of a block runs at a
// time, on a stack of its own, until it must wait for others.
//
// Environment: ANNEAL_EMULATOR_CARDS (8, at most 16), _SM (90), _DRIVER (12090), _MEMORY in bytes (2 GiB), _ORDER of the threads of a block
// (forward, reverse or shuffle), _FAIL_LAUNCH=N: kernel number N to run fails, and everything after it.
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "machine.h"

#define API extern "C" __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600, LAUNCH_FAILED = 719, CAPTURE_INVALIDATED = 901, GRAPH_UPDATE_FAILURE = 910 };

static long setting(const char *name, long otherwise) {
	const char *s = getenv((std::string("ANNEAL_EMULATOR_") + name).c_str());
	return s ? atol(s) : otherwise;
}

// ---- Threads of a block ----

extern "C" void emulator_switch(void **save, void *load);
asm(R"(
.globl emulator_switch
.hidden emulator_switch
emulator_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
)");

static const int stackBytes = 128 << 10, maxThreads = 1024;

struct Thread {
	void *sp;
	bool done;
	int line;     // of the barrier it waits at
	bool atBlock; // waits for the block
	bool atWarp;  // waits for the warp
	unsigned round;
};
struct Warp {
	char given[2][32][64];
	unsigned arrived, mask, round;
};

static Machine machine;
static Thread threads[maxThreads];
static Warp warps[maxThreads / 32];
static char *stacks;
static void *scheduler;
static int current, blockArrived, live;
static const Kernel *running;
static void **parameters;
static std::string trouble;

static void yield() { emulator_switch(&threads[current].sp, scheduler); }

static void finish() {
	running->run(parameters);
	threads[current].done = true;
	yield();
}

static void sync(int line) {
	threads[current].atBlock = true;
	threads[current].line = line;
	blockArrived++;
	while (threads[current].atBlock) yield();
}

static char (*exchange(unsigned mask, const void *mine, int size, int line))[64] {
	Warp &w = warps[current / 32];
	if (w.arrived && w.mask != mask) trouble = "lanes of a warp wait with different masks, line " + std::to_string(line);
	w.mask = mask;
	unsigned round = w.round;
	if (size) memcpy(w.given[round % 2][current % 32], mine, size);
	w.arrived |= 1u << current % 32;
	threads[current].atWarp = true;
	threads[current].line = line;
	threads[current].round = round;
	while (threads[current].atWarp) yield();
	return w.given[round % 2];
}

static bool releaseWarp(int i, int count) {
	Warp &w = warps[i];
	if (!w.arrived) return false;
	unsigned there = 0;
	for (int l = 0; l < 32 && i * 32 + l < count; l++)
		if (!threads[i * 32 + l].done) there |= 1u << l;
	if ((w.arrived & w.mask & there) != (w.mask & there)) return false;
	for (int l = 0; l < 32 && i * 32 + l < count; l++)
		if (w.arrived >> l & 1) threads[i * 32 + l].atWarp = false;
	w.arrived = 0;
	w.round++;
	return true;
}

static bool releaseBlock(int count) {
	if (blockArrived == 0 || blockArrived < live) return false;
	int line = -1;
	for (int i = 0; i < count; i++) {
		if (threads[i].done) continue;
		if (line >= 0 && threads[i].line != line) trouble = "threads of a block wait in different lines, " + std::to_string(line) + " and " + std::to_string(threads[i].line);
		line = threads[i].line;
		threads[i].atBlock = false;
	}
	blockArrived = 0;
	return true;
}

static void runBlock(int count, const std::vector<int> &order) {
	for (int i = 0; i < count; i++) {
		void **top = (void **)(stacks + (size_t)(i + 1) * stackBytes) - 1;
		*top-- = nullptr;               // as a call would leave it: 16 bytes aligned after the return address
		*top = (void *)finish;
		top -= 6;
		threads[i] = {top, false, 0, false, false, 0};
	}
	memset(warps, 0, sizeof warps);
	blockArrived = 0;
	live = count;
	while (live > 0 && trouble.empty()) {
		bool progress = false;
		for (int i : order) {
			Thread &t = threads[i];
			if (t.done || t.atBlock || t.atWarp) continue;
			current = i;
			unsigned x = machine.blockSize.x, y = machine.blockSize.y;
			machine.thread = {i % x, i / x % y, i / (x * y)};
			emulator_switch(&scheduler, t.sp);
			if (t.done) live--;
			progress = true;
		}
		for (int w = 0; w * 32 < count; w++) progress |= releaseWarp(w, count);
		progress |= releaseBlock(count);
		if (!progress) trouble = "threads wait for others that never come, line " + std::to_string(threads[current].line);
	}
}

// ---- State of the card ----

struct Function {
	const Kernel *kernel;
	size_t shared = 32 << 10; // dynamic shared memory it may use: of 48 KiB what static arrays leave, whose size is not known here
};
struct Module {
	void *object;
	std::map<std::string, Function> functions;
};
struct Launch {
	Function *f;
	Dim grid, block;
	unsigned shared;
	std::vector<std::vector<char>> values;
};
struct Span {
	size_t size;
	bool host;
	int card;
};

// Work of a stream. try returns false if it cannot be done yet; then the streams that it needs go on.
struct Work {
	std::function<bool()> attempt;
	std::function<std::vector<void *>()> needs;
};
struct Stream {
	int card;
	std::deque<Work> work;
	unsigned seen; // by advance
};
struct Graph {
	std::vector<Work> work;
	std::vector<std::string> names;
};

static const int maxCards = 16;
static std::recursive_mutex mutex;
static std::condition_variable_any changed; // work was asked for, or done
static bool ready, capturing;
static int failure;
static long launched;
static int contexts[maxCards];
static thread_local int card; // of the current context
static Stream common[maxCards]; // those without a name
static std::vector<Stream *> streams;
static Graph captured;
static std::map<char *, Span> memory;
static size_t used[maxCards];

static void note(const char *what, const std::string &why) { fprintf(stderr, "emulated card: %s: %s\n", what, why.c_str()); }

static Stream *streamOf(void *s) { return s ? (Stream *)s : &common[card]; }

// emulator_post queues work that may have to wait. Those who find that it can go on call emulator_changed.
API void emulator_post(void *stream, const char *name, std::function<bool()> attempt, std::function<std::vector<void *>()> needs) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	Work w{attempt, needs};
	if (!capturing) {
		streamOf(stream)->work.push_back(w);
		changed.notify_all();
		return;
	}
	captured.work.push_back(w);
	captured.names.push_back(name);
}
API void emulator_enqueue(void *stream, const char *name, std::function<void()> work) {
	emulator_post(stream, name, [work] { work(); return true; }, nullptr);
}
API void emulator_changed() {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	changed.notify_all();
}
API int emulator_card() { return card; }

// advance does the next work of a stream, or of one that it waits for, and reports whether there was any to do.
static unsigned rounds;
static bool advanceIn(unsigned round, Stream *s) {
	if (s->work.empty() || s->seen == round) return false;
	s->seen = round;
	Work &w = s->work.front();
	if (!failure && !w.attempt()) {
		if (w.needs)
			for (void *other : w.needs())
				if (advanceIn(round, (Stream *)other)) return true;
		return false;
	}
	s->work.pop_front();
	changed.notify_all();
	return true;
}
static bool advance(Stream *s) { return advanceIn(++rounds, s); }

// finish has a stream go on until something is so, which only other threads may bring about.
static int finish(Stream *s, std::function<bool()> done) {
	while (!failure && !done())
		if (!advance(s)) changed.wait(mutex);
	return failure;
}
static int finish(Stream *s) {
	return finish(s, [=] { return s->work.empty(); });
}
static int flush() { // all of the current card
	finish(&common[card]);
	for (size_t i = 0; i < streams.size(); i++)
		if (streams[i]->card == card) finish(streams[i]);
	return failure;
}

static void run(const Launch &l) {
	if (++launched == setting("FAIL_LAUNCH", 0)) {
		failure = LAUNCH_FAILED;
		return;
	}
	int count = l.block.x * l.block.y * l.block.z;
	std::vector<int> order(count);
	std::iota(order.begin(), order.end(), 0);
	const char *wanted = getenv("ANNEAL_EMULATOR_ORDER");
	if (wanted && !strcmp(wanted, "reverse")) std::reverse(order.begin(), order.end());
	unsigned seed = 12345;
	if (wanted && !strcmp(wanted, "shuffle"))
		for (int i = count - 1; i > 0; i--) std::swap(order[i], order[(seed = seed * 1664525 + 1013904223) % (i + 1)]);
	std::vector<void *> pointers;
	for (auto &v : l.values) pointers.push_back((void *)v.data());
	std::vector<char> shared(l.shared + 256, (char)0xff);
	machine.shared = (void *)(((size_t)shared.data() + 127) & ~(size_t)127);
	machine.blockSize = l.block;
	machine.gridSize = l.grid;
	running = l.f->kernel;
	parameters = pointers.data();
	for (unsigned z = 0; z < l.grid.z; z++)
		for (unsigned y = 0; y < l.grid.y; y++)
			for (unsigned x = 0; x < l.grid.x; x++) {
				machine.block = {x, y, z};
				memset(shared.data(), 0xff, shared.size());
				runBlock(count, order);
				if (!trouble.empty()) {
					note(running->name, trouble);
					failure = LAUNCH_FAILED;
					trouble.clear();
					return;
				}
			}
}

#define ENTER                                                \
	std::lock_guard<std::recursive_mutex> lock(mutex);       \
	if (!ready) return NOT_INITIALIZED;                      \
	if (failure) return failure

// ---- The driver API ----

API int cuInit(unsigned) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	if (setting("CARDS", 8) == 0) return NO_DEVICE;
	if (!stacks) stacks = (char *)mmap(nullptr, (size_t)stackBytes * maxThreads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (int i = 0; i < maxCards; i++) common[i].card = i;
	machine.sync = sync;
	machine.exchange = exchange;
	ready = true;
	return SUCCESS;
}
API int cuDriverGetVersion(int *v) { *v = (int)setting("DRIVER", 12090); return SUCCESS; }
API int cuDeviceGetCount(int *n) { ENTER; *n = (int)setting("CARDS", 8); return SUCCESS; }
API int cuDeviceGet(int *d, int i) { ENTER; *d = i; return i < setting("CARDS", 8) ? SUCCESS : INVALID_DEVICE; }
API int cuDeviceGetName(char *name, int n, int) { ENTER; snprintf(name, n, "Emulated card"); return SUCCESS; }
API int cuDeviceTotalMem_v2(size_t *n, int) { ENTER; *n = setting("MEMORY", 2l << 30); return SUCCESS; }
API int cuDeviceGetAttribute(int *v, int attribute, int) {
	ENTER;
	long sm = setting("SM", 90);
	switch (attribute) {
	case 1: *v = 1024; break;              // threads of a block
	case 8: *v = 48 << 10; break;          // shared memory of a block
	case 10: *v = 32; break;               // warp
	case 13: *v = 1000000; break;          // clock, kHz
	case 16: *v = 4; break;                // multiprocessors
	case 36: *v = 1000000; break;          // memory clock, kHz
	case 37: *v = 256; break;              // memory bus, bits
	case 38: *v = 4 << 20; break;          // L2
	case 39: *v = 2048; break;             // threads of a multiprocessor
	case 41: *v = 1; break;                // unified addressing
	case 75: *v = (int)sm / 10; break;
	case 76: *v = (int)sm % 10; break;
	case 81: *v = 100 << 10; break;        // shared memory of a multiprocessor
	case 97: *v = sm >= 90 ? 227 << 10 : 163 << 10; break; // of a block that asks for it
	default: *v = 0;
	}
	return SUCCESS;
}
API int cuDevicePrimaryCtxRetain(void **c, int i) { ENTER; *c = &contexts[i]; return SUCCESS; }
API int cuDevicePrimaryCtxRelease_v2(int) { std::lock_guard<std::recursive_mutex> lock(mutex); return failure; }
API int cuCtxSetCurrent(void *c) { ENTER; card = (int)((int *)c - contexts); return SUCCESS; }
API int cuCtxGetCurrent(void **c) { ENTER; *c = &contexts[card]; return SUCCESS; }
API int cuCtxSynchronize() { ENTER; return flush(); }

static int allocate(void **p, size_t n, bool host) {
	if (n == 0) return INVALID_VALUE;
	if (!host && used[card] + n > (size_t)setting("MEMORY", 2l << 30)) return OUT_OF_MEMORY;
	size_t page = 4096, whole = (n + page - 1) / page * page;
	char *m = (char *)mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED) return OUT_OF_MEMORY;
	mprotect(m + whole, page, PROT_NONE);
	m += (whole - n) / 256 * 256; // the end of the span lies before a page that nobody may touch
	memset(m, 0xff, n);
	memory[m] = {n, host, card};
	if (!host) used[card] += n;
	*p = m;
	return SUCCESS;
}
static int release(char *p, bool host) {
	flush();
	auto it = memory.find(p);
	if (it == memory.end() || it->second.host != host) return INVALID_VALUE;
	size_t page = 4096, whole = (it->second.size + page - 1) / page * page;
	munmap((char *)((size_t)p & ~(page - 1)), whole + page);
	if (!host) used[it->second.card] -= it->second.size;
	memory.erase(it);
	return SUCCESS;
}
API int cuMemAlloc_v2(void **p, size_t n) { ENTER; return allocate(p, n, false); }
API int cuMemFree_v2(void *p) { ENTER; return release((char *)p, false); }
API int cuMemHostAlloc(void **p, size_t n, unsigned) { ENTER; return allocate(p, n, true); }
API int cuMemFreeHost(void *p) { ENTER; return release((char *)p, true); }
API int cuMemGetInfo_v2(size_t *free, size_t *total) { ENTER; *total = setting("MEMORY", 2l << 30); *free = *total - used[card]; return SUCCESS; }

static bool inside(const void *p, size_t n, bool host) {
	auto it = memory.upper_bound((char *)p);
	if (it == memory.begin()) return false;
	--it;
	return it->second.host == host && (char *)p + n <= it->first + it->second.size;
}
// Memory of the host that the driver did not allocate is read before the call returns, as by the real one.
API int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t n, void *s) {
	ENTER;
	if (!inside(to, n, false)) return INVALID_VALUE;
	if (inside(from, n, true)) {
		emulator_enqueue(s, "copy", [=] { memcpy(to, from, n); });
		return SUCCESS;
	}
	std::vector<char> copy((const char *)from, (const char *)from + n);
	emulator_enqueue(s, "copy", [to, copy = std::move(copy)] { memcpy(to, copy.data(), copy.size()); });
	return SUCCESS;
}
API int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t n, void *s) {
	ENTER;
	if (!inside(from, n, false)) return INVALID_VALUE;
	emulator_enqueue(s, "copy", [=] { memcpy(to, from, n); });
	return inside(to, n, true) ? SUCCESS : finish(streamOf(s));
}
API int cuMemcpyAsync(void *to, const void *from, size_t n, void *s) {
	ENTER;
	emulator_enqueue(s, "copy", [=] { memmove(to, from, n); });
	return SUCCESS;
}
API int cuMemsetD8Async(void *to, unsigned char x, size_t n, void *s) {
	ENTER;
	emulator_enqueue(s, "set", [=] { memset(to, x, n); });
	return SUCCESS;
}

API int cuStreamCreate(Stream **s, unsigned) {
	ENTER;
	streams.push_back(*s = new Stream{card, {}, 0});
	return SUCCESS;
}
API int cuStreamDestroy_v2(Stream *s) {
	ENTER;
	finish(s);
	streams.erase(std::find(streams.begin(), streams.end(), s));
	delete s;
	return failure;
}
API int cuStreamSynchronize(void *s) { ENTER; return capturing ? CAPTURE_INVALIDATED : finish(streamOf(s)); }

struct Event { // asked and done count its recordings
	long asked, done;
	double at;
	Stream *stream;
};
API int cuEventCreate(Event **e, unsigned) { ENTER; *e = new Event(); return SUCCESS; }
static int await(Event *e) {
	long asked = e->asked;
	return asked > e->done ? finish(e->stream, [=] { return e->done >= asked; }) : SUCCESS;
}
API int cuEventDestroy_v2(Event *e) { ENTER; await(e); delete e; return SUCCESS; }
API int cuEventRecord(Event *e, void *s) {
	ENTER;
	long asked = ++e->asked;
	e->stream = streamOf(s);
	emulator_enqueue(s, "event", [=] {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		e->done = asked;
		e->at = t.tv_sec * 1e3 + t.tv_nsec / 1e6;
	});
	return SUCCESS;
}
API int cuStreamWaitEvent(void *s, Event *e, unsigned) {
	ENTER;
	long asked = e->asked;
	emulator_post(s, "wait", [=] { return e->done >= asked; }, [=] { return std::vector<void *>{e->stream}; });
	return SUCCESS;
}
API int cuEventSynchronize(Event *e) { ENTER; return await(e); }
API int cuEventQuery(Event *e) {
	ENTER;
	while (!failure && e->done < e->asked)
		if (!advance(e->stream)) return NOT_READY;
	return failure;
}
API int cuEventElapsedTime(float *ms, Event *from, Event *to) { ENTER; await(from); await(to); *ms = (float)(to->at - from->at); return failure; }

API int cuModuleLoadData(Module **m, const void *image) {
	ENTER;
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)image;
	if (memcmp(elf->e_ident, ELFMAG, SELFMAG)) return INVALID_IMAGE;
	size_t size = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
	char path[] = "/tmp/emulated-module-XXXXXX"; // the loader knows objects by their path
	int fd = mkstemp(path);
	if (fd < 0 || write(fd, image, size) != (ssize_t)size) return INVALID_IMAGE;
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	if (!object) note("cuModuleLoadData", dlerror());
	close(fd);
	if (!object) return INVALID_IMAGE;
	auto start = (const Kernel *(*)(Machine *))dlsym(object, "emulator_module");
	if (!start) return INVALID_IMAGE;
	*m = new Module{object, {}};
	for (const Kernel *k = start(&machine); k->name; k++) (*m)->functions[k->name] = Function{k};
	return SUCCESS;
}
API int cuModuleUnload(Module *m) { ENTER; flush(); dlclose(m->object); delete m; return SUCCESS; }
API int cuModuleGetFunction(Function **f, Module *m, const char *name) {
	ENTER;
	auto it = m->functions.find(name);
	if (it == m->functions.end()) return NOT_FOUND;
	*f = &it->second;
	return SUCCESS;
}
API int cuFuncSetAttribute(Function *f, int attribute, int value) {
	ENTER;
	if (attribute != 8) return SUCCESS; // only the size of dynamic shared memory means something here
	if (value > (setting("SM", 90) >= 90 ? 227 << 10 : 163 << 10)) return INVALID_VALUE;
	f->shared = value;
	return SUCCESS;
}
API int cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *s, void **p, void **extra) {
	ENTER;
	size_t count = (size_t)bx * by * bz;
	if (extra || count == 0 || count > maxThreads || gx == 0 || gy == 0 || gz == 0 || gx > 0x7fffffffu || gy > 65535 || gz > 65535 || shared > f->shared) {
		note(f->kernel->name, "launch with impossible sizes");
		return INVALID_VALUE;
	}
	Launch l{f, {gx, gy, gz}, {bx, by, bz}, shared, {}};
	for (int i = 0; i < f->kernel->count; i++) l.values.emplace_back((char *)p[i], (char *)p[i] + f->kernel->sizes[i]);
	emulator_enqueue(s, f->kernel->name, [l = std::move(l)] { run(l); });
	return SUCCESS;
}

API int cuStreamBeginCapture_v2(void *, int) { ENTER; capturing = true; captured = Graph(); return SUCCESS; }
API int cuStreamEndCapture(void *, Graph **g) { ENTER; capturing = false; *g = new Graph(std::move(captured)); return SUCCESS; }
API int cuGraphInstantiateWithFlags(Graph **e, Graph *g, unsigned long long) { ENTER; *e = new Graph(*g); return SUCCESS; }
API int cuGraphExecUpdate_v2(Graph *e, Graph *g, void *) {
	ENTER;
	if (e->names != g->names) return GRAPH_UPDATE_FAILURE;
	*e = *g;
	return SUCCESS;
}
API int cuGraphLaunch(Graph *e, void *s) { ENTER; for (size_t i = 0; i < e->work.size(); i++) emulator_post(s, e->names[i].c_str(), e->work[i].attempt, e->work[i].needs); return SUCCESS; }
API int cuGraphDestroy(Graph *g) { ENTER; delete g; return SUCCESS; }
API int cuGraphExecDestroy(Graph *g) { ENTER; delete g; return SUCCESS; }

static const std::map<int, std::pair<const char *, const char *>> errors = {
	{SUCCESS, {"CUDA_SUCCESS", "no error"}},
	{INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
	{OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
	{NOT_INITIALIZED, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
	{NO_DEVICE, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
	{INVALID_DEVICE, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
	{INVALID_IMAGE, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
	{INVALID_CONTEXT, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
	{NOT_FOUND, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
	{NOT_READY, {"CUDA_ERROR_NOT_READY", "device not ready"}},
	{LAUNCH_FAILED, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
	{CAPTURE_INVALIDATED, {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"}},
	{GRAPH_UPDATE_FAILURE, {"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed"}},
};
API int cuGetErrorName(int e, const char **s) { auto it = errors.find(e); if (it == errors.end()) return INVALID_VALUE; *s = it->second.first; return SUCCESS; }
API int cuGetErrorString(int e, const char **s) { auto it = errors.find(e); if (it == errors.end()) return INVALID_VALUE; *s = it->second.second; return SUCCESS; }
