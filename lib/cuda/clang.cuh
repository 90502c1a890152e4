/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * clang.cuh: the CUDA keywords and intrinsics that the device library uses, for
 * clang without a CUDA toolkit: a distribution's compiler turns device.cu into
 * LLVM bitcode.  Uses assembly where the compiler's builtins have names that
 * not every LLVM which reads the bitcode has.
 */
#ifndef NVMEPEER_LIB_CUDA_CLANG_CUH
#define NVMEPEER_LIB_CUDA_CLANG_CUH

#define __CUDACC__ 1
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __forceinline__ inline __attribute__((always_inline))
/*
 * Inline everything: current code generators fail on structures passed by
 * value.
 */
#define __noinline__ __attribute__((always_inline))
#define CLANG_FN static __device__ __forceinline__

struct clang_index {
	int x, y, z;
};

#define threadIdx (clang_index{ __nvvm_read_ptx_sreg_tid_x(), __nvvm_read_ptx_sreg_tid_y(), \
				__nvvm_read_ptx_sreg_tid_z() })
#define blockDim (clang_index{ __nvvm_read_ptx_sreg_ntid_x(), __nvvm_read_ptx_sreg_ntid_y(), \
			       __nvvm_read_ptx_sreg_ntid_z() })

CLANG_FN unsigned int __activemask(void)
{
	unsigned int mask;

	asm volatile("activemask.b32 %0;" : "=r"(mask));
	return mask;
}

CLANG_FN unsigned int __match_any_sync(unsigned int mask, unsigned long long value)
{
	unsigned int same;

	asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(same) : "l"(value), "r"(mask));
	return same;
}

CLANG_FN unsigned int __ballot_sync(unsigned int mask, int predicate)
{
	return __nvvm_vote_ballot_sync(mask, predicate != 0);
}

CLANG_FN unsigned int __shfl_sync(unsigned int mask, unsigned int value, int lane)
{
	return (unsigned int)__nvvm_shfl_sync_idx_i32(mask, (int)value, lane, 31);
}

CLANG_FN unsigned long long __shfl_sync(unsigned int mask, unsigned long long value, int lane)
{
	unsigned long long high = __shfl_sync(mask, (unsigned int)(value >> 32), lane);

	return high << 32 | __shfl_sync(mask, (unsigned int)value, lane);
}

CLANG_FN unsigned int __reduce_or_sync(unsigned int mask, unsigned int value)
{
	unsigned int all;

	asm volatile("redux.sync.or.b32 %0, %1, %2;" : "=r"(all) : "r"(value), "r"(mask));
	return all;
}

CLANG_FN void __syncwarp(unsigned int mask)
{
	__nvvm_bar_warp_sync(mask);
}

CLANG_FN void __nanosleep(unsigned int ns)
{
	asm volatile("nanosleep.u32 %0;" : : "r"(ns));
}

CLANG_FN int __popc(unsigned int bits)
{
	return __builtin_popcount(bits);
}

CLANG_FN int __ffs(int bits)
{
	return __builtin_ffs(bits);
}

CLANG_FN unsigned long long atomicCAS(unsigned long long *p, unsigned long long old,
				      unsigned long long value)
{
	return __sync_val_compare_and_swap(p, old, value);
}

CLANG_FN unsigned int atomicMax(unsigned int *p, unsigned int value)
{
	return __nvvm_atom_max_gen_ui(p, value);
}

#endif /* NVMEPEER_LIB_CUDA_CLANG_CUH */
