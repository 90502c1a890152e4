/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trace events: submission and completion of the CPU's commands, state changes
 * of controllers and of peer queue pairs, function resets.  Commands of peers
 * do not pass through the CPU, so they cannot be traced.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvme_peer

#if !defined(_NVMEP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _NVMEP_TRACE_H

#include <linux/tracepoint.h>

#include "nvme.h"

TRACE_EVENT(nvmep_submit,
	    TP_PROTO(int instance, u16 qid, const struct nvme_command *sqe),
	    TP_ARGS(instance, qid, sqe),
	    TP_STRUCT__entry(__field(int, instance)
			     __field(u16, qid)
			     __field(u16, cid)
			     __field(u8, opcode)
			     __field(u32, nsid)
			     __field(u64, cdw10)
			     __field(u32, cdw12)),
	    TP_fast_assign(__entry->instance = instance;
			   __entry->qid = qid;
			   __entry->cid = nvmep_cid(sqe->common.command_id);
			   __entry->opcode = sqe->common.opcode;
			   __entry->nsid = le32_to_cpu(sqe->common.nsid);
			   __entry->cdw10 =
				(u64)le32_to_cpu(sqe->common.cdw11) << 32 |
				le32_to_cpu(sqe->common.cdw10);
			   __entry->cdw12 = le32_to_cpu(sqe->common.cdw12);),
	    TP_printk("nvmep%d qid=%u cid=%#x opcode=%#x nsid=%u cdw10=%#llx cdw12=%#x",
		      __entry->instance, __entry->qid, __entry->cid,
		      __entry->opcode, __entry->nsid, __entry->cdw10,
		      __entry->cdw12)
);

TRACE_EVENT(nvmep_complete,
	    TP_PROTO(int instance, u16 qid, const struct nvme_completion *cqe),
	    TP_ARGS(instance, qid, cqe),
	    TP_STRUCT__entry(__field(int, instance)
			     __field(u16, qid)
			     __field(u16, cid)
			     __field(u16, status)
			     __field(u64, result)),
	    TP_fast_assign(__entry->instance = instance;
			   __entry->qid = qid;
			   __entry->cid = nvmep_cid(cqe->command_id);
			   __entry->status = le16_to_cpu(cqe->status) >> 1;
			   __entry->result = le64_to_cpu(cqe->result.u64);),
	    TP_printk("nvmep%d qid=%u cid=%#x status=%#x result=%#llx",
		      __entry->instance, __entry->qid, __entry->cid,
		      __entry->status, __entry->result)
);

TRACE_EVENT(nvmep_qp_state,
	    TP_PROTO(int instance, u16 qid, u32 state, u32 reason),
	    TP_ARGS(instance, qid, state, reason),
	    TP_STRUCT__entry(__field(int, instance)
			     __field(u16, qid)
			     __field(u32, state)
			     __field(u32, reason)),
	    TP_fast_assign(__entry->instance = instance;
			   __entry->qid = qid;
			   __entry->state = state;
			   __entry->reason = reason;),
	    TP_printk("nvmep%d qid=%u state=%u reason=%u",
		      __entry->instance, __entry->qid, __entry->state,
		      __entry->reason)
);

TRACE_EVENT(nvmep_ctrl_state,
	    TP_PROTO(int instance, u32 state, u32 generation),
	    TP_ARGS(instance, state, generation),
	    TP_STRUCT__entry(__field(int, instance)
			     __field(u32, state)
			     __field(u32, generation)),
	    TP_fast_assign(__entry->instance = instance;
			   __entry->state = state;
			   __entry->generation = generation;),
	    TP_printk("nvmep%d state=%u generation=%u", __entry->instance,
		      __entry->state, __entry->generation)
);

TRACE_EVENT(nvmep_function_reset,
	    TP_PROTO(int instance, u32 generation, int ret),
	    TP_ARGS(instance, generation, ret),
	    TP_STRUCT__entry(__field(int, instance)
			     __field(u32, generation)
			     __field(int, ret)),
	    TP_fast_assign(__entry->instance = instance;
			   __entry->generation = generation;
			   __entry->ret = ret;),
	    TP_printk("nvmep%d generation=%u ret=%d", __entry->instance,
		      __entry->generation, __entry->ret)
);

#endif /* _NVMEP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
