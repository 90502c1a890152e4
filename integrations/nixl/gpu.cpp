// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * GPU memory of the plug-in.  The queue pairs of a GPU and disk are opened by the first
 * transfer and closed when memory of the GPU is registered or deregistered, as a controller
 * can access all memories that were opened before its queue pairs.
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include <dlfcn.h>

#include "gpu.h"

namespace {

/* Entries of a ring, items of a list, and longest item: one thread has one item at a time. */
constexpr uint32_t ENTRIES = 1024, ITEMS = 2048, ITEM_BYTES = 128 << 10;
constexpr unsigned int NON_BLOCKING = 1;	/* CU_STREAM_NON_BLOCKING */
constexpr auto POLL = std::chrono::microseconds(20);
/* More than the timeouts of all commands of a thread. */
constexpr auto LIMIT = std::chrono::seconds(300);

} // namespace

void complain(const std::string &what)
{
	nvmepeer_explanation why = {};

	nvmepeer_explain(&why, sizeof(why));
	fprintf(stderr, "NVMEPEER: %s: %s: %s; %s\n", what.c_str(), why.what, why.limit, why.help);
}

bool nodes_of(const std::string &path, std::string &controller, std::string &space, uint64_t &start)
{
	char *real = realpath(path.c_str(), nullptr);
	std::string name = real ? real : path, number;
	unsigned int disk, nsid, partition;
	uint64_t sectors = 0;
	char rest;
	int found;

	free(real);
	found = sscanf(name.c_str(), "/dev/nvmep%un%up%u%c", &disk, &nsid, &partition, &rest);
	if (found == 2 && name != "/dev/nvmep" + std::to_string(disk) + "n" + std::to_string(nsid))
		return false;
	if (found != 2 && found != 3)
		return false;
	controller = "nvmep" + std::to_string(disk);
	space = "ngp" + std::to_string(disk) + "n" + std::to_string(nsid);
	/* Only partitions have a start, in sectors of 512 bytes. */
	if (found == 3 && !(std::ifstream("/sys/class/block/" + name.substr(5) + "/start") >> sectors))
		return false;
	start = sectors * 512;
	return true;
}

bool Driver::load()
{
	const char *named = getenv("NVMEPEER_LIBCUDA");
	void *library = dlopen(named ? named : "libcuda.so.1", RTLD_NOW);
	bool good = library;
	auto find = [&](auto &function, const char *name) {
		void *symbol = good ? dlsym(library, name) : nullptr;

		function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
		good = symbol;
	};

	find(device_get, "cuDeviceGet");
	find(retain, "cuDevicePrimaryCtxRetain");
	find(release, "cuDevicePrimaryCtxRelease_v2");
	find(push, "cuCtxPushCurrent_v2");
	find(pop, "cuCtxPopCurrent_v2");
	find(host_alloc, "cuMemHostAlloc");
	find(host_free, "cuMemFreeHost");
	find(stream_create, "cuStreamCreate");
	find(stream_destroy, "cuStreamDestroy_v2");
	return good;
}

/* Queue pairs of a GPU on one disk, and its memories as data. */
class Lists {
public:
	Lists() = default;
	Lists(const Lists &) = delete;
	void operator=(const Lists &) = delete;

	/* The destructor is called after close() has returned true, or frees nothing. */
	bool open(nvmepeer_cuda *cuda, const std::string &path, uint32_t count,
		  const std::map<uintptr_t, size_t> &memories)
	{
		nvmepeer_ns *space = nullptr;
		std::string controller, name;
		uint64_t start;
		int error = 0;

		if (!nodes_of(path, controller, name, start))
			return false;
		if (nvmepeer_open(controller.c_str(), &ctrl_) || nvmepeer_ns_open(name.c_str(), &space))
			return false;
		block = nvmepeer_ns_info(space)->block_size;
		for (auto memory = memories.begin(); memory != memories.end() && !error; ++memory) {
			nvmepeer_cuda_buffer *buffer;

			error = nvmepeer_cuda_buffer_open(ctrl_, cuda, reinterpret_cast<void *>(memory->first),
							  memory->second, &buffer);
			if (!error)
				buffers_.push_back(buffer);
			numbers[memory->first] = static_cast<uint32_t>(numbers.size());
		}
		if (!error)
			error = nvmepeer_cuda_queues_open(ctrl_, nvmepeer_ns_info(space), cuda, ENTRIES,
							  count, &queues_);
		if (!error)
			error = nvmepeer_cuda_lists_open(queues_, buffers_.data(),
							 static_cast<uint32_t>(buffers_.size()), &lists);
		nvmepeer_ns_close(space);
		return !error;
	}

	/* False: the controller may access the memories still. */
	bool close()
	{
		if (queues_ && nvmepeer_cuda_queues_close(queues_))
			return false;
		queues_ = nullptr;
		if (lists && nvmepeer_cuda_lists_close(lists))
			return false;
		lists = nullptr;
		for (; !buffers_.empty(); buffers_.pop_back())
			if (nvmepeer_cuda_buffer_close(buffers_.back()))
				return false;
		nvmepeer_close(ctrl_);
		ctrl_ = nullptr;
		return true;
	}

	nvmepeer_cuda_lists *lists = nullptr;
	uint32_t block = 0;
	std::map<uintptr_t, uint32_t> numbers;
	std::atomic<bool> broken{ false };	/* a command failed, and its queue pair may be lost */

private:
	nvmepeer *ctrl_ = nullptr;
	nvmepeer_cuda_queues *queues_ = nullptr;
	std::vector<nvmepeer_cuda_buffer *> buffers_;
};

/* What a worker has on a GPU: a stream, and memory that GPU and host access. */
struct Gpu::Lane {
	struct Shared {
		nvmepeer_list_done done;
		nvmepeer_list_item items[ITEMS];
	};

	void *stream = nullptr;
	Shared *shared = nullptr;
};

Gpu::Gpu(int device, uint32_t queues) : device_(device), queue_count_(queues)
{
}

bool Gpu::open()
{
	if (!driver_.load() || driver_.device_get(&number_, device_) ||
	    driver_.retain(&context_, number_)) {
		fprintf(stderr, "NVMEPEER: GPU %d: no CUDA, or no such GPU\n", device_);
		return false;
	}
	if (!nvmepeer_cuda_open(device_, &cuda_))
		return true;
	complain("GPU " + std::to_string(device_));
	return false;
}

Gpu::~Gpu()
{
	/* Memory that a controller may access stays. */
	if (!drop_lists(false))
		return;
	if (context_)
		driver_.push(context_);
	for (auto &lane : lanes_) {
		if (!lane)
			continue;
		driver_.stream_destroy(lane->stream);
		driver_.host_free(lane->shared);
	}
	if (cuda_)
		nvmepeer_cuda_close(cuda_);
	if (context_) {
		driver_.pop(&context_);
		driver_.release(number_);
	}
}

/*
 * Close queue pairs.  False: some cannot be closed.  The caller holds the lock exclusively, or has
 * the object to itself.
 */
bool Gpu::drop_lists(bool only_broken)
{
	bool good = true;

	for (auto one = lists_.begin(); one != lists_.end();) {
		if (only_broken && !one->second->broken) {
			++one;
		} else if (one->second->close()) {
			one = lists_.erase(one);
		} else {
			complain(one->first);
			one->second->broken = true;
			good = false;
			++one;
		}
	}
	return good;
}

void Gpu::add(uintptr_t start, size_t bytes)
{
	std::unique_lock<std::shared_mutex> exclusive(lock_);

	drop_lists(false);
	memories_[start] = bytes;
}

bool Gpu::remove(uintptr_t start)
{
	std::unique_lock<std::shared_mutex> exclusive(lock_);

	if (!drop_lists(false))
		return false;
	memories_.erase(start);
	return true;
}

Lists *Gpu::find_lists(const std::string &path)
{
	auto found = lists_.find(path);

	return found == lists_.end() || found->second->broken ? nullptr : found->second.get();
}

bool Gpu::open_lists(const std::string &path)
{
	std::unique_lock<std::shared_mutex> exclusive(lock_);
	auto found = lists_.find(path);
	auto opened = std::make_unique<Lists>();

	/* One that is broken could not be closed. */
	if (found != lists_.end())
		return !found->second->broken;
	if (opened->open(cuda_, path, queue_count_, memories_)) {
		lists_[path] = std::move(opened);
		return true;
	}
	complain(path);
	/* What the controller may access still is kept, and not used. */
	opened->broken = true;
	if (!opened->close())
		lists_[path] = std::move(opened);
	return false;
}

bool Gpu::open_lane(Lane &lane)
{
	void *before, *memory = nullptr;
	bool good = !driver_.push(context_);

	if (good) {
		good = !driver_.host_alloc(&memory, sizeof(*lane.shared), 0);
		if (good && driver_.stream_create(&lane.stream, NON_BLOCKING)) {
			driver_.host_free(memory);
			good = false;
		}
		driver_.pop(&before);
	}
	lane.shared = static_cast<Lane::Shared *>(memory);
	return good;
}

/* Execute a list and wait for it. */
void Gpu::run_list(unsigned int worker, Lists &lists, bool write, const std::vector<Piece *> &pieces,
		   size_t first, size_t count)
{
	Lane &lane = *lanes_[worker];
	nvmepeer_cuda_list list = {};
	uint32_t before = __atomic_load_n(&lane.shared->done.count, __ATOMIC_ACQUIRE);
	auto end = std::chrono::steady_clock::now() + LIMIT;
	bool ended;

	for (size_t i = 0; i < count; i++) {
		const Piece &piece = *pieces[first + i];

		lane.shared->items[i] = {};
		lane.shared->items[i].lba = piece.at / lists.block;
		lane.shared->items[i].offset = piece.offset;
		lane.shared->items[i].memory = lists.numbers.at(piece.memory);
		lane.shared->items[i].bytes = static_cast<uint32_t>(piece.bytes);
		lane.shared->items[i].status = -1;
	}
	list.size = sizeof(list);
	list.count = static_cast<uint32_t>(count);
	list.items = lane.shared->items;
	list.done = &lane.shared->done;
	list.scratch = worker;
	ended = !(write ? nvmepeer_cuda_write_list(lists.lists, &list, lane.stream) :
			  nvmepeer_cuda_read_list(lists.lists, &list, lane.stream));
	if (!ended)
		complain("list");
	while (ended && __atomic_load_n(&lane.shared->done.count, __ATOMIC_ACQUIRE) == before) {
		ended = std::chrono::steady_clock::now() < end;
		std::this_thread::sleep_for(POLL);
	}
	for (size_t i = 0; i < count; i++) {
		pieces[first + i]->failed = !ended || lane.shared->items[i].status;
		if (pieces[first + i]->failed)
			lists.broken = true;
	}
}

/* Pieces on one disk.  False: they failed before they were tried. */
bool Gpu::run_part(unsigned int worker, const std::string &path, bool write,
		   const std::vector<Piece *> &pieces)
{
	Lists *lists;

	std::shared_lock<std::shared_mutex> shared(lock_);
	while (!(lists = find_lists(path))) {
		shared.unlock();
		if (!open_lists(path))
			return false;
		shared.lock();
	}
	for (const Piece *piece : pieces)
		if (piece->at % lists->block || !lists->numbers.count(piece->memory))
			return false;
	for (size_t first = 0; first < pieces.size(); first += ITEMS)
		run_list(worker, *lists, write, pieces, first,
			 std::min<size_t>(ITEMS, pieces.size() - first));
	return true;
}

/* Pieces no longer than an item. */
static std::vector<Piece> cut(const std::vector<Piece> &pieces, std::vector<size_t> &origins)
{
	std::vector<Piece> parts;

	for (size_t i = 0; i < pieces.size(); i++) {
		for (uint64_t done = 0; done < pieces[i].bytes; done += ITEM_BYTES) {
			Piece part = pieces[i];

			part.at += done;
			part.offset += done;
			part.bytes = std::min<uint64_t>(ITEM_BYTES, pieces[i].bytes - done);
			part.failed = true;
			parts.push_back(part);
			origins.push_back(i);
		}
	}
	return parts;
}

void Gpu::run(unsigned int worker, bool write, std::vector<Piece> &pieces)
{
	std::map<std::string, std::vector<Piece *>> by_path;
	std::vector<size_t> origins;
	std::vector<Piece> parts = cut(pieces, origins);
	bool failed = false;

	for (Piece &part : parts)
		by_path[part.path].push_back(&part);
	if (!lanes_[worker]) {
		auto lane = std::make_unique<Lane>();

		if (open_lane(*lane))
			lanes_[worker] = std::move(lane);
	}
	if (lanes_[worker])
		for (auto &one : by_path)
			run_part(worker, one.first, write, one.second);
	for (size_t i = 0; i < parts.size(); i++) {
		pieces[origins[i]].failed |= parts[i].failed;
		failed |= parts[i].failed;
	}
	if (!failed)
		return;
	std::unique_lock<std::shared_mutex> exclusive(lock_);
	drop_lists(true);
}
