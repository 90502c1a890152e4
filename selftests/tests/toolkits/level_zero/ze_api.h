/* SPDX-License-Identifier: GPL-2.0-only */
/* level_zero/ze_api.h: as ../hip/hip_runtime.h, of Level Zero. */
#ifndef SELFTESTS_TOOLKITS_ZE_API_H
#define SELFTESTS_TOOLKITS_ZE_API_H

#include <stddef.h>
#include <stdint.h>

typedef enum { ZE_RESULT_SUCCESS = 0 } ze_result_t;
typedef enum {
	ZE_STRUCTURE_TYPE_CONTEXT_DESC = 0xd,
	ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC = 0x15,
	ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES = 0x17,
	ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC = 0x18,
	ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD = 0x1a,
} ze_structure_type_t;
enum { ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF = 1 << 1 };

typedef struct ze_driver *ze_driver_handle_t;
typedef struct ze_device *ze_device_handle_t;
typedef struct ze_context *ze_context_handle_t;

typedef struct {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
} ze_context_desc_t, ze_external_memory_export_desc_t;

typedef struct {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
	uint32_t ordinal;
} ze_device_mem_alloc_desc_t;

typedef struct {
	ze_structure_type_t stype;
	const void *pNext;
	uint32_t flags;
	int fd;
} ze_external_memory_export_fd_t;

typedef struct {
	ze_structure_type_t stype;
	void *pNext;
	uint32_t type;
	uint64_t id;
	uint64_t pageSize;
} ze_memory_allocation_properties_t;

ze_result_t zeInit(uint32_t flags);
ze_result_t zeDriverGet(uint32_t *pCount, ze_driver_handle_t *phDrivers);
ze_result_t zeDeviceGet(ze_driver_handle_t hDriver, uint32_t *pCount, ze_device_handle_t *phDevices);
ze_result_t zeContextCreate(ze_driver_handle_t hDriver, const ze_context_desc_t *desc,
			    ze_context_handle_t *phContext);
ze_result_t zeMemAllocDevice(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc,
			     size_t size, size_t alignment, ze_device_handle_t hDevice, void **pptr);
ze_result_t zeMemGetAllocProperties(ze_context_handle_t hContext, const void *ptr,
				    ze_memory_allocation_properties_t *pMemAllocProperties,
				    ze_device_handle_t *phDevice);

#endif /* SELFTESTS_TOOLKITS_ZE_API_H */
