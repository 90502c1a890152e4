// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs on an NVIDIA GPU, see offload.h.
 *
 * HBM, the guest's memory and the controller's doorbells are files of the host. Each is mapped
 * and registered once as a whole, and jobs get addresses in these mappings. As such a mapping
 * outlives an unmap by the guest, each job has a list of places, the memory that it uses. A place
 * ends if the driver changes the page table and starts a new view (memory.c), or if the client
 * unmaps bus addresses (offload_unmapped()). Both wait until no kernel uses the place: a running
 * kernel sees its queue pair as lost and ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <badctrl.h>

#include "cuda.h"
#include "kernel.h"
#include "lane.h"
#include "memory.h"
#include "offload.h"

#define PLACES		(9U * SOFTGPU_MOST_PAIRS)
#define WINDOWS		4U
/* Maximum threads of a job. */
#define MOST_THREADS	65536U
/* Less than the timeout of the client, 5 s. */
#define UNMAP_SECONDS	4
#define LOOK_NS		20000
/* Polls of a running job between two copies of its result. */
#define LOOKS_A_COPY	500

/* GPU addresses that a job uses, and the memory behind them. */
struct place {
	uint64_t address;
	uint64_t length;
	bool write;
	uint64_t entry;		/* page table entry of its first page */
	char *memory;		/* its mapping for CPU and GPU */
};

/**
 * struct task - the job of a slot on CUDA
 * @places: used memory outside HBM
 * @place_count: entries of @places, 0 when the kernel has ended
 * @revoked: a place was unmapped
 * @running: the kernel may use the places
 * @state: constant: struct kernel_state in GPU memory
 * @pairs: constant: struct kernel_job of each queue pair, in GPU memory
 * @jobs: source of @pairs
 * @staged: copy of @state
 * @control: flags that the kernel reads
 */
struct task {
	struct place places[PLACES];
	unsigned int place_count;
	bool revoked;
	bool running;
	uint64_t state;
	uint64_t pairs;
	struct kernel_job jobs[SOFTGPU_MOST_PAIRS];
	struct kernel_state staged;
	struct kernel_control control;
};

/* A file that is mapped and registered. */
struct window {
	uint64_t device;
	uint64_t inode;
	char *memory;
	uint64_t bytes;
};

/**
 * struct offload - CUDA as softgpu's engine
 * @cuda: constant
 * @mirror: constant: GPU memory of the size of HBM, for the state of queue pairs and the data in
 *	the window, at the same offset as in HBM
 * @lock: protects @windows and @tasks, except for fields that only the slot's engine changes
 * @ended: signals that a task has no places any more
 * @tasks: one for each slot
 * @windows: mappings of the guest's memory
 * @window_count: entries of @windows
 * @doorbells: the controller's doorbell page, NULL before its first use
 * @share: constant: that of the GPU
 * @mover: constant: shared with the controller, NULL without @share
 * @disk: the controller's disk, NULL before a job has data in the window
 * @moving: the kernel that moves data is running
 */
struct offload {
	struct cuda *cuda;
	uint64_t mirror;
	int share;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct task tasks[SOFTGPU_MAX_SLOTS];
	struct window windows[WINDOWS];
	unsigned int window_count;
	char *doorbells;
	struct mover_shared *mover;
	char *disk;
	bool moving;
};

/* --- Memory for CUDA --------------------------------------------------------- */

/* Called with @lock held. */
static int start_mover(struct offload *offload)
{
	struct kernel_job job = {
		.threads = MOVER_RINGS * MOVER_THREADS,
		.mover = {
			.shared = offload->mover,
			.disk = (uintptr_t)offload->disk,
			.memory = offload->mirror,
		},
	};
	int ret = 0;

	if (!offload->disk || offload->moving)
		return 0;
	__atomic_store_n(&offload->mover->stop, 0, __ATOMIC_RELEASE);
	ret = cuda_launch_mover(offload->cuda, &job);
	offload->moving = !ret;
	return ret;
}

/* A registration may wait for running kernels. Called with @lock held. */
static void stop_mover(struct offload *offload)
{
	if (!offload->moving)
		return;
	__atomic_store_n(&offload->mover->stop, 1, __ATOMIC_RELEASE);
	cuda_wait_for_mover(offload->cuda);
	offload->moving = false;
}

/* Called with @lock held, or before any job. */
static char *map_registered(struct offload *offload, int fd, uint64_t offset, uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	int ret;

	if (memory == MAP_FAILED)
		return NULL;
	stop_mover(offload);
	ret = cuda_register(offload->cuda, memory, bytes) ?: start_mover(offload);
	if (!ret)
		return memory;
	munmap(memory, bytes);
	return NULL;
}

/* Have the controller's data moved to and from the window; called with @lock held. */
static int use_window(struct offload *offload)
{
	uint64_t bytes = __atomic_load_n(&offload->mover->disk_bytes, __ATOMIC_ACQUIRE);
	int fd;

	if (offload->disk)
		return 0;
	fd = bytes ? openat(offload->share, BADCTRL_SHARED_DISK, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return -ENOENT;
	offload->disk = map_registered(offload, fd, 0, bytes);
	close(fd);
	return offload->disk ? start_mover(offload) : -EIO;
}

static int make_mover(struct offload *offload, uint64_t window)
{
	uint64_t bytes = (sizeof(*offload->mover) + SOFTGPU_PAGE - 1) / SOFTGPU_PAGE * SOFTGPU_PAGE;
	int fd;

	if (offload->share < 0)
		return 0;
	fd = openat(offload->share, BADCTRL_SHARED_MOVER, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
		    0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return -errno;
	offload->mover = (void *)map_registered(offload, fd, 0, bytes);
	close(fd);
	if (!offload->mover)
		return -EIO;
	offload->mover->window = window;
	return 0;
}

/* Called with @lock held. */
static struct window *find_window(struct offload *offload, const struct vfu_place *place)
{
	struct window *window;
	struct stat status;
	unsigned int i;

	for (i = 0; i < offload->window_count; i++)
		if (offload->windows[i].device == place->device &&
		    offload->windows[i].inode == place->inode)
			return &offload->windows[i];
	if (i == WINDOWS || fstat(place->fd, &status))
		return NULL;
	window = &offload->windows[i];
	window->device = place->device;
	window->inode = place->inode;
	window->bytes = (uint64_t)status.st_size;
	window->memory = map_registered(offload, place->fd, 0, window->bytes);
	if (!window->memory)
		return NULL;
	offload->window_count++;
	return window;
}

/* Memory of the guest at a bus address, or NULL; called with @lock held. */
static char *guest_memory(struct gpu *gpu, uint64_t bus, uint64_t length, bool write)
{
	const struct window *window;
	struct vfu_place place;

	if (vfu_locate(gpu->vfu, bus, length, write, &place))
		return NULL;
	window = find_window(gpu->offload, &place);
	if (!window || place.offset > window->bytes || length > window->bytes - place.offset)
		return NULL;
	return window->memory + place.offset;
}

/* Called with @lock held. */
static char *map_doorbells(struct offload *offload)
{
	int fd;

	if (offload->doorbells || offload->share < 0)
		return offload->doorbells;
	fd = openat(offload->share, BADCTRL_SHARED_BAR, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	offload->doorbells = map_registered(offload, fd, BADCTRL_DOORBELLS, SOFTGPU_PAGE);
	close(fd);
	return offload->doorbells;
}

/*
 * A bus page is the doorbell page that the controller shares if both have the same token. Called
 * without @lock, as this sends a request to the client, whose thread may wait for @lock.
 */
static bool is_doorbells(struct gpu *gpu, uint64_t bus)
{
	uint64_t token;

	memcpy(&token, gpu->offload->doorbells + BADCTRL_TOKEN % SOFTGPU_PAGE, sizeof(token));
	return memory_has_token(gpu, bus, token);
}

/* --- Places ------------------------------------------------------------------- */

static uint64_t place_bus(const struct place *place)
{
	return (place->entry & SOFTGPU_PTE_ADDRESS) + place->address % SOFTGPU_PAGE;
}

static bool place_holds(const struct gpu *gpu, const struct place *place)
{
	return memory_holds(gpu, place->address, place->length, place->write, place->entry);
}

/* Called with @lock held. */
static char *place_memory(struct gpu *gpu, const struct place *place)
{
	uint64_t bus = place_bus(place);
	char *memory;

	if (place->entry & SOFTGPU_PTE_HBM)
		return gpu_hbm(gpu, GPU_HBM_VA + bus, place->length);
	memory = guest_memory(gpu, bus, place->length, place->write);
	if (memory)
		return memory;
	memory = map_doorbells(gpu->offload);
	return memory && place->write ? memory + bus % SOFTGPU_PAGE : NULL;
}

/* Add a place, which an unmap finds from now on. */
static struct place *place_add(struct slot *slot, const struct place *found)
{
	struct offload *offload = slot->gpu->offload;
	struct task *task = &offload->tasks[slot->number];
	struct place *place = NULL;

	pthread_mutex_lock(&offload->lock);
	if (task->place_count < PLACES) {
		place = &task->places[task->place_count];
		*place = *found;
		place->memory = place_memory(slot->gpu, place);
		task->place_count += !!place->memory;
	}
	pthread_mutex_unlock(&offload->lock);
	return place && place->memory ? place : NULL;
}

static bool is_shared_page(const struct offload *offload, const struct place *place)
{
	return offload->doorbells && place->memory >= offload->doorbells &&
	       place->memory < offload->doorbells + SOFTGPU_PAGE;
}

/* Translate a GPU address in the parameters of a job to an address for CUDA; 0 stays 0. */
static bool resolve(struct slot *slot, uint64_t *address, uint64_t length, bool write)
{
	struct gpu *gpu = slot->gpu;
	struct place found = { .address = *address, .length = length, .write = write };
	const struct place *place;

	if (!*address || gpu_hbm(gpu, *address, length))
		return true;
	found.entry = memory_entry(gpu, *address, write);
	place = found.entry && place_holds(gpu, &found) ? place_add(slot, &found) : NULL;
	if (place && (!is_shared_page(gpu->offload, place) ||
		      is_doorbells(gpu, place_bus(place)))) {
		*address = (uintptr_t)place->memory;
		return true;
	}
	lane_note(&slot->lanes[0], 0, *address, 0);
	atomic_store(&gpu->fault_address, *address);
	atomic_fetch_add(&gpu->faults, 1);
	return false;
}

/* Data in HBM, in host memory, or in the window: at the same offset in the GPU's memory. */
static bool resolve_data(struct slot *slot, struct softgpu_io *io)
{
	struct offload *offload = slot->gpu->offload;
	int ret;

	if (!gpu_in_window(slot->gpu, io->data_address, io->data.length))
		return resolve(slot, &io->data_address, io->data.length, true);
	pthread_mutex_lock(&offload->lock);
	ret = use_window(offload);
	pthread_mutex_unlock(&offload->lock);
	io->data_address += offload->mirror - GPU_HBM_VA;
	return !ret;
}

static bool resolve_queue(struct slot *slot, struct nvmepeer_geometry *geometry)
{
	struct gpu *gpu = slot->gpu;

	if (!resolve(slot, &geometry->sq, 64ULL * geometry->sq_entries, true) ||
	    !resolve(slot, &geometry->cq, 16ULL * geometry->cq_entries, false) ||
	    !resolve(slot, &geometry->sq_doorbell, 4, true) ||
	    !resolve(slot, &geometry->cq_doorbell, 4, true) ||
	    !resolve(slot, &geometry->status, 64, false) ||
	    !resolve(slot, &geometry->control, 8, true) ||
	    !resolve(slot, &geometry->readback, 8, false) ||
	    !resolve(slot, &geometry->list_area, geometry->list_memory.length, true))
		return false;
	geometry->state += gpu->offload->mirror - GPU_HBM_VA;
	return true;
}

/* --- A job -------------------------------------------------------------------- */

/* From here on an unmap of the places waits for the kernel. */
static bool may_run(struct slot *slot)
{
	struct offload *offload = slot->gpu->offload;
	struct task *task = &offload->tasks[slot->number];
	bool may;

	pthread_mutex_lock(&offload->lock);
	may = !task->revoked;
	task->running = may;
	pthread_mutex_unlock(&offload->lock);
	return may;
}

/* Copy the descriptions of several queue pairs to GPU memory. */
static int give_pairs(struct slot *slot, struct kernel_job *job, uint32_t pairs)
{
	struct offload *offload = slot->gpu->offload;
	struct task *task = &offload->tasks[slot->number];

	if (pairs == 1)
		return 0;
	job->threads = slot->threads;
	job->pairs = (const struct kernel_job *)(uintptr_t)task->pairs;
	return cuda_upload(offload->cuda, slot->number, task->pairs, task->jobs,
			   pairs * sizeof(task->jobs[0]));
}

static bool on_list(const struct slot *slot)
{
	return slot->program >= SOFTGPU_LIST && slot->program <= SOFTGPU_LIST_CHECK;
}

static int begin(struct slot *slot, uint32_t pairs)
{
	struct offload *offload = slot->gpu->offload;
	struct task *task = &offload->tasks[slot->number];
	struct kernel_job job = task->jobs[0];

	if (!may_run(slot))
		return -ECANCELED;
	job.mover.disk = (uintptr_t)offload->disk;
	task->control = (struct kernel_control){ 0 };
	task->staged = (struct kernel_state){
		.control = &task->control,
		.result = { .where = ~0ULL, .latency_min_ns = ~0ULL },
	};
	return cuda_upload(offload->cuda, slot->number, task->state, &task->staged,
			   sizeof(task->staged)) ?: give_pairs(slot, &job, pairs) ?:
	       (on_list(slot) ? cuda_launch_list : cuda_launch)(offload->cuda, slot->number, &job);
}

/* Copy the counters of the threads to the result of the guest. */
static enum softgpu_status fetch(struct slot *slot)
{
	struct offload *offload = slot->gpu->offload;
	struct task *task = &offload->tasks[slot->number];
	struct softgpu_result *result = &slot->job->result;
	struct kernel_state *state = &task->staged;

	if (cuda_download(offload->cuda, slot->number, state, task->state, sizeof(*state)))
		return SOFTGPU_FAULT;
	if (state->result.latency_min_ns == ~0ULL)
		state->result.latency_min_ns = 0;
	memcpy(&result->error, &state->result.error,
	       sizeof(*result) - offsetof(struct softgpu_result, error));
	return state->status;
}

/* After a change of the page table, revoke the job if one of its places has changed. */
static void look_at_view(struct slot *slot)
{
	struct gpu *gpu = slot->gpu;
	struct task *task = &gpu->offload->tasks[slot->number];
	uint32_t view = atomic_load(&gpu->view);
	unsigned int i;

	if (view == atomic_load(&slot->lanes[0].view))
		return;
	for (i = 0; i < task->place_count; i++) {
		if (place_holds(gpu, &task->places[i]))
			continue;
		pthread_mutex_lock(&gpu->offload->lock);
		task->revoked = true;
		pthread_mutex_unlock(&gpu->offload->lock);
		return;
	}
	atomic_store(&slot->lanes[0].view, view);
}

static bool is_revoked(struct slot *slot)
{
	struct offload *offload = slot->gpu->offload;
	bool revoked;

	pthread_mutex_lock(&offload->lock);
	revoked = offload->tasks[slot->number].revoked;
	pthread_mutex_unlock(&offload->lock);
	return revoked;
}

static void follow(struct slot *slot)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct kernel_control *control = &slot->gpu->offload->tasks[slot->number].control;
	unsigned int looks = 0;

	while (cuda_running(slot->gpu->offload->cuda, slot->number) == 1) {
		look_at_view(slot);
		if (is_revoked(slot) || atomic_load(&slot->abort))
			__atomic_store_n(&control->revoked, 1, __ATOMIC_RELEASE);
		if (atomic_load(&slot->stop))
			__atomic_store_n(&control->stop, 1, __ATOMIC_RELEASE);
		if (++looks % LOOKS_A_COPY == 0)
			fetch(slot);
		nanosleep(&pause, NULL);
	}
}

/* The kernel has ended: remove the places, and wake waiting unmaps. */
static bool drop_places(struct slot *slot)
{
	struct offload *offload = slot->gpu->offload;
	struct task *task = &offload->tasks[slot->number];
	bool revoked;

	pthread_mutex_lock(&offload->lock);
	revoked = task->revoked;
	task->revoked = false;
	task->running = false;
	task->place_count = 0;
	pthread_cond_broadcast(&offload->ended);
	pthread_mutex_unlock(&offload->lock);
	return revoked;
}

/* SOFTGPU_OK, or why the job cannot use this queue pair. */
static enum softgpu_status prepare(struct slot *slot, uint32_t pair, uint32_t pairs,
				   const struct softgpu_io *io)
{
	struct task *task = &slot->gpu->offload->tasks[slot->number];
	struct nvmepeer_geometry geometry = io->queue;
	struct kernel_job *job = &task->jobs[pair];

	*job = (struct kernel_job){
		.parameters.io = *io,
		.state = (struct kernel_state *)(uintptr_t)task->state,
		.program = slot->program,
		.threads = slot->threads / pairs,
	};
	if (!geometry.status)
		return SOFTGPU_INVALID;
	if (!resolve_queue(slot, &geometry) || !resolve_data(slot, &job->parameters.io))
		return SOFTGPU_FAULT;
	return nvmepeer_queue_open(&job->queue, &geometry) ? SOFTGPU_INVALID : SOFTGPU_OK;
}

/* Prepare all queue pairs. */
static enum softgpu_status prepare_all(struct slot *slot, uint32_t pairs)
{
	const struct softgpu_io *io = &slot->parameters.io;
	const struct softgpu_io *more = gpu_hbm(slot->gpu, io->more, (pairs - 1) * sizeof(*io));
	enum softgpu_status status;
	uint32_t i;

	if (pairs > SOFTGPU_MOST_PAIRS || slot->threads % pairs || (pairs > 1 && !more))
		return SOFTGPU_INVALID;
	status = prepare(slot, 0, pairs, io);
	for (i = 1; i < pairs && status == SOFTGPU_OK; i++)
		status = prepare(slot, i, pairs, &more[i - 1]);
	return status;
}

static enum softgpu_status run_kernel(struct slot *slot)
{
	uint32_t pairs = slot->parameters.io.pairs ? slot->parameters.io.pairs : 1;
	enum softgpu_status status = prepare_all(slot, pairs);

	if (status != SOFTGPU_OK)
		return status;
	if (begin(slot, pairs))
		return SOFTGPU_INVALID;
	follow(slot);
	return fetch(slot);
}

bool offload_run(struct slot *slot, enum softgpu_status *status)
{
	if (slot->program < SOFTGPU_LIST || slot->program > SOFTGPU_GATHERED)
		return false;
	memory_view_enter(&slot->lanes[0]);
	*status = run_kernel(slot);
	if (drop_places(slot))
		*status = SOFTGPU_FAULT;
	memory_view_leave(&slot->lanes[0]);
	if (atomic_load(&slot->abort))
		*status = SOFTGPU_ABORTED;
	return true;
}

/* --- Unmaps by the client ------------------------------------------------------- */

/* Revoke a task with such a place; returns whether its kernel still runs. @lock is held. */
static bool in_the_way(struct task *task, uint64_t address, uint64_t size)
{
	const struct place *place;
	unsigned int i;

	for (i = 0; i < task->place_count; i++) {
		place = &task->places[i];
		if (place->entry & SOFTGPU_PTE_HBM ||
		    (place_bus(place) - address >= size &&
		     address - place_bus(place) >= place->length))
			continue;
		task->revoked = true;
		return task->running;
	}
	return false;
}

static bool any_in_the_way(struct offload *offload, uint64_t address, uint64_t size)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < SOFTGPU_MAX_SLOTS; i++)
		any |= in_the_way(&offload->tasks[i], address, size);
	return any;
}

void offload_unmapped(struct gpu *gpu, uint64_t address, uint64_t size)
{
	struct offload *offload = gpu->offload;
	struct timespec until;
	int timeout = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += UNMAP_SECONDS;
	pthread_mutex_lock(&offload->lock);
	while (!timeout && any_in_the_way(offload, address, size))
		timeout = pthread_cond_timedwait(&offload->ended, &offload->lock, &until);
	pthread_mutex_unlock(&offload->lock);
	if (timeout)
		fprintf(stderr, "softgpu: a kernel still uses what was taken away\n");
}

/* --- Start --------------------------------------------------------------------- */

static int make_tasks(struct offload *offload)
{
	const size_t pairs_bytes = sizeof(offload->tasks[0].jobs);
	uint64_t states, pairs;
	unsigned int i;
	int ret = cuda_alloc(offload->cuda, SOFTGPU_MAX_SLOTS * sizeof(struct kernel_state),
			     &states) ?:
		  cuda_alloc(offload->cuda, SOFTGPU_MAX_SLOTS * pairs_bytes, &pairs);

	for (i = 0; i < SOFTGPU_MAX_SLOTS && !ret; i++) {
		offload->tasks[i].state = states + i * sizeof(struct kernel_state);
		offload->tasks[i].pairs = pairs + i * pairs_bytes;
	}
	return ret;
}

int offload_start(struct gpu *gpu, const char *kernel)
{
	/* Separate pages, as CUDA registers them. */
	static _Alignas(SOFTGPU_PAGE) struct offload the_offload = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.ended = PTHREAD_COND_INITIALIZER,
	};
	struct offload *offload = &the_offload;

	offload->share = gpu->share;
	offload->cuda = cuda_open(kernel, SOFTGPU_MAX_SLOTS);
	if (!offload->cuda)
		return -ENODEV;
	gpu->offload = offload;
	gpu->most_threads = MOST_THREADS;
	return make_tasks(offload) ?: cuda_register(offload->cuda, offload, sizeof(*offload)) ?:
	       cuda_alloc(offload->cuda, gpu->hbm_bytes, &offload->mirror) ?:
	       cuda_register(offload->cuda, gpu->hbm, gpu->window) ?:
	       make_mover(offload, gpu->window);
}
