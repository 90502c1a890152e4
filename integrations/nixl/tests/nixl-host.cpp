// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A small host of NIXL's plug-ins: what its plug-in manager and agent do with a back end for
 * storage, and a GPU that executes lists on modelled disks.
 *
 * usage: nixl-host PLUGIN FILE		FILE is overwritten; unit-nixl.sh sets the libraries
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#define _Alignas alignas
extern "C" {
#include "../../../lib/tests/fake.h"
}
#include <nvmepeer_cuda.h>
#include <nvmepeer_store.h>

#include "backend/backend_plugin.h"

namespace {

constexpr size_t PAGE = 196608, BLOCK = 512, OFFSET = 8192, VRAM = 1 << 20;
constexpr const char *DISK = "/dev/nvmep0n1";
const std::string AGENT = "agent";

int number, failed;

void check(bool good, const char *what)
{
	printf("%sok %d %s\n", good ? "" : "not ", ++number, what);
	failed |= !good;
}

template <class T> T find(const char *name, void *library = RTLD_DEFAULT)
{
	auto found = reinterpret_cast<T>(dlsym(library, name));

	if (found)
		return found;
	fprintf(stderr, "%s is missing\n", name);
	exit(1);
}

/* Memory of the GPU, of which the second half is registered later. */
char *vram[2];
void (*model_read)(uint32_t disk, uint64_t offset, void *data, uint64_t bytes);
void (*model_write)(uint32_t disk, uint64_t offset, const void *data, uint64_t bytes);
uint64_t broken_lba = UINT64_MAX;
unsigned int launches;

/* The kernel's parameters, lib/cuda/list_kernel.h, by their offsets. */
template <class T> T field(const std::string &parameters, size_t offset)
{
	T value;

	memcpy(&value, parameters.data() + offset, sizeof(value));
	return value;
}

/* A GPU executes a list some time after the launch, and then reports it. */
void run_list(std::string parameters)
{
	auto done = field<nvmepeer_list_done *>(parameters, 24);
	auto items = field<nvmepeer_list_item *>(parameters, 40);
	uint32_t count = field<uint32_t>(parameters, 88), opcode = field<uint32_t>(parameters, 92);

	std::this_thread::sleep_for(std::chrono::milliseconds(2));
	for (uint32_t i = 0; i < count; i++) {
		char *data = vram[items[i].memory] + items[i].offset;
		uint64_t at = items[i].lba * BLOCK - OFFSET;

		items[i].status = items[i].lba == broken_lba ? -3 : 0;
		if (!items[i].status && opcode == 1)
			model_write(0, at, data, items[i].bytes);
		else if (!items[i].status)
			model_read(0, at, data, items[i].bytes);
	}
	__atomic_store_n(&done->count, done->count + 1, __ATOMIC_RELEASE);
}

void launched(void *, unsigned int, void **arguments)
{
	__atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
	std::thread(run_list, std::string(static_cast<char *>(arguments[0]), 128)).detach();
}

/* What an agent has of a back end. */
class Agent {
public:
	explicit Agent(nixlBackendPlugin *plugin, const std::string &store) : plugin_(plugin)
	{
		nixl_b_params_t custom = plugin->get_backend_options();
		nixlBackendInitParams params;

		custom["store"] = store;
		params.localAgent = AGENT;
		params.type = "NVMEPEER";
		params.customParams = &custom;
		engine = plugin->create_engine(&params);
	}
	~Agent() { plugin_->destroy_engine(engine); }

	nixlBackendMD *add(nixl_mem_t kind, uintptr_t address, size_t bytes, uint64_t device,
			   const std::string &meta, nixl_status_t *status = nullptr)
	{
		nixlBackendMD *memory = nullptr, *local = nullptr;
		nixlBlobDesc described;
		nixl_status_t result;

		described.addr = address;
		described.len = bytes;
		described.devId = device;
		described.metaInfo = meta;
		result = engine->registerMem(described, kind, memory);
		if (status)
			*status = result;
		if (!result)
			engine->loadLocalMD(memory, local);
		return local;
	}

	/* A transfer from its preparation to its release, posted @times. */
	nixl_status_t run(nixl_xfer_op_t operation, const nixl_meta_dlist_t &local,
			  const nixl_meta_dlist_t &remote, int times = 1, const std::string &agent = AGENT)
	{
		nixlBackendReqH *handle = nullptr;
		nixl_status_t status = engine->prepXfer(operation, local, remote, agent, handle);

		for (int i = 0; i < times && !status; i++) {
			status = engine->postXfer(operation, local, remote, agent, handle);
			while (status == NIXL_IN_PROG) {
				std::this_thread::sleep_for(std::chrono::microseconds(100));
				status = engine->checkXfer(handle);
			}
		}
		if (handle && engine->releaseReqH(handle))
			return NIXL_ERR_REPOST_ACTIVE;
		return status;
	}

	nixlBackendEngine *engine;

private:
	nixlBackendPlugin *plugin_;
};

struct Place {
	uintptr_t address;
	size_t bytes;
	uint64_t device;
	nixlBackendMD *memory;
};

nixl_meta_dlist_t list(nixl_mem_t kind, const std::vector<Place> &places)
{
	nixl_meta_dlist_t made(kind);

	for (const Place &place : places) {
		nixlMetaDesc one;

		one.addr = place.address;
		one.len = place.bytes;
		one.devId = place.device;
		one.metadataP = place.memory;
		made.addDesc(one);
	}
	return made;
}

uintptr_t number_of(const void *address)
{
	return reinterpret_cast<uintptr_t>(address);
}

void fill(char *memory, size_t bytes, unsigned int key)
{
	for (size_t i = 0; i < bytes; i++)
		memory[i] = static_cast<char>(i * 37 + i / 251 + key);
}

bool exists(Agent &agent, const std::string &key)
{
	nixl_reg_dlist_t keys(OBJ_SEG);
	std::vector<nixl_query_resp_t> found;
	nixlBlobDesc one;

	one.addr = one.len = one.devId = 0;
	one.metaInfo = key;
	keys.addDesc(one);
	return !agent.engine->queryMem(keys, found) && found.size() == 1 && found[0].has_value();
}

/* Values by key, in host and GPU memory. */
void test_objects(Agent &agent, char *dram)
{
	nixlBackendMD *host = agent.add(DRAM_SEG, number_of(dram), VRAM, 0, "");
	nixlBackendMD *gpu = agent.add(VRAM_SEG, number_of(vram[0]), VRAM, 0, "");
	nixlBackendMD *keys[] = { agent.add(OBJ_SEG, 0, 0, 1, "first"), agent.add(OBJ_SEG, 0, 0, 2, "second"),
				  agent.add(OBJ_SEG, 0, 0, 3, "third") };
	auto objects = list(OBJ_SEG, { { 0, PAGE, 1, keys[0] }, { 0, 1004, 2, keys[1] } });
	auto from = list(DRAM_SEG, { { number_of(dram + 4), PAGE, 0, host },
				     { number_of(dram + PAGE + 512), 1004, 0, host } });
	auto to = list(VRAM_SEG, { { number_of(vram[0] + 1024), PAGE, 0, gpu },
				   { number_of(vram[0] + 400000), 1004, 0, gpu } });

	fill(dram, VRAM, 1);
	memset(vram[0], 0, VRAM);
	check(!exists(agent, "first") && agent.run(NIXL_READ, from, objects) == NIXL_ERR_NOT_FOUND,
	      "a key without a value is not found");
	check(!agent.run(NIXL_WRITE, from, objects) && exists(agent, "first") && !exists(agent, "third"),
	      "host memory is written to keys");
	check(!agent.run(NIXL_READ, to, objects) && !memcmp(vram[0] + 1024, dram + 4, PAGE) &&
		      !memcmp(vram[0] + 400000, dram + PAGE + 512, 1004) && !vram[0][1023] &&
		      !vram[0][1024 + PAGE] && !vram[0][401004],
	      "the GPU reads keys");
	fill(vram[0], VRAM, 9);
	check(!agent.run(NIXL_WRITE, to, objects, 3) && !agent.run(NIXL_READ, from, objects) &&
		      !memcmp(vram[0] + 1024, dram + 4, PAGE),
	      "the GPU overwrites keys, and the host reads them");
	check(agent.run(NIXL_READ, list(DRAM_SEG, { { number_of(dram), 1000, 0, host } }),
			list(OBJ_SEG, { { 0, 1000, 2, keys[1] } })) == NIXL_ERR_MISMATCH,
	      "a value of another length is refused");
	check(!agent.run(NIXL_WRITE, from, list(OBJ_SEG, { { 0, PAGE, 2, keys[1] }, { 0, 1004, 2, keys[1] } })) &&
		      !agent.run(NIXL_READ, list(DRAM_SEG, { { number_of(dram), 1004, 0, host } }),
				 list(OBJ_SEG, { { 0, 1004, 2, keys[1] } })) &&
		      !memcmp(dram, dram + PAGE + 512, 1004),
	      "of two values for a key the later one stays");
	check(agent.run(NIXL_WRITE, list(DRAM_SEG, { { number_of(dram), PAGE + 4, 0, host } }),
			list(OBJ_SEG, { { 0, PAGE + 4, 3, keys[2] } })) == NIXL_ERR_INVALID_PARAM &&
		      agent.run(NIXL_WRITE, list(DRAM_SEG, { { number_of(dram), 512, 0, host } }),
				list(OBJ_SEG, { { 512, 512, 3, keys[2] } })) == NIXL_ERR_INVALID_PARAM &&
		      agent.run(NIXL_WRITE, list(DRAM_SEG, { { number_of(dram) + VRAM + PAGE, 512, 0, host } }),
				list(OBJ_SEG, { { 0, 512, 3, keys[2] } })) == NIXL_ERR_INVALID_PARAM &&
		      agent.run(NIXL_WRITE, from, objects, 1, "other") == NIXL_ERR_INVALID_PARAM &&
		      agent.run(NIXL_WRITE, objects, from) == NIXL_ERR_NOT_SUPPORTED,
	      "invalid descriptors are refused");
	check(!agent.engine->deregisterMem(gpu) && !find<struct fake *>("fake")->open_files,
	      "a memory that is deregistered is not accessed any more");
	for (nixlBackendMD *key : keys)
		agent.engine->deregisterMem(key);
	agent.engine->deregisterMem(host);
}

void test_gpu_blocks(Agent &agent)
{
	nixlBackendMD *memory = agent.add(VRAM_SEG, number_of(vram[0]), VRAM, 0, "");
	nixlBackendMD *disk = agent.add(BLK_SEG, 0, 1 << 20, 7, DISK), *file, *other;
	/* Behind the values of the store. */
	size_t at = OFFSET + (1 << 20) - PAGE;
	auto blocks = list(BLK_SEG, { { at, PAGE, 7, disk } });
	auto first = list(VRAM_SEG, { { number_of(vram[0] + 8), PAGE, 0, memory } });
	std::vector<char> found(PAGE);
	unsigned int before;
	nixl_status_t status;

	fill(vram[0], VRAM, 3);
	status = agent.run(NIXL_WRITE, first, blocks);
	model_read(0, at - OFFSET, found.data(), PAGE);
	check(!status && !memcmp(found.data(), vram[0] + 8, PAGE), "the GPU writes blocks");
	other = agent.add(VRAM_SEG, number_of(vram[1]), VRAM, 0, "");
	memset(vram[1], 0, VRAM);
	status = agent.run(NIXL_READ, list(VRAM_SEG, { { number_of(vram[1] + 16), PAGE, 0, other } }), blocks);
	check(!status && !memcmp(found.data(), vram[1] + 16, PAGE), "memory that is registered later is read to");
	broken_lba = (at + PAGE - 512) / BLOCK;
	before = launches;
	status = agent.run(NIXL_READ, first, list(BLK_SEG, { { at + PAGE - 512, PAGE, 7, disk } }));
	check(status == NIXL_ERR_BACKEND && launches == before + 1 && !find<struct fake *>("fake")->open_files,
	      "a failure is reported, and its queue pairs are closed");
	broken_lba = UINT64_MAX;
	check(!agent.run(NIXL_READ, first, blocks), "others are opened");
	file = agent.add(BLK_SEG, 0, 1 << 20, 8, "/tmp/file");
	check(agent.run(NIXL_READ, first, list(BLK_SEG, { { 0, PAGE, 8, file } })) == NIXL_ERR_NOT_SUPPORTED &&
		      agent.run(NIXL_READ, first, list(BLK_SEG, { { at + 4, PAGE, 7, disk } })) ==
			      NIXL_ERR_INVALID_PARAM,
	      "the GPU has no files, and no parts of blocks");
	for (nixlBackendMD *one : { memory, disk, file, other })
		agent.engine->deregisterMem(one);
}

void test_host_blocks(Agent &agent, char *dram, const char *path)
{
	nixlBackendMD *memory = agent.add(DRAM_SEG, number_of(dram), VRAM, 0, "");
	nixlBackendMD *disk = agent.add(BLK_SEG, 0, 1 << 20, 9, path), *again;
	std::vector<Place> from, to, blocks;
	nixl_status_t status;

	again = agent.add(BLK_SEG, 1 << 20, 1 << 20, 9, "", &status);
	/* More than a ring has room for, in reverse order. */
	for (size_t i = 0; i < 100; i++) {
		from.push_back({ number_of(dram + i * 4096), 4096, 0, memory });
		to.push_back({ number_of(dram + VRAM / 2 + i * 4096), 4096, 0, memory });
		blocks.push_back({ (100 - i) * 4096, 4096, 9, i % 2 ? disk : again });
	}
	fill(dram, VRAM, 5);
	status = status ? status : agent.run(NIXL_WRITE, list(DRAM_SEG, from), list(BLK_SEG, blocks));
	memset(dram + VRAM / 2, 0, VRAM / 2);
	status = status ? status : agent.run(NIXL_READ, list(DRAM_SEG, to), list(BLK_SEG, blocks), 2);
	check(!status && !memcmp(dram, dram + VRAM / 2, 409600), "host memory is written to blocks, and read");
	check(agent.run(NIXL_READ, list(DRAM_SEG, { from[0] }), list(BLK_SEG, { { 1 << 30, 4096, 9, disk } })) ==
		      NIXL_ERR_BACKEND,
	      "blocks behind the end fail");
	for (nixlBackendMD *one : { memory, disk, again })
		agent.engine->deregisterMem(one);
}

void test_kinds(Agent &agent)
{
	nixl_status_t file, volume, gpu;

	agent.add(FILE_SEG, 0, 4096, 0, "", &file);
	agent.add(BLK_SEG, 0, 4096, 77, "", &volume);
	agent.add(VRAM_SEG, number_of(vram[0]), VRAM, 5, "", &gpu);
	check(file == NIXL_ERR_NOT_SUPPORTED && volume == NIXL_ERR_INVALID_PARAM && gpu == NIXL_ERR_NOT_SUPPORTED,
	      "files, volumes without a path, and other GPUs are refused");
}

} // namespace

int main(int count, char **arguments)
{
	static const char *const members[] = { DISK };
	struct nvmepeer_store_options options = {};
	void *library, *libcuda = dlopen(getenv("NVMEPEER_LIBCUDA"), RTLD_NOW);
	char *dram = static_cast<char *>(aligned_alloc(4096, VRAM));
	struct fake *kernel = find<struct fake *>("fake");

	if (count != 3 || !libcuda)
		return 1;
	vram[0] = static_cast<char *>(aligned_alloc(65536, VRAM));
	vram[1] = static_cast<char *>(aligned_alloc(65536, VRAM));
	/* Memories have numbers in the order of their addresses. */
	if (vram[0] > vram[1])
		std::swap(vram[0], vram[1]);
	find<void (*)()>("fake_reset")();
	kernel->identify[1] = 0x10;
	kernel->identify[130] = 9;
	kernel->qp_info.cq_entries = 1024;
	kernel->qp_info.sq_pci_address.valid = kernel->qp_info.cq_pci_address.valid = 1;
	*find<void (**)(void *, unsigned int, void **)>("fake_launched", libcuda) = launched;
	find<void (*)(uint64_t)>("model_reset")(1);
	model_read = find<decltype(model_read)>("model_peer_read");
	model_write = find<decltype(model_write)>("model_peer_write");
	options.size = sizeof(options);
	options.page_bytes = PAGE;
	options.slots = 4;
	printf("TAP version 13\n");
	check(!nvmepeer_store_create(members, 1, &options), "a store is created");

	library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	nixlBackendPlugin *plugin = find<nixlBackendPlugin *(*)()>("nixl_plugin_init", library)();
	check(plugin->api_version == NIXL_PLUGIN_API_VERSION && !strcmp(plugin->get_plugin_name(), "NVMEPEER") &&
		      strlen(plugin->get_plugin_version()) && plugin->get_backend_mems().size() == 4 &&
		      plugin->get_backend_options().count("store"),
	      "the plug-in describes itself");
	{
		Agent agent(plugin, DISK), second(plugin, DISK);

		check(!agent.engine->getInitErr() && second.engine->getInitErr(), "one engine has a store");
		check(agent.engine->supportsLocal() && !agent.engine->supportsRemote() &&
			      !agent.engine->supportsNotif() && !agent.engine->connect(AGENT),
		      "it is a local back end");
		test_kinds(agent);
		test_objects(agent, dram);
		test_host_blocks(agent, dram, arguments[2]);
	}
	{
		Agent agent(plugin, DISK), without(plugin, "");

		check(exists(agent, "first") && exists(agent, "second") && !exists(agent, "third"),
		      "another engine finds the values");
		check(!without.engine->getInitErr() && !exists(without, "first"), "a store is not required");
		test_gpu_blocks(agent);
	}
	find<void (*)()>("nixl_plugin_fini", library)();
	printf("1..%d\n", number);
	return failed;
}
