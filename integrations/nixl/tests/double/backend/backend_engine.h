/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A double of NIXL's interface for back ends, plug-in API version 1, as far as the plug-in
 * and its test use it.  Names, order and numbers are those that NIXL publishes (commit
 * 8770b655); the plug-in is compiled with NIXL's own headers instead where they are.
 */
#ifndef NVMEPEER_DOUBLE_BACKEND_ENGINE_H
#define NVMEPEER_DOUBLE_BACKEND_ENGINE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

enum nixl_mem_t { DRAM_SEG, VRAM_SEG, BLK_SEG, OBJ_SEG, FILE_SEG };
enum nixl_xfer_op_t { NIXL_READ, NIXL_WRITE };
enum nixl_status_t {
	NIXL_IN_PROG = 1,
	NIXL_SUCCESS = 0,
	NIXL_ERR_INVALID_PARAM = -2,
	NIXL_ERR_BACKEND = -3,
	NIXL_ERR_NOT_FOUND = -4,
	NIXL_ERR_MISMATCH = -5,
	NIXL_ERR_REPOST_ACTIVE = -7,
	NIXL_ERR_NOT_SUPPORTED = -9,
};

using nixl_backend_t = std::string;
using nixl_blob_t = std::string;
using nixl_mem_list_t = std::vector<nixl_mem_t>;
using nixl_b_params_t = std::unordered_map<std::string, std::string>;
using nixl_query_resp_t = std::optional<nixl_b_params_t>;

class nixlBasicDesc {
public:
	uintptr_t addr;
	size_t len;
	uint64_t devId;
};

class nixlBlobDesc : public nixlBasicDesc {
public:
	nixl_blob_t metaInfo;
};

class nixlBackendMD {
protected:
	bool isPrivateMD;

public:
	explicit nixlBackendMD(bool is_private) : isPrivateMD(is_private) {}
	virtual ~nixlBackendMD() = default;
};

class nixlMetaDesc : public nixlBasicDesc {
public:
	nixlBackendMD *metadataP;
};

class nixlBackendReqH {
public:
	virtual ~nixlBackendReqH() = default;
};

template <class T> class nixlDescList {
	nixl_mem_t type;
	std::vector<T> descs;

public:
	explicit nixlDescList(const nixl_mem_t &kind) : type(kind) {}
	virtual ~nixlDescList() = default;
	nixlDescList(const nixlDescList &) = default;
	nixlDescList &operator=(const nixlDescList &) = default;
	nixl_mem_t getType() const { return type; }
	int descCount() const { return static_cast<int>(descs.size()); }
	const T &operator[](size_t index) const { return descs[index]; }
	virtual void addDesc(const T &one) { descs.push_back(one); }
};

using nixl_meta_dlist_t = nixlDescList<nixlMetaDesc>;
using nixl_reg_dlist_t = nixlDescList<nixlBlobDesc>;

struct nixlBackendOptionalArgs;
using nixl_opt_b_args_t = nixlBackendOptionalArgs;

class nixlBackendInitParams {
public:
	std::string localAgent;
	nixl_backend_t type;
	nixl_b_params_t *customParams = nullptr;
};

class nixlBackendEngine {
protected:
	bool initErr = false;
	const std::string localAgent;

public:
	explicit nixlBackendEngine(const nixlBackendInitParams *params) : localAgent(params->localAgent) {}
	nixlBackendEngine(const nixlBackendEngine &) = delete;
	void operator=(const nixlBackendEngine &) = delete;
	virtual ~nixlBackendEngine() = default;
	bool getInitErr() const noexcept { return initErr; }

	virtual bool supportsRemote() const = 0;
	virtual bool supportsLocal() const = 0;
	virtual bool supportsNotif() const = 0;
	virtual nixl_mem_list_t getSupportedMems() const = 0;
	virtual nixl_status_t registerMem(const nixlBlobDesc &mem, const nixl_mem_t &kind,
					  nixlBackendMD *&out) = 0;
	virtual nixl_status_t deregisterMem(nixlBackendMD *meta) = 0;
	virtual nixl_status_t connect(const std::string &agent) = 0;
	virtual nixl_status_t disconnect(const std::string &agent) = 0;
	virtual nixl_status_t unloadMD(nixlBackendMD *input) = 0;
	virtual nixl_status_t prepXfer(const nixl_xfer_op_t &operation, const nixl_meta_dlist_t &local,
				       const nixl_meta_dlist_t &remote, const std::string &agent,
				       nixlBackendReqH *&handle,
				       const nixl_opt_b_args_t *args = nullptr) const = 0;
	virtual nixl_status_t postXfer(const nixl_xfer_op_t &operation, const nixl_meta_dlist_t &local,
				       const nixl_meta_dlist_t &remote, const std::string &agent,
				       nixlBackendReqH *&handle,
				       const nixl_opt_b_args_t *args = nullptr) const = 0;
	virtual nixl_status_t checkXfer(nixlBackendReqH *handle) const = 0;
	virtual nixl_status_t releaseReqH(nixlBackendReqH *handle) const = 0;
	virtual nixl_status_t loadLocalMD(nixlBackendMD *, nixlBackendMD *&) { return NIXL_ERR_BACKEND; }
	virtual nixl_status_t queryMem(const nixl_reg_dlist_t &, std::vector<nixl_query_resp_t> &) const
	{
		return NIXL_ERR_NOT_SUPPORTED;
	}
};

#endif /* NVMEPEER_DOUBLE_BACKEND_ENGINE_H */
