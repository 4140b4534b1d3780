// The seam between the emulated driver, which runs threads, and the kernels it runs, which are shared objects of their own.
#pragma once

struct Dim {
	unsigned x, y, z;
};

// Machine is what a kernel sees of the card. The driver fills it in for the thread that runs.
struct Machine {
	Dim thread, block, blockSize, gridSize;
	void *shared;                                       // dynamic shared memory of the block
	void (*sync)(int line);                             // __syncthreads
	char (*(*exchange)(unsigned mask, const void *mine, int size, int line))[64]; // gives 64 bytes at most to the warp, returns what every lane gave
};

// Kernel is what a compiled module says of one kernel.
struct Kernel {
	const char *name;
	void (*run)(void **parameters);
	int count;                 // of parameters
	const int *sizes;          // in bytes
};
