/* SPDX-License-Identifier: GPL-2.0-only */
/* data_host.h: interface of the software controllers of data.cu. */
#ifndef SELFTESTS_CUDA_DATA_HOST_H
#define SELFTESTS_CUDA_DATA_HOST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct data_controller;

/* Memory of a controller that the GPU must be able to access. */
struct data_rings {
	void *sq;
	void *cq;
	void *doorbells;
	void *disk;
};

struct data_controller *data_controller_new(struct data_rings *rings, uint32_t entries,
					    uint64_t blocks);
void data_controller_start(struct data_controller *data);
/* From now on fetch commands and complete none, until a stop and a restart. */
void data_controller_mute(struct data_controller *data);
/* A restart resets everything but the disk. */
void data_controller_again(struct data_controller *data);
/* Returns the number of errors that the controller has detected. */
uint64_t data_controller_stop(struct data_controller *data, uint64_t *commands);

#ifdef __cplusplus
}
#endif

#endif /* SELFTESTS_CUDA_DATA_HOST_H */
