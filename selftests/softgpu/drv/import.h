/* SPDX-License-Identifier: GPL-2.0-only */
/* Import of dma-bufs into GPU address space. */
#ifndef _SOFTGPU_IMPORT_H
#define _SOFTGPU_IMPORT_H

#include "softgpu.h"

int softgpu_import(struct softgpu_file *file, struct softgpu_import *import);
int softgpu_import_info(struct softgpu_file *file,
			struct softgpu_import_info *info);
int softgpu_release(struct softgpu_file *file,
		    const struct softgpu_release *release);

/* Map invalidated imports again; takes hw_lock. */
void softgpu_imports_renew(struct softgpu_file *file);
void softgpu_imports_close(struct softgpu_file *file);

/* Unmap and detach the imports of all files, after the removal of the device. */
void softgpu_imports_shutdown(struct softgpu *gpu);

#endif /* _SOFTGPU_IMPORT_H */
