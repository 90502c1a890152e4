// SPDX-License-Identifier: GPL-2.0-only
/*
 * data_host.c: the host side of data.cu: strict software controllers with a
 * disk in memory, one thread each.
 */
#include <pthread.h>
#include <stdlib.h>

#include "../device/controller.h"
#include "data_host.h"

struct data_controller {
	struct controller controller;
	pthread_t thread;
	bool stop;
};

struct data_controller *data_controller_new(struct data_rings *rings, uint32_t entries,
					    uint64_t blocks)
{
	struct data_controller *data = calloc(1, sizeof(*data));

	if (!data)
		abort();
	controller_init(&data->controller, entries, entries, blocks);
	data->controller.order = CONTROLLER_SHUFFLED;
	rings->sq = data->controller.sq;
	rings->cq = data->controller.cq;
	rings->doorbells = data->controller.doorbells;
	rings->disk = data->controller.disk;
	return data;
}

static void *serve(void *argument)
{
	struct data_controller *data = argument;

	while (!__atomic_load_n(&data->stop, __ATOMIC_RELAXED))
		controller_step(&data->controller);
	return NULL;
}

void data_controller_start(struct data_controller *data)
{
	pthread_create(&data->thread, NULL, serve, data);
}

void data_controller_mute(struct data_controller *data)
{
	__atomic_store_n(&data->controller.mute, true, __ATOMIC_RELAXED);
}

void data_controller_again(struct data_controller *data)
{
	controller_again(&data->controller);
	data->stop = false;
}

uint64_t data_controller_stop(struct data_controller *data, uint64_t *commands)
{
	__atomic_store_n(&data->stop, true, __ATOMIC_RELAXED);
	pthread_join(data->thread, NULL);
	*commands = data->controller.completed;
	if (data->controller.errors)
		fprintf(stderr, "controller: %s\n", data->controller.error);
	return data->controller.errors;
}
