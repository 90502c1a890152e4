// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * NIXL's back end NVMEPEER: DRAM_SEG and VRAM_SEG to block devices (BLK_SEG) and to values of a
 * store (OBJ_SEG).
 *
 * A transfer is executed by one of a few threads of the engine, so that posting does not
 * block.  Host memory is read and written by io_uring, GPU memory by the GPU itself.
 */
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <nvmepeer_store.h>

#include "backend/backend_engine.h"
#include "backend/backend_plugin.h"
#include "gpu.h"

namespace {

constexpr unsigned int DEPTH = 64;
constexpr uint32_t MOST_IO = 1u << 30;
constexpr int FREE_TIMEOUT_MS = 10000;
constexpr uint64_t SECTOR = 512;

using Key = std::array<uint8_t, NVMEPEER_STORE_TAG>;

struct KeyHash {
	size_t operator()(const Key &key) const
	{
		size_t hash;

		memcpy(&hash, key.data(), sizeof(hash));	/* of a SHA-256 */
		return hash;
	}
};

/* A registered memory, volume or key. */
class Memory : public nixlBackendMD {
public:
	Memory(const nixlBlobDesc &from, nixl_mem_t of)
		: nixlBackendMD(true), kind(of), start(from.addr), bytes(from.len), device(from.devId)
	{
	}

	const nixl_mem_t kind;
	const uintptr_t start;
	const size_t bytes;
	const uint64_t device;
	std::string path;	/* of a volume */
	Key key = {};		/* of a value */
	std::shared_ptr<Gpu> gpu;
};

/* One descriptor of a transfer. */
struct Part {
	const Memory *memory;
	uintptr_t address;
	size_t bytes;
	const Memory *storage;
	uint64_t at;
};

class Request : public nixlBackendReqH {
public:
	bool write = false;
	nixl_mem_t local = DRAM_SEG;
	nixl_mem_t remote = BLK_SEG;
	std::vector<Part> parts;
	/* Set last by a worker, which then does not access the request any more. */
	std::atomic<nixl_status_t> status{ NIXL_SUCCESS };
};

/* I/O of the host on block devices, or files for tests. */
class HostIo {
public:
	~HostIo()
	{
		forget();
		if (open_)
			io_uring_queue_exit(&ring_);
	}

	bool run(const Request &request)
	{
		bool good = open_ || !io_uring_queue_init(DEPTH, &ring_, 0);

		open_ |= good;
		std::deque<Io> rest;
		for (size_t i = 0; good && i < request.parts.size(); i++) {
			const Part &part = request.parts[i];
			int file = file_of(part.storage->path);

			good = file >= 0;
			for (size_t done = 0; good && done < part.bytes; done += MOST_IO)
				rest.push_back({ file, part.address + done, part.at + done,
						 std::min<size_t>(MOST_IO, part.bytes - done) });
		}
		good = good && run_all(rest, request.write);
		/* The path may be another disk's the next time. */
		if (!good)
			forget();
		return good;
	}

private:
	struct Io {
		int file;
		uintptr_t address;
		uint64_t at;
		size_t bytes;
	};

	void forget()
	{
		for (auto &one : files_)
			close(one.second);
		files_.clear();
	}

	int file_of(const std::string &path)
	{
		auto found = files_.find(path);
		int file;

		if (found != files_.end())
			return found->second;
		file = ::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
		if (file < 0)
			fprintf(stderr, "NVMEPEER: %s: %s\n", path.c_str(), strerror(errno));
		else
			files_[path] = file;
		return file;
	}

	void start(Io &io, bool write)
	{
		io_uring_sqe *entry = io_uring_get_sqe(&ring_);
		auto data = reinterpret_cast<void *>(io.address);

		if (write)
			io_uring_prep_write(entry, io.file, data, static_cast<unsigned int>(io.bytes), io.at);
		else
			io_uring_prep_read(entry, io.file, data, static_cast<unsigned int>(io.bytes), io.at);
		io_uring_sqe_set_data(entry, &io);
	}

	/* At most DEPTH at a time; a short transfer is continued. */
	bool run_all(std::deque<Io> &list, bool write)
	{
		size_t started = 0;
		unsigned int running = 0;
		bool good = true;

		while (running || (good && started < list.size())) {
			io_uring_cqe *entry;
			Io *io;
			int result;

			for (; good && running < DEPTH && started < list.size(); running++)
				start(list[started++], write);
			if (io_uring_submit_and_wait(&ring_, 1) < 0)
				std::this_thread::yield();
			if (io_uring_peek_cqe(&ring_, &entry))
				continue;
			io = static_cast<Io *>(io_uring_cqe_get_data(entry));
			result = entry->res;
			io_uring_cqe_seen(&ring_, entry);
			running--;
			if (result == -EINTR || result == -EAGAIN)
				result = 0;
			else if (result <= 0)
				good = false;
			if (!good || static_cast<size_t>(result) == io->bytes)
				continue;
			io->address += static_cast<size_t>(result);
			io->at += static_cast<uint64_t>(result);
			io->bytes -= static_cast<size_t>(result);
			start(*io, write);
			running++;
		}
		return good;
	}

	bool open_ = false;
	io_uring ring_;
	std::map<std::string, int> files_;
};

/* The values of a store, by key. */
class Objects {
public:
	~Objects() { nvmepeer_store_close(store_); }

	/* @members: their paths, separated by commas. */
	bool open(const std::string &members)
	{
		nvmepeer_store_item items[64];
		struct nvmepeer_store_info info = {};
		std::stringstream all(members);
		std::vector<const char *> names;
		uint64_t position = 0;
		int count;

		for (std::string one; std::getline(all, one, ',');)
			paths_.push_back(one);
		for (auto &path : paths_)
			names.push_back(path.c_str());
		if (nvmepeer_store_open(names.data(), static_cast<uint32_t>(names.size()), 0, &store_))
			return false;
		nvmepeer_store_info(store_, &info, sizeof(info));
		page_bytes = info.page_bytes;
		while ((count = nvmepeer_store_scan(store_, &position, items, 64)) > 0)
			for (int i = 0; i < count; i++)
				values_[key_of(items[i])] = items[i];
		return true;
	}

	static bool make_key(const std::string &name, Key &key)
	{
		nvmepeer_index_scope scope = {};

		scope.size = sizeof(scope);
		scope.model = "NIXL";
		scope.layout = "OBJ_SEG";
		return !nvmepeer_index_key(&scope, name.data(), name.size(), key.data());
	}

	bool has(const Key &key)
	{
		std::lock_guard<std::mutex> guard(lock_);

		return values_.count(key);
	}

	nixl_status_t read(unsigned int worker, const Request &request)
	{
		std::vector<nvmepeer_store_item> items(request.parts.size());
		std::unique_lock<std::mutex> guard(lock_);

		for (size_t i = 0; i < items.size(); i++) {
			auto found = values_.find(request.parts[i].storage->key);

			if (found == values_.end())
				return NIXL_ERR_NOT_FOUND;
			/* A read writes the whole value. */
			if (found->second.length != request.parts[i].bytes)
				return NIXL_ERR_MISMATCH;
			items[i] = found->second;
			items[i].data = reinterpret_cast<void *>(request.parts[i].address);
		}
		guard.unlock();
		return request.local == DRAM_SEG ? read_host(items) : read_gpu(worker, request, items);
	}

	nixl_status_t write(unsigned int worker, const Request &request)
	{
		uint32_t count = static_cast<uint32_t>(request.parts.size());
		std::vector<nvmepeer_store_item> items(count);
		std::vector<uint32_t> slots(count);
		bool good;

		remove(request);
		if (nvmepeer_store_alloc(store_, slots.data(), count)) {
			complain("store");
			return NIXL_ERR_BACKEND;
		}
		for (uint32_t i = 0; i < count; i++) {
			items[i].slot = slots[i];
			items[i].length = static_cast<uint32_t>(request.parts[i].bytes);
			items[i].data = reinterpret_cast<void *>(request.parts[i].address);
		}
		if (request.local == DRAM_SEG)
			nvmepeer_store_write(store_, items.data(), count);
		else
			write_gpu(worker, request, items);
		good = commit(request, items);
		return good ? NIXL_SUCCESS : NIXL_ERR_BACKEND;
	}

	uint32_t page_bytes = 0;

private:
	static Key key_of(const nvmepeer_store_item &item)
	{
		Key key;

		memcpy(key.data(), item.tag, key.size());
		return key;
	}

	/* Old values go first: after a power cut a key has one value or none. */
	void remove(const Request &request)
	{
		std::vector<nvmepeer_store_item> old;

		{
			std::lock_guard<std::mutex> guard(lock_);

			old.swap(pinned_);
			for (const Part &part : request.parts) {
				auto found = values_.find(part.storage->key);

				if (found == values_.end())
					continue;
				old.push_back(found->second);
				values_.erase(found);
			}
		}
		if (old.empty() || !nvmepeer_store_free(store_, old.data(), static_cast<uint32_t>(old.size()),
							FREE_TIMEOUT_MS))
			return;
		complain("store");
		std::lock_guard<std::mutex> guard(lock_);
		for (const auto &item : old)
			if (item.result == -ETIMEDOUT)
				pinned_.push_back(item);
	}

	/* Commit the values that were written, and free the slots of the others. */
	bool commit(const Request &request, std::vector<nvmepeer_store_item> &items)
	{
		std::vector<nvmepeer_store_item> written, failed, replaced;

		for (size_t i = 0; i < items.size(); i++) {
			memcpy(items[i].tag, request.parts[i].storage->key.data(), sizeof(items[i].tag));
			items[i].flags = request.local == DRAM_SEG ? 0u : 0u + NVMEPEER_STORE_PEER;
			(items[i].result ? failed : written).push_back(items[i]);
		}
		if (!written.empty())
			nvmepeer_store_commit(store_, written.data(), static_cast<uint32_t>(written.size()));
		std::unique_lock<std::mutex> guard(lock_);
		for (auto &item : written) {
			if (item.result)
				failed.push_back(item);
			else
				publish(item, replaced);
		}
		guard.unlock();
		for (auto &item : replaced)
			nvmepeer_store_free(store_, &item, 1, FREE_TIMEOUT_MS);
		for (auto &item : failed)
			nvmepeer_store_free(store_, &item, 1, FREE_TIMEOUT_MS);
		return failed.empty();
	}

	/* Of two writes of a key at the same time the later one stays.  The caller holds the lock. */
	void publish(const nvmepeer_store_item &item, std::vector<nvmepeer_store_item> &replaced)
	{
		auto made = values_.emplace(key_of(item), item);

		if (made.second)
			return;
		replaced.push_back(made.first->second);
		made.first->second = item;
	}

	nixl_status_t read_host(std::vector<nvmepeer_store_item> &items)
	{
		return nvmepeer_store_read(store_, items.data(), static_cast<uint32_t>(items.size())) ?
			       NIXL_ERR_BACKEND : NIXL_SUCCESS;
	}

	/* Where the GPU finds the slots.  Empty: a member is lost, or no namespace. */
	std::vector<Piece> pieces_of(const Request &request, const std::vector<nvmepeer_store_item> &items)
	{
		std::vector<Piece> pieces;

		for (size_t i = 0; i < items.size(); i++) {
			const Part &part = request.parts[i];
			struct nvmepeer_store_place place = {};

			if (nvmepeer_store_place(store_, items[i].slot, &place, sizeof(place))) {
				complain("store");
				return {};
			}
			pieces.push_back({ paths_[place.member], place.lba * place.block_bytes,
					   part.memory->start, part.address - part.memory->start,
					   part.bytes, false });
		}
		return pieces;
	}

	nixl_status_t read_gpu(unsigned int worker, const Request &request,
			       std::vector<nvmepeer_store_item> &items)
	{
		uint32_t count = static_cast<uint32_t>(items.size());
		bool good = !nvmepeer_store_pin(store_, items.data(), count);
		std::vector<Piece> pieces;

		if (good)
			pieces = pieces_of(request, items);
		good &= !pieces.empty();
		if (good)
			request.parts[0].memory->gpu->run(worker, false, pieces);
		for (const Piece &piece : pieces)
			good &= !piece.failed;
		nvmepeer_store_unpin(store_, items.data(), count);
		return good ? NIXL_SUCCESS : NIXL_ERR_BACKEND;
	}

	void write_gpu(unsigned int worker, const Request &request, std::vector<nvmepeer_store_item> &items)
	{
		std::vector<Piece> pieces = pieces_of(request, items);

		if (!pieces.empty())
			request.parts[0].memory->gpu->run(worker, true, pieces);
		for (size_t i = 0; i < items.size(); i++)
			items[i].result = pieces.empty() || pieces[i].failed ? -EIO : 0;
	}

	nvmepeer_store *store_ = nullptr;
	std::vector<std::string> paths_;
	std::mutex lock_;	/* guards what follows */
	std::vector<nvmepeer_store_item> pinned_;	/* removed while they were read, to be freed */
	std::unordered_map<Key, nvmepeer_store_item, KeyHash> values_;
};

std::string parameter(const nixlBackendInitParams *params, const char *name, const char *missing)
{
	if (params->customParams) {
		auto found = params->customParams->find(name);

		if (found != params->customParams->end() && !found->second.empty())
			return found->second;
	}
	return missing;
}

nixl_b_params_t defaults()
{
	return { { "store", "" }, { "queues", "4" } };
}

nixl_mem_list_t memories()
{
	return { DRAM_SEG, VRAM_SEG, BLK_SEG, OBJ_SEG };
}

} // namespace

class nixlNvmepeerEngine : public nixlBackendEngine {
public:
	explicit nixlNvmepeerEngine(const nixlBackendInitParams *params) : nixlBackendEngine(params)
	{
		std::string store = parameter(params, "store", "");

		queue_count_ = static_cast<uint32_t>(strtoul(parameter(params, "queues", "4").c_str(), nullptr, 10));
		if (!store.empty()) {
			objects_ = std::make_unique<Objects>();
			initErr = !objects_->open(store);
			if (initErr)
				complain(store);
		}
		for (unsigned int i = 0; i < MOST_WORKERS && !initErr; i++)
			threads_.emplace_back([this, i] { work(i); });
	}

	~nixlNvmepeerEngine() override
	{
		{
			std::lock_guard<std::mutex> guard(lock_);

			ended_ = true;
		}
		posted_.notify_all();
		for (auto &thread : threads_)
			thread.join();
	}

	bool supportsRemote() const override { return false; }
	bool supportsLocal() const override { return true; }
	bool supportsNotif() const override { return false; }
	nixl_mem_list_t getSupportedMems() const override { return memories(); }
	nixl_status_t connect(const std::string &) override { return NIXL_SUCCESS; }
	nixl_status_t disconnect(const std::string &) override { return NIXL_SUCCESS; }
	nixl_status_t unloadMD(nixlBackendMD *) override { return NIXL_SUCCESS; }

	nixl_status_t loadLocalMD(nixlBackendMD *input, nixlBackendMD *&output) override
	{
		output = input;
		return NIXL_SUCCESS;
	}

	nixl_status_t registerMem(const nixlBlobDesc &from, const nixl_mem_t &kind,
				  nixlBackendMD *&out) override
	{
		auto memory = std::make_unique<Memory>(from, kind);
		nixl_status_t status = NIXL_SUCCESS;

		if (kind == VRAM_SEG)
			status = register_vram(*memory);
		else if (kind == BLK_SEG)
			status = register_volume(*memory, from.metaInfo);
		else if (kind == OBJ_SEG)
			status = register_key(*memory, from.metaInfo);
		else if (kind != DRAM_SEG)
			status = NIXL_ERR_NOT_SUPPORTED;
		out = status ? nullptr : memory.release();
		return status;
	}

	nixl_status_t deregisterMem(nixlBackendMD *meta) override
	{
		auto memory = static_cast<Memory *>(meta);

		if (!memory)
			return NIXL_ERR_INVALID_PARAM;
		if (memory->gpu && !memory->gpu->remove(memory->start))
			return NIXL_ERR_BACKEND;
		delete memory;
		return NIXL_SUCCESS;
	}

	nixl_status_t prepXfer(const nixl_xfer_op_t &operation, const nixl_meta_dlist_t &local,
			       const nixl_meta_dlist_t &remote, const std::string &agent,
			       nixlBackendReqH *&handle, const nixl_opt_b_args_t *) const override
	{
		auto request = std::make_unique<Request>();
		nixl_status_t status = NIXL_SUCCESS;

		handle = nullptr;
		if (agent != localAgent || !local.descCount() || local.descCount() != remote.descCount())
			return NIXL_ERR_INVALID_PARAM;
		if ((local.getType() != DRAM_SEG && local.getType() != VRAM_SEG) ||
		    (remote.getType() != BLK_SEG && remote.getType() != OBJ_SEG))
			return NIXL_ERR_NOT_SUPPORTED;
		request->write = operation == NIXL_WRITE;
		request->local = local.getType();
		request->remote = remote.getType();
		for (int i = 0; i < local.descCount() && !status; i++)
			status = add(*request, local[static_cast<size_t>(i)], remote[static_cast<size_t>(i)]);
		if (!status)
			handle = request.release();
		return status;
	}

	nixl_status_t postXfer(const nixl_xfer_op_t &, const nixl_meta_dlist_t &, const nixl_meta_dlist_t &,
			       const std::string &, nixlBackendReqH *&handle,
			       const nixl_opt_b_args_t *) const override
	{
		auto request = static_cast<Request *>(handle);

		if (!request)
			return NIXL_ERR_INVALID_PARAM;
		if (request->status.exchange(NIXL_IN_PROG) == NIXL_IN_PROG)
			return NIXL_ERR_REPOST_ACTIVE;
		{
			std::lock_guard<std::mutex> guard(lock_);

			requests_.push_back(request);
		}
		posted_.notify_one();
		return NIXL_IN_PROG;
	}

	nixl_status_t checkXfer(nixlBackendReqH *handle) const override
	{
		return handle ? static_cast<Request *>(handle)->status.load() : NIXL_ERR_INVALID_PARAM;
	}

	/* Commands are not cancelled: their memory stays the controller's until they have ended. */
	nixl_status_t releaseReqH(nixlBackendReqH *handle) const override
	{
		if (checkXfer(handle) == NIXL_IN_PROG)
			return NIXL_ERR_REPOST_ACTIVE;
		delete handle;
		return NIXL_SUCCESS;
	}

	nixl_status_t queryMem(const nixl_reg_dlist_t &list, std::vector<nixl_query_resp_t> &found) const override
	{
		found.clear();
		for (int i = 0; i < list.descCount(); i++) {
			const std::string &name = list[static_cast<size_t>(i)].metaInfo;
			Key key;

			if (objects_ && Objects::make_key(name, key) && objects_->has(key))
				found.emplace_back(nixl_b_params_t());
			else
				found.emplace_back(std::nullopt);
		}
		return objects_ ? NIXL_SUCCESS : NIXL_ERR_NOT_SUPPORTED;
	}

private:
	nixl_status_t register_vram(Memory &memory)
	{
		std::shared_ptr<Gpu> &gpu = gpus_[memory.device];

		if (!gpu) {
			auto opened = std::make_shared<Gpu>(static_cast<int>(memory.device), queue_count_);

			if (!opened->open())
				return NIXL_ERR_NOT_SUPPORTED;
			gpu = opened;
		}
		gpu->add(memory.start, memory.bytes);
		memory.gpu = gpu;
		return NIXL_SUCCESS;
	}

	/* The path comes with the first registration of a volume. */
	nixl_status_t register_volume(Memory &memory, const std::string &path)
	{
		if (!path.empty())
			volumes_[memory.device] = path;
		memory.path = volumes_[memory.device];
		return memory.path.empty() ? NIXL_ERR_INVALID_PARAM : NIXL_SUCCESS;
	}

	nixl_status_t register_key(Memory &memory, const std::string &name) const
	{
		if (!objects_)
			return NIXL_ERR_NOT_SUPPORTED;
		if (Objects::make_key(name.empty() ? std::to_string(memory.device) : name, memory.key))
			return NIXL_SUCCESS;
		return NIXL_ERR_INVALID_PARAM;
	}

	nixl_status_t add(Request &request, const nixlMetaDesc &local, const nixlMetaDesc &remote) const
	{
		auto memory = static_cast<const Memory *>(local.metadataP);
		auto storage = static_cast<const Memory *>(remote.metadataP);
		std::string controller, space;
		uint64_t start = 0;

		if (!memory || !storage || memory->kind != request.local || storage->kind != request.remote ||
		    !local.len || local.len != remote.len || local.addr < memory->start ||
		    local.addr - memory->start > memory->bytes ||
		    local.len > memory->bytes - (local.addr - memory->start))
			return NIXL_ERR_INVALID_PARAM;
		if (!request.parts.empty() && request.parts[0].memory->gpu != memory->gpu)
			return NIXL_ERR_NOT_SUPPORTED;
		if (request.remote == OBJ_SEG && (remote.addr || local.len % 4 || local.len > objects_->page_bytes))
			return NIXL_ERR_INVALID_PARAM;
		if (request.remote == BLK_SEG && (remote.addr % SECTOR || local.len % SECTOR))
			return NIXL_ERR_INVALID_PARAM;
		if (request.remote == BLK_SEG && request.local == VRAM_SEG &&
		    !nodes_of(storage->path, controller, space, start))
			return NIXL_ERR_NOT_SUPPORTED;
		/* Commands of a GPU count from the start of the namespace. */
		request.parts.push_back({ memory, local.addr, local.len, storage, remote.addr + start });
		return NIXL_SUCCESS;
	}

	static nixl_status_t run_gpu(unsigned int worker, const Request &request)
	{
		std::vector<Piece> pieces;
		bool good = true;

		for (const Part &part : request.parts)
			pieces.push_back({ part.storage->path, part.at, part.memory->start,
					   part.address - part.memory->start, part.bytes, false });
		request.parts[0].memory->gpu->run(worker, request.write, pieces);
		for (const Piece &piece : pieces)
			good &= !piece.failed;
		return good ? NIXL_SUCCESS : NIXL_ERR_BACKEND;
	}

	nixl_status_t run(unsigned int worker, HostIo &io, const Request &request) const
	{
		if (request.remote == OBJ_SEG)
			return request.write ? objects_->write(worker, request) :
					       objects_->read(worker, request);
		if (request.local == VRAM_SEG)
			return run_gpu(worker, request);
		return io.run(request) ? NIXL_SUCCESS : NIXL_ERR_BACKEND;
	}

	void work(unsigned int worker)
	{
		std::unique_lock<std::mutex> guard(lock_);
		HostIo io;

		for (;;) {
			posted_.wait(guard, [this] { return ended_ || !requests_.empty(); });
			if (requests_.empty())
				return;
			Request *request = requests_.front();
			requests_.pop_front();
			guard.unlock();
			request->status = run(worker, io, *request);
			guard.lock();
		}
	}

	uint32_t queue_count_ = 4;
	std::unique_ptr<Objects> objects_;
	/* NIXL registers from one thread at a time. */
	std::map<uint64_t, std::shared_ptr<Gpu>> gpus_;
	std::map<uint64_t, std::string> volumes_;
	mutable std::mutex lock_;	/* guards what follows */
	mutable std::condition_variable posted_;
	mutable std::deque<Request *> requests_;
	bool ended_ = false;
	std::vector<std::thread> threads_;
};

extern "C" NIXL_PLUGIN_EXPORT nixlBackendPlugin *nixl_plugin_init()
{
	static nixlBackendPlugin plugin = {
		NIXL_PLUGIN_API_VERSION,
		[](const nixlBackendInitParams *params) -> nixlBackendEngine * {
			return new nixlNvmepeerEngine(params);
		},
		[](nixlBackendEngine *engine) { delete engine; },
		[] { return "NVMEPEER"; },
		[] { return NVMEPEER_VERSION; },
		defaults,
		memories,
	};

	return &plugin;
}

extern "C" NIXL_PLUGIN_EXPORT void nixl_plugin_fini()
{
}
