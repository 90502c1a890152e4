// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * read_tensors.c: read the tensors of a safetensors file with the device library, by a queue pair
 * of each kind, and compare them with the result of read():
 *
 *	direct		the peer reads the file's blocks, which nothing can change meanwhile.  Needs
 *			CAP_SYS_RAWIO and ownership of the file
 *	mediated	the kernel checks each command against a window on the file.  Needs ownership of
 *			the file
 *	served		a thread of this process executes the commands.  Any file system
 *
 *	cc read_tensors.c $(pkg-config --cflags --libs libnvmepeer) -pthread -luring
 *	./a.out direct|mediated|served FILE
 *
 * read_pieces() is the device code: in a kernel it is the same, see minimal.cu.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nvmepeer_serve.h>

enum {
	ENTRIES = 64,
	DEPTH = 32,			/* commands in flight */
	HEADER_MAX = 100 << 20,		/* safetensors' own limit */
	DATA_ALIGN = 4096,
};

/* ---- Device code ----------------------------------------------------------- */

/**
 * struct piece - a command
 * @offset: in the data memory
 * @lba: first block
 * @blocks: number of blocks
 */
struct piece {
	uint64_t offset;
	uint64_t lba;
	uint32_t blocks;
};

/* DEPTH at a time.  Returns 0, an NVMe status or an error of the library. */
static int read_pieces(const struct nvmepeer_queue *queue, const struct nvmepeer_buffer *data,
		       const struct piece *pieces, size_t count)
{
	struct nvmepeer_token tokens[DEPTH];
	size_t begun = 0, ended;
	int status = 0, result;

	for (ended = 0; ended < count && (!status || ended < begun); ended++) {
		while (!status && begun < count && begun - ended < DEPTH) {
			struct nvmepeer_command command = {
				.opcode = NVMEPEER_OP_READ, .blocks = pieces[begun].blocks,
				.lba = pieces[begun].lba, .buffer = data, .offset = pieces[begun].offset,
			};

			status = nvmepeer_submit(queue, &command, &tokens[begun % DEPTH], queue->timeout_ns);
			begun += !status;
		}
		if (ended == begun)
			break;
		result = nvmepeer_wait(queue, tokens[ended % DEPTH], NULL, queue->timeout_ns);
		status = status ? status : result;
	}
	return status;
}

/* ---- The file ---------------------------------------------------------------- */

/**
 * struct file - a file
 * @path: where it is
 * @fd: open for reading
 * @length: bytes
 */
struct file {
	const char *path;
	int fd;
	uint64_t length;
};

__attribute__((format(printf, 1, 2), noreturn))
static void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("read_tensors: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	va_end(arguments);
	exit(1);
}

__attribute__((noreturn))
static void refuse_errno(const char *what)
{
	refuse("%s: %s", what, strerror(errno));
}

__attribute__((noreturn))
static void refuse_as_explained(void)
{
	struct nvmepeer_explanation why;

	nvmepeer_explain(&why, sizeof(why));
	refuse("%s: %s. %s. %s.", why.call, why.what, why.limit, why.help);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void file_open(struct file *file, const char *path)
{
	struct stat stat;

	file->path = path;
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0 || fstat(file->fd, &stat))
		refuse_errno(path);
	file->length = (uint64_t)stat.st_size;
}

/* ---- Its header -------------------------------------------------------------- */

/**
 * struct tensor - a tensor
 * @name: in the header, @length bytes
 * @begin: its first byte in the file
 * @end: behind its last byte
 */
struct tensor {
	const char *name;
	int length;
	uint64_t begin;
	uint64_t end;
};

struct tensors {
	char *header;
	struct tensor *list;
	size_t count;
};

static void read_all(int fd, void *bytes, size_t length, uint64_t at)
{
	if (pread(fd, bytes, length, (off_t)at) != (ssize_t)length)
		refuse("the file is shorter than its header says");
}

/* The name before the object that has these data_offsets: {"NAME":{"dtype":..., */
static void find_name(const char *header, const char *offsets, struct tensor *tensor)
{
	const char *open = offsets, *end, *name;

	while (open > header && *open != '{')
		open--;
	for (end = open; end > header && *end != '"'; end--)
		;
	for (name = end; name > header && name[-1] != '"'; name--)
		;
	tensor->name = name;
	tensor->length = (int)(end - name);
}

/* 8 bytes: the length of the header, JSON.  Offsets are relative to its end. */
static void find_tensors(const struct file *file, struct tensors *tensors)
{
	static const char key[] = "\"data_offsets\"";
	uint64_t length, base;
	const char *at;

	*tensors = (struct tensors){ 0 };
	read_all(file->fd, &length, sizeof(length), 0);
	if (length > HEADER_MAX || length > file->length)
		refuse("no safetensors file: its header would have %" PRIu64 " bytes", length);
	base = sizeof(length) + length;
	tensors->header = calloc(1, length + 1);
	if (!tensors->header)
		refuse_errno("memory");
	read_all(file->fd, tensors->header, length, sizeof(length));
	for (at = tensors->header; (at = strstr(at, key)); at += sizeof(key) - 1) {
		struct tensor *tensor;
		uint64_t begin, end;

		if (sscanf(at + sizeof(key) - 1, " : [ %" SCNu64 " , %" SCNu64 " ]", &begin, &end) != 2 ||
		    begin > end || end > file->length - base)
			refuse("the header has wrong data_offsets");
		tensors->list = realloc(tensors->list, (tensors->count + 1) * sizeof(*tensor));
		if (!tensors->list)
			refuse_errno("memory");
		tensor = &tensors->list[tensors->count++];
		*tensor = (struct tensor){ .begin = base + begin, .end = base + end };
		find_name(tensors->header, at, tensor);
	}
}

/* ---- Queue pairs -------------------------------------------------------------- */

/**
 * struct reader - a queue pair of one of the kinds
 * @queue: for the device code
 * @data: data memory, in which the file has its own offsets
 * @bytes: the same in this process
 * @length: its length
 * @reach: bytes of the file that commands may read: the whole blocks of the namespace, or of the file
 *	system
 * @block: bytes of a block
 * @most: bytes of the longest command
 * @pin: descriptor that keeps @extents where they are; 0 unless commands have blocks of the namespace
 * @extents: of the file
 * @extent_count: how many
 * @ctrl: controller, and below it what each kind has open
 */
struct reader {
	struct nvmepeer_queue queue;
	struct nvmepeer_buffer data;
	unsigned char *bytes;
	uint64_t length;
	uint64_t reach;
	uint32_t block;
	uint32_t most;
	int pin;
	struct nvme_peer_extent *extents;
	uint32_t extent_count;
	struct nvmepeer *ctrl;
	struct nvmepeer_ns *ns;
	struct nvmepeer_cpu_peer *peer;
	struct nvmepeer_qp *qp;
	struct nvmepeer_mapping *parts[NVME_PEER_EXPORT_CONTROL + 1];
	struct nvmepeer_hostmem *memory;
	struct nvmepeer_serve *serve;
	pthread_t server;
	void *state;
};

/* The disk of a file is "nvmep0n1" or a partition of it. */
static void open_controller(struct reader *reader, const struct file *file, char node[32])
{
	unsigned int controller, number;
	struct nvmepeer_file_info info;

	if (nvmepeer_file_check(file->fd, &info, sizeof(info)))
		refuse_as_explained();
	if (sscanf(info.disk, "nvmep%un%u", &controller, &number) != 2)
		refuse("%s is on no disk of nvme-peer: bind a controller (nvme-peer bind)", file->path);
	if (nvmepeer_open(info.controller, &reader->ctrl))
		refuse_as_explained();
	snprintf(node, 32, "ngp%un%u", controller, number);
}

static void pin_extents(struct reader *reader, const struct file *file)
{
	struct nvme_peer_extents pin = { .fd = open(file->path, O_RDWR | O_CLOEXEC) };
	size_t bytes;

	if (pin.fd < 0)
		refuse_errno(file->path);
	if (nvmepeer_file_extents(reader->ctrl, &pin, sizeof(pin)))
		refuse_as_explained();
	close(pin.fd);
	bytes = pin.count * sizeof(*reader->extents);
	reader->extents = malloc(bytes);
	if (!reader->extents || pread(pin.pin_fd, reader->extents, bytes, 0) != (ssize_t)bytes)
		refuse_errno("extents");
	reader->pin = pin.pin_fd;
	reader->extent_count = pin.count;
	reader->reach = pin.blocks * pin.block_size;
}

static void direct_open(struct reader *reader, const struct file *file)
{
	struct nvme_peer_info info;
	char node[32];

	open_controller(reader, file, node);
	pin_extents(reader, file);
	if (nvmepeer_info(reader->ctrl, &info, sizeof(info)) || nvmepeer_ns_open(node, &reader->ns) ||
	    nvmepeer_cpu_peer_open(reader->ctrl, nvmepeer_ns_info(reader->ns), ENTRIES, reader->length,
				   &reader->peer))
		refuse_as_explained();
	reader->queue = *nvmepeer_cpu_peer_queue(reader->peer);
	reader->data = *nvmepeer_cpu_peer_data(reader->peer);
	reader->bytes = nvmepeer_cpu_peer_address(reader->peer);
	reader->block = nvmepeer_ns_info(reader->ns)->block_size;
	reader->most = info.max_transfer;
}

static void make_state(struct reader *reader, struct nvmepeer_geometry *geometry)
{
	size_t bytes = (nvmepeer_state_bytes(geometry) + 127) / 128 * 128;

	reader->state = aligned_alloc(128, bytes);
	if (!reader->state)
		refuse_errno("memory");
	memset(reader->state, 0, bytes);
	geometry->state = (uintptr_t)reader->state;
}

static uint64_t part_of(struct reader *reader, enum nvme_peer_export what)
{
	if (nvmepeer_qp_map(reader->qp, what, &reader->parts[what]))
		refuse_as_explained();
	return (uintptr_t)nvmepeer_mapping_address(reader->parts[what]);
}

/* The window is the namespace, and a command's data is one range of a buffer. */
static void mediated_queue(struct reader *reader, const struct nvme_peer_window_add *window)
{
	struct nvmepeer_geometry geometry = { .sq_entries = ENTRIES, .flags = NVMEPEER_ONE_RANGE };
	struct nvmepeer_ns_info ns = {
		.size = sizeof(ns), .nsid = window->id, .block_size = window->block_size,
		.blocks = window->blocks,
	};
	struct nvme_peer_qp_limits limits;
	struct nvme_peer_qp_info qp;
	struct nvme_peer_info info;

	if (nvmepeer_info(reader->ctrl, &info, sizeof(info)) ||
	    nvmepeer_qp_info(reader->qp, &qp, sizeof(qp)) ||
	    nvmepeer_qp_limits(reader->qp, &limits, sizeof(limits)))
		refuse_as_explained();
	info.max_transfer = limits.max_transfer;
	info.sgls = 1;
	make_state(reader, &geometry);
	geometry.sq = part_of(reader, NVME_PEER_EXPORT_SQ);
	geometry.cq = part_of(reader, NVME_PEER_EXPORT_CQ);
	geometry.status = part_of(reader, NVME_PEER_EXPORT_STATUS);
	geometry.control = part_of(reader, NVME_PEER_EXPORT_CONTROL);
	part_of(reader, NVME_PEER_EXPORT_DOORBELL);
	if (nvmepeer_geometry_build(&info, &qp, &ns, NVMEPEER_VIEW_CPU | NVMEPEER_VIEW_DATA_IN_HOST,
				    (uintptr_t)nvmepeer_mapping_base(reader->parts[NVME_PEER_EXPORT_DOORBELL]),
				    &geometry, sizeof(geometry)))
		refuse_as_explained();
	nvmepeer_queue_init(&reader->queue, &geometry);
	reader->block = window->block_size;
	reader->reach = window->blocks * window->block_size;
	reader->most = limits.max_transfer;
}

static void mediated_open(struct reader *reader, const struct file *file)
{
	struct nvme_peer_qp_create create = { .mode = NVME_PEER_MODE_MEDIATED, .sq_entries = ENTRIES };
	struct nvme_peer_window_add window = { 0 };
	struct nvme_peer_buf_add buffer = { 0 };
	char node[32];

	open_controller(reader, file, node);
	if (nvmepeer_qp_create(reader->ctrl, &create, sizeof(create), &reader->qp) ||
	    nvmepeer_file_open(reader->qp, file->path, &window, sizeof(window)) ||
	    nvmepeer_buf_alloc(reader->ctrl, reader->length, &reader->memory))
		refuse_as_explained();
	buffer.dmabuf_fd = nvmepeer_hostmem_fd(reader->memory);
	if (nvmepeer_buf_add(reader->qp, &buffer, sizeof(buffer)))
		refuse_as_explained();
	reader->bytes = nvmepeer_hostmem_address(reader->memory);
	reader->data.length = reader->length;
	reader->data.dma = NVME_PEER_HANDLE_ADDRESS(buffer.slot, 0);
	mediated_queue(reader, &window);
}

static void *serve(void *argument)
{
	nvmepeer_serve_run(argument);
	return NULL;
}

static void served_open(struct reader *reader, const struct file *file)
{
	struct nvmepeer_serve_options options = { .size = sizeof(options), .entries = ENTRIES };
	struct nvmepeer_geometry geometry = { .sq_entries = ENTRIES };
	struct nvmepeer_ns_info ns;

	reader->bytes = mmap(NULL, reader->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reader->bytes == MAP_FAILED)
		refuse_errno("memory");
	make_state(reader, &geometry);
	if (nvmepeer_serve_create(&options, &reader->serve) ||
	    nvmepeer_serve_add_fd(reader->serve, file->fd, 512, &ns, sizeof(ns)) ||
	    nvmepeer_serve_add_buffer(reader->serve, reader->bytes, reader->length, &reader->data) ||
	    nvmepeer_serve_geometry(reader->serve, &ns, NVMEPEER_VIEW_CPU, &geometry, sizeof(geometry)))
		refuse_as_explained();
	nvmepeer_queue_init(&reader->queue, &geometry);
	reader->block = ns.block_size;
	reader->reach = file->length / ns.block_size * ns.block_size;
	reader->most = 1 << 20;
	if (pthread_create(&reader->server, NULL, serve, reader->serve))
		refuse("no thread");
}

static void reader_close(struct reader *reader)
{
	for (size_t i = 0; i < sizeof(reader->parts) / sizeof(*reader->parts); i++)
		nvmepeer_unmap(reader->parts[i]);
	nvmepeer_qp_destroy(reader->qp);
	nvmepeer_hostmem_free(reader->memory);
	nvmepeer_cpu_peer_close(reader->peer);
	nvmepeer_ns_close(reader->ns);
	nvmepeer_close(reader->ctrl);
	if (reader->pin)
		close(reader->pin);
	free(reader->extents);
	if (reader->serve) {
		nvmepeer_serve_stop(reader->serve);
		pthread_join(reader->server, NULL);
		nvmepeer_serve_destroy(reader->serve);
		munmap(reader->bytes, reader->length);
	}
	free(reader->state);
}

/* ---- Which blocks --------------------------------------------------------------- */

/**
 * struct plan - the commands
 * @reader: with the sizes of commands
 * @pieces: the commands
 * @count: how many
 */
struct plan {
	const struct reader *reader;
	struct piece *pieces;
	size_t count;
};

/* @length bytes at @at in the file are at @byte of the namespace, or of the window. */
static void add_pieces(struct plan *plan, uint64_t at, uint64_t byte, uint64_t length)
{
	uint32_t block = plan->reader->block;
	uint64_t most = plan->reader->most / block * block;

	while (length) {
		uint64_t bytes = smaller(length, most);

		plan->pieces = realloc(plan->pieces, (plan->count + 1) * sizeof(*plan->pieces));
		if (!plan->pieces)
			refuse_errno("memory");
		plan->pieces[plan->count++] = (struct piece){
			.offset = at, .lba = byte / block, .blocks = (uint32_t)(bytes / block),
		};
		at += bytes;
		byte += bytes;
		length -= bytes;
	}
}

/* Bytes of the file that are in these extents. */
static void add_extents(struct plan *plan, uint64_t begin, uint64_t end)
{
	const struct nvme_peer_extent *extent = plan->reader->extents;
	uint64_t block = plan->reader->block, at = begin, next;

	for (; at < end; extent++) {
		next = smaller((extent->first + extent->blocks) * block, end);
		if (at < next) {
			add_pieces(plan, at, at + (extent->lba - extent->first) * block, next - at);
			at = next;
		}
	}
}

/* The whole blocks of a tensor, at the offsets that they have in the file. */
static void plan_tensor(struct plan *plan, const struct tensor *tensor)
{
	uint64_t block = plan->reader->block;
	uint64_t begin = tensor->begin / block * block;
	uint64_t end = smaller((tensor->end + block - 1) / block * block, plan->reader->reach);

	if (begin < end && plan->reader->pin)
		add_extents(plan, begin, end);
	else if (begin < end)
		add_pieces(plan, begin, begin, end - begin);
}

static void compare(const struct reader *reader, const struct file *file, const struct tensor *tensor)
{
	size_t length = tensor->end - tensor->begin;
	void *expected = malloc(length + 1);

	if (!expected)
		refuse_errno("memory");
	read_all(file->fd, expected, length, tensor->begin);
	if (memcmp(reader->bytes + tensor->begin, expected, length))
		refuse("%.*s differs from the result of read()", tensor->length, tensor->name);
	free(expected);
}

/* A change of the file that had begun before may have moved its blocks. */
static void check_pin(const struct reader *reader)
{
	struct nvme_peer_extent extent;

	if (reader->pin && pread(reader->pin, &extent, sizeof(extent), 0) != sizeof(extent))
		refuse_errno("the file has changed");
}

int main(int argc, char **argv)
{
	struct reader reader = { 0 };
	struct plan plan = { .reader = &reader };
	struct tensors tensors;
	struct file file = { 0 };
	int status;

	if (argc != 3 || (strcmp(argv[1], "direct") && strcmp(argv[1], "mediated") && strcmp(argv[1], "served"))) {
		fputs("usage: read_tensors direct|mediated|served FILE\n"
		      "Unless it is served, FILE must be on ext4 or XFS on a disk of nvme-peer: bind a controller\n",
		      stderr);
		return 2;
	}
	file_open(&file, argv[2]);
	find_tensors(&file, &tensors);
	reader.length = (file.length + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
	if (argv[1][0] == 'd')
		direct_open(&reader, &file);
	else if (argv[1][0] == 'm')
		mediated_open(&reader, &file);
	else
		served_open(&reader, &file);
	if (reader.reach < file.length)
		read_all(file.fd, reader.bytes + reader.reach, file.length - reader.reach, reader.reach);
	for (size_t i = 0; i < tensors.count; i++)
		plan_tensor(&plan, &tensors.list[i]);
	status = read_pieces(&reader.queue, &reader.data, plan.pieces, plan.count);
	if (status)
		refuse("a read: %s", status > 0 ? nvmepeer_status_text(status) : "see nvmepeer_explain_result()");
	check_pin(&reader);
	for (size_t i = 0; i < tensors.count; i++)
		compare(&reader, &file, &tensors.list[i]);
	printf("%zu tensors by %zu commands, the same as read()\n", tensors.count, plan.count);
	reader_close(&reader);
	free(plan.pieces);
	free(tensors.list);
	free(tensors.header);
	close(file.fd);
	return 0;
}
