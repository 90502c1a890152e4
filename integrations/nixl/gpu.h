/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A GPU of the plug-in: registered memory, and lists of blocks that the GPU transfers itself. */
#ifndef NVMEPEER_NIXL_GPU_H
#define NVMEPEER_NIXL_GPU_H

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include <nvmepeer_cuda.h>

/* Lists that may run at the same time have scratch memories of their own. */
constexpr unsigned int MOST_WORKERS = NVMEPEER_CUDA_LIST_SCRATCHES;

/* A part of a transfer: @bytes at @at of the namespace that the block device @path is on. */
struct Piece {
	std::string path;
	uint64_t at;
	uintptr_t memory;	/* start of a registered memory */
	uint64_t offset;
	uint64_t bytes;
	bool failed;
};

/* Print why a call of the libraries failed. */
void complain(const std::string &what);

/*
 * Names of the nodes of a block device of nvme-peer, or of a partition of it.  False: it is
 * another one.  @start: its first byte on the namespace.
 */
bool nodes_of(const std::string &path, std::string &controller, std::string &space, uint64_t &start);

/* The functions of libcuda that the plug-in calls itself. */
struct Driver {
	int (*device_get)(int *device, int number);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*host_alloc)(void **memory, size_t bytes, unsigned int flags);
	int (*host_free)(void *memory);
	int (*stream_create)(void **stream, unsigned int flags);
	int (*stream_destroy)(void *stream);

	/* False: there is no libcuda. */
	bool load();
};

class Lists;

class Gpu {
public:
	Gpu(int device, uint32_t queues);
	~Gpu();

	/* False: no CUDA, or no such GPU. */
	bool open();

	void add(uintptr_t start, size_t bytes);

	/*
	 * End the controllers' access to a memory.  False: it may be accessed still, and must not
	 * be freed.
	 */
	bool remove(uintptr_t start);

	/*
	 * Transfer pieces and wait.  Sets their results; the commands of those that failed have
	 * ended.  @worker: not used by two threads at a time.
	 */
	void run(unsigned int worker, bool write, std::vector<Piece> &pieces);

private:
	struct Lane;

	bool drop_lists(bool only_broken);
	Lists *find_lists(const std::string &path);
	bool open_lists(const std::string &path);
	bool open_lane(Lane &lane);
	bool run_part(unsigned int worker, const std::string &path, bool write,
		      const std::vector<Piece *> &pieces);
	void run_list(unsigned int worker, Lists &lists, bool write, const std::vector<Piece *> &pieces,
		      size_t first, size_t count);

	const int device_;
	const uint32_t queue_count_;
	Driver driver_ = {};
	int number_ = 0;
	void *context_ = nullptr;
	nvmepeer_cuda *cuda_ = nullptr;
	std::unique_ptr<Lane> lanes_[MOST_WORKERS];	/* each is one worker's */
	std::shared_mutex lock_;	/* held by transfers; exclusively to change what follows */
	std::map<uintptr_t, size_t> memories_;
	std::map<std::string, std::unique_ptr<Lists>> lists_;
};

#endif /* NVMEPEER_NIXL_GPU_H */
