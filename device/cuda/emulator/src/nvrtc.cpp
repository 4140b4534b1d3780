// libnvrtc.so.12 of the emulated card: compiles kernels with g++ to a shared object, which is this card's cubin. DEVICE_DIR is the
// directory of device.h.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))
extern char **environ;

enum { SUCCESS = 0, OUT_OF_MEMORY = 1, PROGRAM_CREATION = 2, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6 };

struct Program {
	std::string source, log, cubin;
};

static std::string contents(const std::string &path) {
	std::ifstream f(path, std::ios::binary);
	std::stringstream s;
	s << f.rdbuf();
	return s.str();
}

API int nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 99; return SUCCESS; }
API int nvrtcCreateProgram(Program **p, const char *source, const char *, int headers, const char **, const char **) {
	if (headers) return INVALID_INPUT;
	*p = new Program{source, "", ""};
	return SUCCESS;
}
API int nvrtcDestroyProgram(Program **p) { delete *p; *p = nullptr; return SUCCESS; }

// entries is the list of a program's kernels, as the driver wants it.
static std::string entries(const std::string &source) {
	static const std::regex kernel("(?:__global__\\s+(?:__launch_bounds__\\([^)]*\\)\\s*)?void|\\bKERNEL)\\s+(?:__launch_bounds__\\([^)]*\\)\\s*)?(\\w+)\\s*\\(");
	std::string list = "\nstatic const Kernel kernels[] = {";
	for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it) list += "KERNEL_ENTRY(" + (*it)[1].str() + ")";
	return list + "{}};\nextern \"C\" __attribute__((visibility(\"default\"))) const Kernel *emulator_module(Machine *m) { machine = m; return kernels; }\n";
}

API int nvrtcCompileProgram(Program *p, int n, const char **options) {
	bool architecture = false;
	for (int i = 0; i < n; i++) {
		std::string o = options[i];
		architecture |= o.rfind("--gpu-architecture=sm_", 0) == 0 || o.rfind("-arch=sm_", 0) == 0;
		if (o[0] != '-') {
			p->log = "unknown option " + o;
			return INVALID_OPTION;
		}
	}
	if (!architecture) {
		p->log = "no architecture sm_…, and so no cubin";
		return INVALID_OPTION;
	}
	char dir[] = "/tmp/emulated-nvrtc-XXXXXX";
	if (!mkdtemp(dir)) return PROGRAM_CREATION;
	std::string base = dir, in = base + "/kernel.cpp", out = base + "/kernel.so", log = base + "/log";
	std::ofstream(in) << "#include \"" DEVICE_DIR "/device.h\"\n#line 1 \"kernel\"\n" << p->source << entries(p->source);
	std::vector<std::string> words = {"g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fvisibility=hidden", "-mf16c", "-mfma", "-o", out, in};
	std::vector<char *> argv;
	for (auto &w : words) argv.push_back((char *)w.c_str());
	argv.push_back(nullptr);
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT, 0600);
	pid_t pid;
	int status = -1;
	if (posix_spawnp(&pid, "g++", &actions, nullptr, argv.data(), environ) == 0) waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	p->log = contents(log);
	p->cubin = contents(out);
	for (auto &f : {in, out, log}) unlink(f.c_str());
	rmdir(dir);
	return status == 0 ? SUCCESS : COMPILATION;
}
API int nvrtcGetCUBINSize(Program *p, size_t *n) { *n = p->cubin.size(); return SUCCESS; }
API int nvrtcGetCUBIN(Program *p, char *to) { memcpy(to, p->cubin.data(), p->cubin.size()); return SUCCESS; }
API int nvrtcGetProgramLogSize(Program *p, size_t *n) { *n = p->log.size() + 1; return SUCCESS; }
API int nvrtcGetProgramLog(Program *p, char *to) { memcpy(to, p->log.c_str(), p->log.size() + 1); return SUCCESS; }
API const char *nvrtcGetErrorString(int e) {
	static const char *const names[] = {"NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION", "NVRTC_ERROR_COMPILATION"};
	return e >= 0 && e <= 6 ? names[e] : "NVRTC_ERROR unknown";
}
