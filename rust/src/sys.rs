// SPDX-License-Identifier: MIT OR GPL-2.0
//! The C library as it is: <nvmepeer.h>, <nvmepeer_peer.h>, <nvmepeer_serve.h>, <linux/nvme_peer.h>.
// Written by bindgen from those headers (make -C rust bindings), and never by hand.

pub const NVME_PEER_TYPE: u32 = 187;
pub const NVME_PEER_DOMAIN_ISOLATED_MSI: u32 = 1;
pub const NVME_PEER_FEATURE_DIRECT: u32 = 1;
pub const NVME_PEER_FEATURE_BUF_RINGS: u32 = 2;
pub const NVME_PEER_FEATURE_BUF_IO: u32 = 4;
pub const NVME_PEER_FEATURE_BUF_IO_VEC: u32 = 8;
pub const NVME_PEER_FEATURE_RELAY: u32 = 16;
pub const NVME_PEER_FEATURE_MEDIATED: u32 = 32;
pub const NVME_PEER_FEATURE_WINDOW: u32 = 128;
pub const NVME_PEER_FEATURE_BUF_ALLOC: u32 = 256;
pub const NVME_PEER_FEATURE_EXTENTS: u32 = 512;
pub const NVME_PEER_FEATURE_KICK: u32 = 1024;
pub const NVME_PEER_ROUTE_BLOCKERS: u32 = 6;
pub const NVME_PEER_ROUTE_BY_ADDRESS: u32 = 1;
pub const NVME_PEER_BUF_REQUIRE_DEVICE: u32 = 1;
pub const NVME_PEER_QP_ALLOW_SLEEP: u32 = 1;
pub const NVME_PEER_QP_NO_STATIC: u32 = 2;
pub const NVME_PEER_MAX_DEPTH: u32 = 64;
pub const NVME_PEER_MAX_WEIGHT: u32 = 16;
pub const NVME_PEER_MAX_WINDOWS: u32 = 64;
pub const NVME_PEER_MAX_BUFFERS: u32 = 256;
pub const NVME_PEER_MAX_MEDIATED_ENTRIES: u32 = 4096;
pub const NVME_PEER_BUF_ALLOC_MAX: u32 = 1073741824;
pub const NVME_PEER_EXPORT_ALLOW_STATIC: u32 = 1;
pub const NVME_PEER_STATUS_BUFFER_GONE: u32 = 1985;
pub const NVME_PEER_EVENT_LEAST: u32 = 32;
pub const NVME_PEER_STATUS_MAGIC: u32 = 1885696110;
pub const NVME_PEER_STATUS_WINDOWS: u32 = 256;
pub const NVME_PEER_IO_FUA: u32 = 1;
pub const NVME_PEER_IO_RANGES: u32 = 32;
pub const NVMEPEER_VERSION: &[u8; 6] = b"0.9.0\0";
pub const NVMEPEER_VERSION_NUMBER: u32 = 2304;
pub type __u8 = ::core::ffi::c_uchar;
pub type __u16 = ::core::ffi::c_ushort;
pub type __s32 = ::core::ffi::c_int;
pub type __u32 = ::core::ffi::c_uint;
pub type __u64 = ::core::ffi::c_ulonglong;
pub type __le32 = __u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_passthru_cmd {
    pub opcode: __u8,
    pub flags: __u8,
    pub rsvd1: __u16,
    pub nsid: __u32,
    pub cdw2: __u32,
    pub cdw3: __u32,
    pub metadata: __u64,
    pub addr: __u64,
    pub metadata_len: __u32,
    pub data_len: __u32,
    pub cdw10: __u32,
    pub cdw11: __u32,
    pub cdw12: __u32,
    pub cdw13: __u32,
    pub cdw14: __u32,
    pub cdw15: __u32,
    pub timeout_ms: __u32,
    pub result: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_passthru_cmd"][::core::mem::size_of::<nvme_passthru_cmd>() - 72usize];
    [
        "Alignment of nvme_passthru_cmd",
    ][::core::mem::align_of::<nvme_passthru_cmd>() - 8usize];
    [
        "Offset of field: nvme_passthru_cmd::opcode",
    ][::core::mem::offset_of!(nvme_passthru_cmd, opcode) - 0usize];
    [
        "Offset of field: nvme_passthru_cmd::flags",
    ][::core::mem::offset_of!(nvme_passthru_cmd, flags) - 1usize];
    [
        "Offset of field: nvme_passthru_cmd::rsvd1",
    ][::core::mem::offset_of!(nvme_passthru_cmd, rsvd1) - 2usize];
    [
        "Offset of field: nvme_passthru_cmd::nsid",
    ][::core::mem::offset_of!(nvme_passthru_cmd, nsid) - 4usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw2",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw2) - 8usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw3",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw3) - 12usize];
    [
        "Offset of field: nvme_passthru_cmd::metadata",
    ][::core::mem::offset_of!(nvme_passthru_cmd, metadata) - 16usize];
    [
        "Offset of field: nvme_passthru_cmd::addr",
    ][::core::mem::offset_of!(nvme_passthru_cmd, addr) - 24usize];
    [
        "Offset of field: nvme_passthru_cmd::metadata_len",
    ][::core::mem::offset_of!(nvme_passthru_cmd, metadata_len) - 32usize];
    [
        "Offset of field: nvme_passthru_cmd::data_len",
    ][::core::mem::offset_of!(nvme_passthru_cmd, data_len) - 36usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw10",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw10) - 40usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw11",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw11) - 44usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw12",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw12) - 48usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw13",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw13) - 52usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw14",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw14) - 56usize];
    [
        "Offset of field: nvme_passthru_cmd::cdw15",
    ][::core::mem::offset_of!(nvme_passthru_cmd, cdw15) - 60usize];
    [
        "Offset of field: nvme_passthru_cmd::timeout_ms",
    ][::core::mem::offset_of!(nvme_passthru_cmd, timeout_ms) - 64usize];
    [
        "Offset of field: nvme_passthru_cmd::result",
    ][::core::mem::offset_of!(nvme_passthru_cmd, result) - 68usize];
};
pub const NVME_PEER_CMD_INFO: _bindgen_ty_6 = 0;
pub const NVME_PEER_CMD_ROUTE: _bindgen_ty_6 = 1;
pub const NVME_PEER_CMD_BUF_IMPORT: _bindgen_ty_6 = 2;
pub const NVME_PEER_CMD_BUF_RELEASE: _bindgen_ty_6 = 3;
pub const NVME_PEER_CMD_BUF_TABLE: _bindgen_ty_6 = 4;
pub const NVME_PEER_CMD_QP_CREATE: _bindgen_ty_6 = 5;
pub const NVME_PEER_CMD_BUF_ALLOC: _bindgen_ty_6 = 6;
pub const NVME_PEER_CMD_EXTENTS: _bindgen_ty_6 = 7;
pub const NVME_PEER_CMD_QP_EXPORT: _bindgen_ty_6 = 16;
pub const NVME_PEER_CMD_QP_INFO: _bindgen_ty_6 = 17;
pub const NVME_PEER_CMD_QP_REARM: _bindgen_ty_6 = 18;
pub const NVME_PEER_CMD_WINDOW_ADD: _bindgen_ty_6 = 19;
pub const NVME_PEER_CMD_WINDOW_REMOVE: _bindgen_ty_6 = 20;
pub const NVME_PEER_CMD_WINDOW_INFO: _bindgen_ty_6 = 21;
pub const NVME_PEER_CMD_BUF_ADD: _bindgen_ty_6 = 22;
pub const NVME_PEER_CMD_BUF_REMOVE: _bindgen_ty_6 = 23;
pub const NVME_PEER_CMD_QP_KICK: _bindgen_ty_6 = 24;
pub const NVME_PEER_CMD_QP_LIMITS: _bindgen_ty_6 = 25;
pub const NVME_PEER_CMD_QP_STATS: _bindgen_ty_6 = 26;
pub const NVME_PEER_CMD_QP_SEAL: _bindgen_ty_6 = 27;
pub const NVME_PEER_CMD_URING_IO: _bindgen_ty_6 = 32;
pub const NVME_PEER_CMD_URING_IO_VEC: _bindgen_ty_6 = 33;
pub type _bindgen_ty_6 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_pci_address {
    pub domain: __u32,
    pub function: __u16,
    pub valid: __u16,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_pci_address",
    ][::core::mem::size_of::<nvme_peer_pci_address>() - 8usize];
    [
        "Alignment of nvme_peer_pci_address",
    ][::core::mem::align_of::<nvme_peer_pci_address>() - 4usize];
    [
        "Offset of field: nvme_peer_pci_address::domain",
    ][::core::mem::offset_of!(nvme_peer_pci_address, domain) - 0usize];
    [
        "Offset of field: nvme_peer_pci_address::function",
    ][::core::mem::offset_of!(nvme_peer_pci_address, function) - 4usize];
    [
        "Offset of field: nvme_peer_pci_address::valid",
    ][::core::mem::offset_of!(nvme_peer_pci_address, valid) - 6usize];
};
pub const NVME_PEER_MODE_DIRECT: nvme_peer_mode = 0;
pub const NVME_PEER_MODE_RELAY: nvme_peer_mode = 1;
pub const NVME_PEER_MODE_MEDIATED: nvme_peer_mode = 2;
pub type nvme_peer_mode = ::core::ffi::c_uint;
pub const NVME_PEER_DOMAIN_PHYSICAL: nvme_peer_domain = 0;
pub const NVME_PEER_DOMAIN_STRICT: nvme_peer_domain = 1;
pub const NVME_PEER_DOMAIN_LAZY: nvme_peer_domain = 2;
pub type nvme_peer_domain = ::core::ffi::c_uint;
pub const NVME_PEER_CTRL_NEW: nvme_peer_ctrl_state = 0;
pub const NVME_PEER_CTRL_LIVE: nvme_peer_ctrl_state = 1;
pub const NVME_PEER_CTRL_RESETTING: nvme_peer_ctrl_state = 2;
pub const NVME_PEER_CTRL_DELETING: nvme_peer_ctrl_state = 3;
pub const NVME_PEER_CTRL_DEAD: nvme_peer_ctrl_state = 4;
pub type nvme_peer_ctrl_state = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_info {
    pub size: __u32,
    pub flags: __u32,
    pub features: __u64,
    pub cap: __u64,
    pub version: __u32,
    pub state: __u32,
    pub generation: __u32,
    pub domain: __u32,
    pub max_entries: __u32,
    pub doorbell_stride: __u32,
    pub page_size: __u32,
    pub max_transfer: __u32,
    pub sgls: __u32,
    pub namespaces: __u32,
    pub qids_total: __u32,
    pub qids_cpu: __u32,
    pub qids_peer_max: __u32,
    pub qids_peer_free: __u32,
    pub pci_address: nvme_peer_pci_address,
    pub contiguous_rings: __u32,
    pub qids_quarantined: __u32,
    pub cmb_size: __u64,
    pub domain_flags: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_info"][::core::mem::size_of::<nvme_peer_info>() - 112usize];
    ["Alignment of nvme_peer_info"][::core::mem::align_of::<nvme_peer_info>() - 8usize];
    [
        "Offset of field: nvme_peer_info::size",
    ][::core::mem::offset_of!(nvme_peer_info, size) - 0usize];
    [
        "Offset of field: nvme_peer_info::flags",
    ][::core::mem::offset_of!(nvme_peer_info, flags) - 4usize];
    [
        "Offset of field: nvme_peer_info::features",
    ][::core::mem::offset_of!(nvme_peer_info, features) - 8usize];
    [
        "Offset of field: nvme_peer_info::cap",
    ][::core::mem::offset_of!(nvme_peer_info, cap) - 16usize];
    [
        "Offset of field: nvme_peer_info::version",
    ][::core::mem::offset_of!(nvme_peer_info, version) - 24usize];
    [
        "Offset of field: nvme_peer_info::state",
    ][::core::mem::offset_of!(nvme_peer_info, state) - 28usize];
    [
        "Offset of field: nvme_peer_info::generation",
    ][::core::mem::offset_of!(nvme_peer_info, generation) - 32usize];
    [
        "Offset of field: nvme_peer_info::domain",
    ][::core::mem::offset_of!(nvme_peer_info, domain) - 36usize];
    [
        "Offset of field: nvme_peer_info::max_entries",
    ][::core::mem::offset_of!(nvme_peer_info, max_entries) - 40usize];
    [
        "Offset of field: nvme_peer_info::doorbell_stride",
    ][::core::mem::offset_of!(nvme_peer_info, doorbell_stride) - 44usize];
    [
        "Offset of field: nvme_peer_info::page_size",
    ][::core::mem::offset_of!(nvme_peer_info, page_size) - 48usize];
    [
        "Offset of field: nvme_peer_info::max_transfer",
    ][::core::mem::offset_of!(nvme_peer_info, max_transfer) - 52usize];
    [
        "Offset of field: nvme_peer_info::sgls",
    ][::core::mem::offset_of!(nvme_peer_info, sgls) - 56usize];
    [
        "Offset of field: nvme_peer_info::namespaces",
    ][::core::mem::offset_of!(nvme_peer_info, namespaces) - 60usize];
    [
        "Offset of field: nvme_peer_info::qids_total",
    ][::core::mem::offset_of!(nvme_peer_info, qids_total) - 64usize];
    [
        "Offset of field: nvme_peer_info::qids_cpu",
    ][::core::mem::offset_of!(nvme_peer_info, qids_cpu) - 68usize];
    [
        "Offset of field: nvme_peer_info::qids_peer_max",
    ][::core::mem::offset_of!(nvme_peer_info, qids_peer_max) - 72usize];
    [
        "Offset of field: nvme_peer_info::qids_peer_free",
    ][::core::mem::offset_of!(nvme_peer_info, qids_peer_free) - 76usize];
    [
        "Offset of field: nvme_peer_info::pci_address",
    ][::core::mem::offset_of!(nvme_peer_info, pci_address) - 80usize];
    [
        "Offset of field: nvme_peer_info::contiguous_rings",
    ][::core::mem::offset_of!(nvme_peer_info, contiguous_rings) - 88usize];
    [
        "Offset of field: nvme_peer_info::qids_quarantined",
    ][::core::mem::offset_of!(nvme_peer_info, qids_quarantined) - 92usize];
    [
        "Offset of field: nvme_peer_info::cmb_size",
    ][::core::mem::offset_of!(nvme_peer_info, cmb_size) - 96usize];
    [
        "Offset of field: nvme_peer_info::domain_flags",
    ][::core::mem::offset_of!(nvme_peer_info, domain_flags) - 104usize];
    [
        "Offset of field: nvme_peer_info::reserved",
    ][::core::mem::offset_of!(nvme_peer_info, reserved) - 108usize];
};
pub const NVME_PEER_ROUTE_NONE: nvme_peer_route_verdict = 0;
pub const NVME_PEER_ROUTE_BUS_ADDR: nvme_peer_route_verdict = 1;
pub const NVME_PEER_ROUTE_HOST_BRIDGE: nvme_peer_route_verdict = 2;
pub const NVME_PEER_ROUTE_SYSTEM: nvme_peer_route_verdict = 3;
pub const NVME_PEER_ROUTE_HOST_BRIDGE_WRITES: nvme_peer_route_verdict = 4;
pub type nvme_peer_route_verdict = ::core::ffi::c_uint;
pub const NVME_PEER_REASON_NONE: nvme_peer_route_reason = 0;
pub const NVME_PEER_REASON_COMMON_SWITCH: nvme_peer_route_reason = 1;
pub const NVME_PEER_REASON_HOST_BRIDGE_KNOWN: nvme_peer_route_reason = 2;
pub const NVME_PEER_REASON_HOST_BRIDGE_ALLOWED: nvme_peer_route_reason = 3;
pub const NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN: nvme_peer_route_reason = 4;
pub const NVME_PEER_REASON_DIFFERENT_DOMAINS: nvme_peer_route_reason = 5;
pub const NVME_PEER_REASON_SAME_FUNCTION: nvme_peer_route_reason = 6;
pub const NVME_PEER_REASON_HOST_MEMORY: nvme_peer_route_reason = 7;
pub const NVME_PEER_REASON_UNKNOWN_MEMORY: nvme_peer_route_reason = 8;
pub const NVME_PEER_REASON_EXPORTER_REFUSED: nvme_peer_route_reason = 9;
pub const NVME_PEER_REASON_ACS_BLOCKED: nvme_peer_route_reason = 10;
pub type nvme_peer_route_reason = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_route_blocker {
    pub address: nvme_peer_pci_address,
    pub acs: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_route_blocker",
    ][::core::mem::size_of::<nvme_peer_route_blocker>() - 12usize];
    [
        "Alignment of nvme_peer_route_blocker",
    ][::core::mem::align_of::<nvme_peer_route_blocker>() - 4usize];
    [
        "Offset of field: nvme_peer_route_blocker::address",
    ][::core::mem::offset_of!(nvme_peer_route_blocker, address) - 0usize];
    [
        "Offset of field: nvme_peer_route_blocker::acs",
    ][::core::mem::offset_of!(nvme_peer_route_blocker, acs) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_path {
    pub verdict: __u32,
    pub reason: __u32,
    pub blocker_count: __u32,
    pub blockers: [nvme_peer_route_blocker; 6usize],
    pub reserved: [__u32; 7usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_path"][::core::mem::size_of::<nvme_peer_path>() - 112usize];
    ["Alignment of nvme_peer_path"][::core::mem::align_of::<nvme_peer_path>() - 4usize];
    [
        "Offset of field: nvme_peer_path::verdict",
    ][::core::mem::offset_of!(nvme_peer_path, verdict) - 0usize];
    [
        "Offset of field: nvme_peer_path::reason",
    ][::core::mem::offset_of!(nvme_peer_path, reason) - 4usize];
    [
        "Offset of field: nvme_peer_path::blocker_count",
    ][::core::mem::offset_of!(nvme_peer_path, blocker_count) - 8usize];
    [
        "Offset of field: nvme_peer_path::blockers",
    ][::core::mem::offset_of!(nvme_peer_path, blockers) - 12usize];
    [
        "Offset of field: nvme_peer_path::reserved",
    ][::core::mem::offset_of!(nvme_peer_path, reserved) - 84usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_route {
    pub size: __u32,
    pub flags: __u32,
    pub dmabuf_fd: __s32,
    pub pci_address: nvme_peer_pci_address,
    pub data: nvme_peer_path,
    pub doorbell: nvme_peer_path,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_route"][::core::mem::size_of::<nvme_peer_route>() - 244usize];
    [
        "Alignment of nvme_peer_route",
    ][::core::mem::align_of::<nvme_peer_route>() - 4usize];
    [
        "Offset of field: nvme_peer_route::size",
    ][::core::mem::offset_of!(nvme_peer_route, size) - 0usize];
    [
        "Offset of field: nvme_peer_route::flags",
    ][::core::mem::offset_of!(nvme_peer_route, flags) - 4usize];
    [
        "Offset of field: nvme_peer_route::dmabuf_fd",
    ][::core::mem::offset_of!(nvme_peer_route, dmabuf_fd) - 8usize];
    [
        "Offset of field: nvme_peer_route::pci_address",
    ][::core::mem::offset_of!(nvme_peer_route, pci_address) - 12usize];
    [
        "Offset of field: nvme_peer_route::data",
    ][::core::mem::offset_of!(nvme_peer_route, data) - 20usize];
    [
        "Offset of field: nvme_peer_route::doorbell",
    ][::core::mem::offset_of!(nvme_peer_route, doorbell) - 132usize];
};
pub const NVME_PEER_ACCESS_BOTH: nvme_peer_access = 0;
pub const NVME_PEER_ACCESS_READ: nvme_peer_access = 1;
pub const NVME_PEER_ACCESS_WRITE: nvme_peer_access = 2;
pub type nvme_peer_access = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_buf_import {
    pub size: __u32,
    pub flags: __u32,
    pub dmabuf_fd: __s32,
    pub access: __u32,
    pub offset: __u64,
    pub length: __u64,
    pub handle: __u32,
    pub segments: __u32,
    pub verdict: __u32,
    pub reason: __u32,
    pub pci_address: nvme_peer_pci_address,
    pub reserved: [__u32; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_buf_import",
    ][::core::mem::size_of::<nvme_peer_buf_import>() - 64usize];
    [
        "Alignment of nvme_peer_buf_import",
    ][::core::mem::align_of::<nvme_peer_buf_import>() - 8usize];
    [
        "Offset of field: nvme_peer_buf_import::size",
    ][::core::mem::offset_of!(nvme_peer_buf_import, size) - 0usize];
    [
        "Offset of field: nvme_peer_buf_import::flags",
    ][::core::mem::offset_of!(nvme_peer_buf_import, flags) - 4usize];
    [
        "Offset of field: nvme_peer_buf_import::dmabuf_fd",
    ][::core::mem::offset_of!(nvme_peer_buf_import, dmabuf_fd) - 8usize];
    [
        "Offset of field: nvme_peer_buf_import::access",
    ][::core::mem::offset_of!(nvme_peer_buf_import, access) - 12usize];
    [
        "Offset of field: nvme_peer_buf_import::offset",
    ][::core::mem::offset_of!(nvme_peer_buf_import, offset) - 16usize];
    [
        "Offset of field: nvme_peer_buf_import::length",
    ][::core::mem::offset_of!(nvme_peer_buf_import, length) - 24usize];
    [
        "Offset of field: nvme_peer_buf_import::handle",
    ][::core::mem::offset_of!(nvme_peer_buf_import, handle) - 32usize];
    [
        "Offset of field: nvme_peer_buf_import::segments",
    ][::core::mem::offset_of!(nvme_peer_buf_import, segments) - 36usize];
    [
        "Offset of field: nvme_peer_buf_import::verdict",
    ][::core::mem::offset_of!(nvme_peer_buf_import, verdict) - 40usize];
    [
        "Offset of field: nvme_peer_buf_import::reason",
    ][::core::mem::offset_of!(nvme_peer_buf_import, reason) - 44usize];
    [
        "Offset of field: nvme_peer_buf_import::pci_address",
    ][::core::mem::offset_of!(nvme_peer_buf_import, pci_address) - 48usize];
    [
        "Offset of field: nvme_peer_buf_import::reserved",
    ][::core::mem::offset_of!(nvme_peer_buf_import, reserved) - 56usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_buf_release {
    pub size: __u32,
    pub flags: __u32,
    pub handle: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_buf_release",
    ][::core::mem::size_of::<nvme_peer_buf_release>() - 16usize];
    [
        "Alignment of nvme_peer_buf_release",
    ][::core::mem::align_of::<nvme_peer_buf_release>() - 4usize];
    [
        "Offset of field: nvme_peer_buf_release::size",
    ][::core::mem::offset_of!(nvme_peer_buf_release, size) - 0usize];
    [
        "Offset of field: nvme_peer_buf_release::flags",
    ][::core::mem::offset_of!(nvme_peer_buf_release, flags) - 4usize];
    [
        "Offset of field: nvme_peer_buf_release::handle",
    ][::core::mem::offset_of!(nvme_peer_buf_release, handle) - 8usize];
    [
        "Offset of field: nvme_peer_buf_release::reserved",
    ][::core::mem::offset_of!(nvme_peer_buf_release, reserved) - 12usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_buf_range {
    pub address: __u64,
    pub length: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_buf_range",
    ][::core::mem::size_of::<nvme_peer_buf_range>() - 16usize];
    [
        "Alignment of nvme_peer_buf_range",
    ][::core::mem::align_of::<nvme_peer_buf_range>() - 8usize];
    [
        "Offset of field: nvme_peer_buf_range::address",
    ][::core::mem::offset_of!(nvme_peer_buf_range, address) - 0usize];
    [
        "Offset of field: nvme_peer_buf_range::length",
    ][::core::mem::offset_of!(nvme_peer_buf_range, length) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_buf_table {
    pub size: __u32,
    pub flags: __u32,
    pub handle: __u32,
    pub count: __u32,
    pub offset: __u64,
    pub ranges: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_buf_table",
    ][::core::mem::size_of::<nvme_peer_buf_table>() - 32usize];
    [
        "Alignment of nvme_peer_buf_table",
    ][::core::mem::align_of::<nvme_peer_buf_table>() - 8usize];
    [
        "Offset of field: nvme_peer_buf_table::size",
    ][::core::mem::offset_of!(nvme_peer_buf_table, size) - 0usize];
    [
        "Offset of field: nvme_peer_buf_table::flags",
    ][::core::mem::offset_of!(nvme_peer_buf_table, flags) - 4usize];
    [
        "Offset of field: nvme_peer_buf_table::handle",
    ][::core::mem::offset_of!(nvme_peer_buf_table, handle) - 8usize];
    [
        "Offset of field: nvme_peer_buf_table::count",
    ][::core::mem::offset_of!(nvme_peer_buf_table, count) - 12usize];
    [
        "Offset of field: nvme_peer_buf_table::offset",
    ][::core::mem::offset_of!(nvme_peer_buf_table, offset) - 16usize];
    [
        "Offset of field: nvme_peer_buf_table::ranges",
    ][::core::mem::offset_of!(nvme_peer_buf_table, ranges) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_create {
    pub size: __u32,
    pub flags: __u32,
    pub mode: __u32,
    pub reserved1: __u32,
    pub sq_entries: __u32,
    pub cq_entries: __u32,
    pub sq_handle: __u32,
    pub cq_handle: __u32,
    pub sq_offset: __u64,
    pub cq_offset: __u64,
    pub qp_fd: __s32,
    pub qid: __u32,
    pub generation: __u32,
    pub reserved: __u32,
    pub depth: __u32,
    pub weight: __u32,
    pub timeout_ms: __u32,
    pub max_windows: __u32,
    pub max_buffers: __u32,
    pub reserved2: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_qp_create",
    ][::core::mem::size_of::<nvme_peer_qp_create>() - 88usize];
    [
        "Alignment of nvme_peer_qp_create",
    ][::core::mem::align_of::<nvme_peer_qp_create>() - 8usize];
    [
        "Offset of field: nvme_peer_qp_create::size",
    ][::core::mem::offset_of!(nvme_peer_qp_create, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_create::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_create, flags) - 4usize];
    [
        "Offset of field: nvme_peer_qp_create::mode",
    ][::core::mem::offset_of!(nvme_peer_qp_create, mode) - 8usize];
    [
        "Offset of field: nvme_peer_qp_create::reserved1",
    ][::core::mem::offset_of!(nvme_peer_qp_create, reserved1) - 12usize];
    [
        "Offset of field: nvme_peer_qp_create::sq_entries",
    ][::core::mem::offset_of!(nvme_peer_qp_create, sq_entries) - 16usize];
    [
        "Offset of field: nvme_peer_qp_create::cq_entries",
    ][::core::mem::offset_of!(nvme_peer_qp_create, cq_entries) - 20usize];
    [
        "Offset of field: nvme_peer_qp_create::sq_handle",
    ][::core::mem::offset_of!(nvme_peer_qp_create, sq_handle) - 24usize];
    [
        "Offset of field: nvme_peer_qp_create::cq_handle",
    ][::core::mem::offset_of!(nvme_peer_qp_create, cq_handle) - 28usize];
    [
        "Offset of field: nvme_peer_qp_create::sq_offset",
    ][::core::mem::offset_of!(nvme_peer_qp_create, sq_offset) - 32usize];
    [
        "Offset of field: nvme_peer_qp_create::cq_offset",
    ][::core::mem::offset_of!(nvme_peer_qp_create, cq_offset) - 40usize];
    [
        "Offset of field: nvme_peer_qp_create::qp_fd",
    ][::core::mem::offset_of!(nvme_peer_qp_create, qp_fd) - 48usize];
    [
        "Offset of field: nvme_peer_qp_create::qid",
    ][::core::mem::offset_of!(nvme_peer_qp_create, qid) - 52usize];
    [
        "Offset of field: nvme_peer_qp_create::generation",
    ][::core::mem::offset_of!(nvme_peer_qp_create, generation) - 56usize];
    [
        "Offset of field: nvme_peer_qp_create::reserved",
    ][::core::mem::offset_of!(nvme_peer_qp_create, reserved) - 60usize];
    [
        "Offset of field: nvme_peer_qp_create::depth",
    ][::core::mem::offset_of!(nvme_peer_qp_create, depth) - 64usize];
    [
        "Offset of field: nvme_peer_qp_create::weight",
    ][::core::mem::offset_of!(nvme_peer_qp_create, weight) - 68usize];
    [
        "Offset of field: nvme_peer_qp_create::timeout_ms",
    ][::core::mem::offset_of!(nvme_peer_qp_create, timeout_ms) - 72usize];
    [
        "Offset of field: nvme_peer_qp_create::max_windows",
    ][::core::mem::offset_of!(nvme_peer_qp_create, max_windows) - 76usize];
    [
        "Offset of field: nvme_peer_qp_create::max_buffers",
    ][::core::mem::offset_of!(nvme_peer_qp_create, max_buffers) - 80usize];
    [
        "Offset of field: nvme_peer_qp_create::reserved2",
    ][::core::mem::offset_of!(nvme_peer_qp_create, reserved2) - 84usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_buf_alloc {
    pub size: __u32,
    pub flags: __u32,
    pub length: __u64,
    pub fd: __s32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_buf_alloc",
    ][::core::mem::size_of::<nvme_peer_buf_alloc>() - 24usize];
    [
        "Alignment of nvme_peer_buf_alloc",
    ][::core::mem::align_of::<nvme_peer_buf_alloc>() - 8usize];
    [
        "Offset of field: nvme_peer_buf_alloc::size",
    ][::core::mem::offset_of!(nvme_peer_buf_alloc, size) - 0usize];
    [
        "Offset of field: nvme_peer_buf_alloc::flags",
    ][::core::mem::offset_of!(nvme_peer_buf_alloc, flags) - 4usize];
    [
        "Offset of field: nvme_peer_buf_alloc::length",
    ][::core::mem::offset_of!(nvme_peer_buf_alloc, length) - 8usize];
    [
        "Offset of field: nvme_peer_buf_alloc::fd",
    ][::core::mem::offset_of!(nvme_peer_buf_alloc, fd) - 16usize];
    [
        "Offset of field: nvme_peer_buf_alloc::reserved",
    ][::core::mem::offset_of!(nvme_peer_buf_alloc, reserved) - 20usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_extent {
    pub first: __u64,
    pub lba: __u64,
    pub blocks: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_extent"][::core::mem::size_of::<nvme_peer_extent>() - 24usize];
    [
        "Alignment of nvme_peer_extent",
    ][::core::mem::align_of::<nvme_peer_extent>() - 8usize];
    [
        "Offset of field: nvme_peer_extent::first",
    ][::core::mem::offset_of!(nvme_peer_extent, first) - 0usize];
    [
        "Offset of field: nvme_peer_extent::lba",
    ][::core::mem::offset_of!(nvme_peer_extent, lba) - 8usize];
    [
        "Offset of field: nvme_peer_extent::blocks",
    ][::core::mem::offset_of!(nvme_peer_extent, blocks) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_extents {
    pub size: __u32,
    pub flags: __u32,
    pub fd: __s32,
    pub pin_fd: __s32,
    pub first: __u64,
    pub blocks: __u64,
    pub nsid: __u32,
    pub block_size: __u32,
    pub count: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_extents"][::core::mem::size_of::<nvme_peer_extents>() - 48usize];
    [
        "Alignment of nvme_peer_extents",
    ][::core::mem::align_of::<nvme_peer_extents>() - 8usize];
    [
        "Offset of field: nvme_peer_extents::size",
    ][::core::mem::offset_of!(nvme_peer_extents, size) - 0usize];
    [
        "Offset of field: nvme_peer_extents::flags",
    ][::core::mem::offset_of!(nvme_peer_extents, flags) - 4usize];
    [
        "Offset of field: nvme_peer_extents::fd",
    ][::core::mem::offset_of!(nvme_peer_extents, fd) - 8usize];
    [
        "Offset of field: nvme_peer_extents::pin_fd",
    ][::core::mem::offset_of!(nvme_peer_extents, pin_fd) - 12usize];
    [
        "Offset of field: nvme_peer_extents::first",
    ][::core::mem::offset_of!(nvme_peer_extents, first) - 16usize];
    [
        "Offset of field: nvme_peer_extents::blocks",
    ][::core::mem::offset_of!(nvme_peer_extents, blocks) - 24usize];
    [
        "Offset of field: nvme_peer_extents::nsid",
    ][::core::mem::offset_of!(nvme_peer_extents, nsid) - 32usize];
    [
        "Offset of field: nvme_peer_extents::block_size",
    ][::core::mem::offset_of!(nvme_peer_extents, block_size) - 36usize];
    [
        "Offset of field: nvme_peer_extents::count",
    ][::core::mem::offset_of!(nvme_peer_extents, count) - 40usize];
    [
        "Offset of field: nvme_peer_extents::reserved",
    ][::core::mem::offset_of!(nvme_peer_extents, reserved) - 44usize];
};
pub const NVME_PEER_EXPORT_SQ: nvme_peer_export = 0;
pub const NVME_PEER_EXPORT_CQ: nvme_peer_export = 1;
pub const NVME_PEER_EXPORT_DOORBELL: nvme_peer_export = 2;
pub const NVME_PEER_EXPORT_STATUS: nvme_peer_export = 3;
pub const NVME_PEER_EXPORT_CONTROL: nvme_peer_export = 4;
pub type nvme_peer_export = ::core::ffi::c_uint;
pub const NVME_PEER_KIND_REGISTER: nvme_peer_kind = 0;
pub const NVME_PEER_KIND_MEMORY: nvme_peer_kind = 1;
pub type nvme_peer_kind = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_export {
    pub size: __u32,
    pub flags: __u32,
    pub what: __u32,
    pub fd: __s32,
    pub offset: __u64,
    pub length: __u64,
    pub kind: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_qp_export",
    ][::core::mem::size_of::<nvme_peer_qp_export>() - 40usize];
    [
        "Alignment of nvme_peer_qp_export",
    ][::core::mem::align_of::<nvme_peer_qp_export>() - 8usize];
    [
        "Offset of field: nvme_peer_qp_export::size",
    ][::core::mem::offset_of!(nvme_peer_qp_export, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_export::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_export, flags) - 4usize];
    [
        "Offset of field: nvme_peer_qp_export::what",
    ][::core::mem::offset_of!(nvme_peer_qp_export, what) - 8usize];
    [
        "Offset of field: nvme_peer_qp_export::fd",
    ][::core::mem::offset_of!(nvme_peer_qp_export, fd) - 12usize];
    [
        "Offset of field: nvme_peer_qp_export::offset",
    ][::core::mem::offset_of!(nvme_peer_qp_export, offset) - 16usize];
    [
        "Offset of field: nvme_peer_qp_export::length",
    ][::core::mem::offset_of!(nvme_peer_qp_export, length) - 24usize];
    [
        "Offset of field: nvme_peer_qp_export::kind",
    ][::core::mem::offset_of!(nvme_peer_qp_export, kind) - 32usize];
    [
        "Offset of field: nvme_peer_qp_export::reserved",
    ][::core::mem::offset_of!(nvme_peer_qp_export, reserved) - 36usize];
};
pub const NVME_PEER_QP_LIVE: nvme_peer_qp_state = 1;
pub const NVME_PEER_QP_QUIESCED: nvme_peer_qp_state = 2;
pub const NVME_PEER_QP_FAILED: nvme_peer_qp_state = 3;
pub const NVME_PEER_QP_GONE: nvme_peer_qp_state = 4;
pub type nvme_peer_qp_state = ::core::ffi::c_uint;
pub const NVME_PEER_QP_REASON_NONE: nvme_peer_qp_reason = 0;
pub const NVME_PEER_QP_REASON_RESET: nvme_peer_qp_reason = 1;
pub const NVME_PEER_QP_REASON_REQUEST: nvme_peer_qp_reason = 2;
pub const NVME_PEER_QP_REASON_NO_QUEUE: nvme_peer_qp_reason = 3;
pub const NVME_PEER_QP_REASON_BUFFER: nvme_peer_qp_reason = 4;
pub const NVME_PEER_QP_REASON_NAMESPACE: nvme_peer_qp_reason = 5;
pub const NVME_PEER_QP_REASON_CTRL: nvme_peer_qp_reason = 6;
pub const NVME_PEER_QP_REASON_UNBOUND: nvme_peer_qp_reason = 7;
pub const NVME_PEER_QP_REASON_CLOSED: nvme_peer_qp_reason = 8;
pub const NVME_PEER_QP_REASON_DOORBELL: nvme_peer_qp_reason = 10;
pub type nvme_peer_qp_reason = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_info {
    pub size: __u32,
    pub flags: __u32,
    pub qid: __u32,
    pub state: __u32,
    pub generation: __u32,
    pub mode: __u32,
    pub sq_entries: __u32,
    pub cq_entries: __u32,
    pub doorbell_stride: __u32,
    pub doorbell_offset: __u32,
    pub doorbell_length: __u32,
    pub exports: __u32,
    pub importers: __u32,
    pub mmaps: __u32,
    pub reason: __u32,
    pub losses: __u32,
    pub sq_pci_address: nvme_peer_pci_address,
    pub cq_pci_address: nvme_peer_pci_address,
    pub cpu_doorbell_writes: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_qp_info"][::core::mem::size_of::<nvme_peer_qp_info>() - 88usize];
    [
        "Alignment of nvme_peer_qp_info",
    ][::core::mem::align_of::<nvme_peer_qp_info>() - 8usize];
    [
        "Offset of field: nvme_peer_qp_info::size",
    ][::core::mem::offset_of!(nvme_peer_qp_info, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_info::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_info, flags) - 4usize];
    [
        "Offset of field: nvme_peer_qp_info::qid",
    ][::core::mem::offset_of!(nvme_peer_qp_info, qid) - 8usize];
    [
        "Offset of field: nvme_peer_qp_info::state",
    ][::core::mem::offset_of!(nvme_peer_qp_info, state) - 12usize];
    [
        "Offset of field: nvme_peer_qp_info::generation",
    ][::core::mem::offset_of!(nvme_peer_qp_info, generation) - 16usize];
    [
        "Offset of field: nvme_peer_qp_info::mode",
    ][::core::mem::offset_of!(nvme_peer_qp_info, mode) - 20usize];
    [
        "Offset of field: nvme_peer_qp_info::sq_entries",
    ][::core::mem::offset_of!(nvme_peer_qp_info, sq_entries) - 24usize];
    [
        "Offset of field: nvme_peer_qp_info::cq_entries",
    ][::core::mem::offset_of!(nvme_peer_qp_info, cq_entries) - 28usize];
    [
        "Offset of field: nvme_peer_qp_info::doorbell_stride",
    ][::core::mem::offset_of!(nvme_peer_qp_info, doorbell_stride) - 32usize];
    [
        "Offset of field: nvme_peer_qp_info::doorbell_offset",
    ][::core::mem::offset_of!(nvme_peer_qp_info, doorbell_offset) - 36usize];
    [
        "Offset of field: nvme_peer_qp_info::doorbell_length",
    ][::core::mem::offset_of!(nvme_peer_qp_info, doorbell_length) - 40usize];
    [
        "Offset of field: nvme_peer_qp_info::exports",
    ][::core::mem::offset_of!(nvme_peer_qp_info, exports) - 44usize];
    [
        "Offset of field: nvme_peer_qp_info::importers",
    ][::core::mem::offset_of!(nvme_peer_qp_info, importers) - 48usize];
    [
        "Offset of field: nvme_peer_qp_info::mmaps",
    ][::core::mem::offset_of!(nvme_peer_qp_info, mmaps) - 52usize];
    [
        "Offset of field: nvme_peer_qp_info::reason",
    ][::core::mem::offset_of!(nvme_peer_qp_info, reason) - 56usize];
    [
        "Offset of field: nvme_peer_qp_info::losses",
    ][::core::mem::offset_of!(nvme_peer_qp_info, losses) - 60usize];
    [
        "Offset of field: nvme_peer_qp_info::sq_pci_address",
    ][::core::mem::offset_of!(nvme_peer_qp_info, sq_pci_address) - 64usize];
    [
        "Offset of field: nvme_peer_qp_info::cq_pci_address",
    ][::core::mem::offset_of!(nvme_peer_qp_info, cq_pci_address) - 72usize];
    [
        "Offset of field: nvme_peer_qp_info::cpu_doorbell_writes",
    ][::core::mem::offset_of!(nvme_peer_qp_info, cpu_doorbell_writes) - 80usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_rearm {
    pub size: __u32,
    pub flags: __u32,
    pub losses: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_qp_rearm",
    ][::core::mem::size_of::<nvme_peer_qp_rearm>() - 16usize];
    [
        "Alignment of nvme_peer_qp_rearm",
    ][::core::mem::align_of::<nvme_peer_qp_rearm>() - 4usize];
    [
        "Offset of field: nvme_peer_qp_rearm::size",
    ][::core::mem::offset_of!(nvme_peer_qp_rearm, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_rearm::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_rearm, flags) - 4usize];
    [
        "Offset of field: nvme_peer_qp_rearm::losses",
    ][::core::mem::offset_of!(nvme_peer_qp_rearm, losses) - 8usize];
    [
        "Offset of field: nvme_peer_qp_rearm::reserved",
    ][::core::mem::offset_of!(nvme_peer_qp_rearm, reserved) - 12usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_kick {
    pub size: __u32,
    pub flags: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_qp_kick"][::core::mem::size_of::<nvme_peer_qp_kick>() - 8usize];
    [
        "Alignment of nvme_peer_qp_kick",
    ][::core::mem::align_of::<nvme_peer_qp_kick>() - 4usize];
    [
        "Offset of field: nvme_peer_qp_kick::size",
    ][::core::mem::offset_of!(nvme_peer_qp_kick, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_kick::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_kick, flags) - 4usize];
};
pub const NVME_PEER_RIGHT_READ: nvme_peer_rights = 1;
pub const NVME_PEER_RIGHT_WRITE: nvme_peer_rights = 2;
pub type nvme_peer_rights = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_window_add {
    pub size: __u32,
    pub flags: __u32,
    pub fd: __s32,
    pub id: __u32,
    pub first: __u64,
    pub blocks: __u64,
    pub block_size: __u32,
    pub rights: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_window_add",
    ][::core::mem::size_of::<nvme_peer_window_add>() - 40usize];
    [
        "Alignment of nvme_peer_window_add",
    ][::core::mem::align_of::<nvme_peer_window_add>() - 8usize];
    [
        "Offset of field: nvme_peer_window_add::size",
    ][::core::mem::offset_of!(nvme_peer_window_add, size) - 0usize];
    [
        "Offset of field: nvme_peer_window_add::flags",
    ][::core::mem::offset_of!(nvme_peer_window_add, flags) - 4usize];
    [
        "Offset of field: nvme_peer_window_add::fd",
    ][::core::mem::offset_of!(nvme_peer_window_add, fd) - 8usize];
    [
        "Offset of field: nvme_peer_window_add::id",
    ][::core::mem::offset_of!(nvme_peer_window_add, id) - 12usize];
    [
        "Offset of field: nvme_peer_window_add::first",
    ][::core::mem::offset_of!(nvme_peer_window_add, first) - 16usize];
    [
        "Offset of field: nvme_peer_window_add::blocks",
    ][::core::mem::offset_of!(nvme_peer_window_add, blocks) - 24usize];
    [
        "Offset of field: nvme_peer_window_add::block_size",
    ][::core::mem::offset_of!(nvme_peer_window_add, block_size) - 32usize];
    [
        "Offset of field: nvme_peer_window_add::rights",
    ][::core::mem::offset_of!(nvme_peer_window_add, rights) - 36usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_window_remove {
    pub size: __u32,
    pub flags: __u32,
    pub id: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_window_remove",
    ][::core::mem::size_of::<nvme_peer_window_remove>() - 16usize];
    [
        "Alignment of nvme_peer_window_remove",
    ][::core::mem::align_of::<nvme_peer_window_remove>() - 4usize];
    [
        "Offset of field: nvme_peer_window_remove::size",
    ][::core::mem::offset_of!(nvme_peer_window_remove, size) - 0usize];
    [
        "Offset of field: nvme_peer_window_remove::flags",
    ][::core::mem::offset_of!(nvme_peer_window_remove, flags) - 4usize];
    [
        "Offset of field: nvme_peer_window_remove::id",
    ][::core::mem::offset_of!(nvme_peer_window_remove, id) - 8usize];
    [
        "Offset of field: nvme_peer_window_remove::reserved",
    ][::core::mem::offset_of!(nvme_peer_window_remove, reserved) - 12usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_window_info {
    pub size: __u32,
    pub flags: __u32,
    pub id: __u32,
    pub rights: __u32,
    pub first: __u64,
    pub blocks: __u64,
    pub block_size: __u32,
    pub in_flight: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_window_info",
    ][::core::mem::size_of::<nvme_peer_window_info>() - 40usize];
    [
        "Alignment of nvme_peer_window_info",
    ][::core::mem::align_of::<nvme_peer_window_info>() - 8usize];
    [
        "Offset of field: nvme_peer_window_info::size",
    ][::core::mem::offset_of!(nvme_peer_window_info, size) - 0usize];
    [
        "Offset of field: nvme_peer_window_info::flags",
    ][::core::mem::offset_of!(nvme_peer_window_info, flags) - 4usize];
    [
        "Offset of field: nvme_peer_window_info::id",
    ][::core::mem::offset_of!(nvme_peer_window_info, id) - 8usize];
    [
        "Offset of field: nvme_peer_window_info::rights",
    ][::core::mem::offset_of!(nvme_peer_window_info, rights) - 12usize];
    [
        "Offset of field: nvme_peer_window_info::first",
    ][::core::mem::offset_of!(nvme_peer_window_info, first) - 16usize];
    [
        "Offset of field: nvme_peer_window_info::blocks",
    ][::core::mem::offset_of!(nvme_peer_window_info, blocks) - 24usize];
    [
        "Offset of field: nvme_peer_window_info::block_size",
    ][::core::mem::offset_of!(nvme_peer_window_info, block_size) - 32usize];
    [
        "Offset of field: nvme_peer_window_info::in_flight",
    ][::core::mem::offset_of!(nvme_peer_window_info, in_flight) - 36usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_buf_add {
    pub size: __u32,
    pub flags: __u32,
    pub dmabuf_fd: __s32,
    pub access: __u32,
    pub offset: __u64,
    pub length: __u64,
    pub slot: __u32,
    pub verdict: __u32,
    pub reason: __u32,
    pub pci_address: nvme_peer_pci_address,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_buf_add"][::core::mem::size_of::<nvme_peer_buf_add>() - 56usize];
    [
        "Alignment of nvme_peer_buf_add",
    ][::core::mem::align_of::<nvme_peer_buf_add>() - 8usize];
    [
        "Offset of field: nvme_peer_buf_add::size",
    ][::core::mem::offset_of!(nvme_peer_buf_add, size) - 0usize];
    [
        "Offset of field: nvme_peer_buf_add::flags",
    ][::core::mem::offset_of!(nvme_peer_buf_add, flags) - 4usize];
    [
        "Offset of field: nvme_peer_buf_add::dmabuf_fd",
    ][::core::mem::offset_of!(nvme_peer_buf_add, dmabuf_fd) - 8usize];
    [
        "Offset of field: nvme_peer_buf_add::access",
    ][::core::mem::offset_of!(nvme_peer_buf_add, access) - 12usize];
    [
        "Offset of field: nvme_peer_buf_add::offset",
    ][::core::mem::offset_of!(nvme_peer_buf_add, offset) - 16usize];
    [
        "Offset of field: nvme_peer_buf_add::length",
    ][::core::mem::offset_of!(nvme_peer_buf_add, length) - 24usize];
    [
        "Offset of field: nvme_peer_buf_add::slot",
    ][::core::mem::offset_of!(nvme_peer_buf_add, slot) - 32usize];
    [
        "Offset of field: nvme_peer_buf_add::verdict",
    ][::core::mem::offset_of!(nvme_peer_buf_add, verdict) - 36usize];
    [
        "Offset of field: nvme_peer_buf_add::reason",
    ][::core::mem::offset_of!(nvme_peer_buf_add, reason) - 40usize];
    [
        "Offset of field: nvme_peer_buf_add::pci_address",
    ][::core::mem::offset_of!(nvme_peer_buf_add, pci_address) - 44usize];
    [
        "Offset of field: nvme_peer_buf_add::reserved",
    ][::core::mem::offset_of!(nvme_peer_buf_add, reserved) - 52usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_buf_remove {
    pub size: __u32,
    pub flags: __u32,
    pub slot: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_buf_remove",
    ][::core::mem::size_of::<nvme_peer_buf_remove>() - 16usize];
    [
        "Alignment of nvme_peer_buf_remove",
    ][::core::mem::align_of::<nvme_peer_buf_remove>() - 4usize];
    [
        "Offset of field: nvme_peer_buf_remove::size",
    ][::core::mem::offset_of!(nvme_peer_buf_remove, size) - 0usize];
    [
        "Offset of field: nvme_peer_buf_remove::flags",
    ][::core::mem::offset_of!(nvme_peer_buf_remove, flags) - 4usize];
    [
        "Offset of field: nvme_peer_buf_remove::slot",
    ][::core::mem::offset_of!(nvme_peer_buf_remove, slot) - 8usize];
    [
        "Offset of field: nvme_peer_buf_remove::reserved",
    ][::core::mem::offset_of!(nvme_peer_buf_remove, reserved) - 12usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_limits {
    pub size: __u32,
    pub flags: __u32,
    pub depth: __u32,
    pub weight: __u32,
    pub timeout_ms: __u32,
    pub max_windows: __u32,
    pub max_buffers: __u32,
    pub max_transfer: __u32,
    pub max_write_zeroes: __u32,
    pub windows: __u32,
    pub buffers: __u32,
    pub sealed: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_qp_limits",
    ][::core::mem::size_of::<nvme_peer_qp_limits>() - 48usize];
    [
        "Alignment of nvme_peer_qp_limits",
    ][::core::mem::align_of::<nvme_peer_qp_limits>() - 4usize];
    [
        "Offset of field: nvme_peer_qp_limits::size",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_limits::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, flags) - 4usize];
    [
        "Offset of field: nvme_peer_qp_limits::depth",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, depth) - 8usize];
    [
        "Offset of field: nvme_peer_qp_limits::weight",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, weight) - 12usize];
    [
        "Offset of field: nvme_peer_qp_limits::timeout_ms",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, timeout_ms) - 16usize];
    [
        "Offset of field: nvme_peer_qp_limits::max_windows",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, max_windows) - 20usize];
    [
        "Offset of field: nvme_peer_qp_limits::max_buffers",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, max_buffers) - 24usize];
    [
        "Offset of field: nvme_peer_qp_limits::max_transfer",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, max_transfer) - 28usize];
    [
        "Offset of field: nvme_peer_qp_limits::max_write_zeroes",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, max_write_zeroes) - 32usize];
    [
        "Offset of field: nvme_peer_qp_limits::windows",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, windows) - 36usize];
    [
        "Offset of field: nvme_peer_qp_limits::buffers",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, buffers) - 40usize];
    [
        "Offset of field: nvme_peer_qp_limits::sealed",
    ][::core::mem::offset_of!(nvme_peer_qp_limits, sealed) - 44usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_stats {
    pub size: __u32,
    pub flags: __u32,
    pub in_flight: __u32,
    pub reserved: __u32,
    pub reads: __u64,
    pub writes: __u64,
    pub zeroes: __u64,
    pub flushes: __u64,
    pub read_bytes: __u64,
    pub written_bytes: __u64,
    pub refused: __u64,
    pub failed: __u64,
    pub busy_ns: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_qp_stats",
    ][::core::mem::size_of::<nvme_peer_qp_stats>() - 88usize];
    [
        "Alignment of nvme_peer_qp_stats",
    ][::core::mem::align_of::<nvme_peer_qp_stats>() - 8usize];
    [
        "Offset of field: nvme_peer_qp_stats::size",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_stats::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, flags) - 4usize];
    [
        "Offset of field: nvme_peer_qp_stats::in_flight",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, in_flight) - 8usize];
    [
        "Offset of field: nvme_peer_qp_stats::reserved",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, reserved) - 12usize];
    [
        "Offset of field: nvme_peer_qp_stats::reads",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, reads) - 16usize];
    [
        "Offset of field: nvme_peer_qp_stats::writes",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, writes) - 24usize];
    [
        "Offset of field: nvme_peer_qp_stats::zeroes",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, zeroes) - 32usize];
    [
        "Offset of field: nvme_peer_qp_stats::flushes",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, flushes) - 40usize];
    [
        "Offset of field: nvme_peer_qp_stats::read_bytes",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, read_bytes) - 48usize];
    [
        "Offset of field: nvme_peer_qp_stats::written_bytes",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, written_bytes) - 56usize];
    [
        "Offset of field: nvme_peer_qp_stats::refused",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, refused) - 64usize];
    [
        "Offset of field: nvme_peer_qp_stats::failed",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, failed) - 72usize];
    [
        "Offset of field: nvme_peer_qp_stats::busy_ns",
    ][::core::mem::offset_of!(nvme_peer_qp_stats, busy_ns) - 80usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_qp_seal {
    pub size: __u32,
    pub flags: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_qp_seal"][::core::mem::size_of::<nvme_peer_qp_seal>() - 8usize];
    [
        "Alignment of nvme_peer_qp_seal",
    ][::core::mem::align_of::<nvme_peer_qp_seal>() - 4usize];
    [
        "Offset of field: nvme_peer_qp_seal::size",
    ][::core::mem::offset_of!(nvme_peer_qp_seal, size) - 0usize];
    [
        "Offset of field: nvme_peer_qp_seal::flags",
    ][::core::mem::offset_of!(nvme_peer_qp_seal, flags) - 4usize];
};
pub const NVME_PEER_EVENT_STATE: nvme_peer_event_type = 1;
pub const NVME_PEER_EVENT_READY: nvme_peer_event_type = 2;
pub const NVME_PEER_EVENT_BUFFER_ENDED: nvme_peer_event_type = 5;
pub type nvme_peer_event_type = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_event {
    pub size: __u32,
    pub type_: __u32,
    pub time: __u64,
    pub generation: __u32,
    pub state: __u32,
    pub reason: __u32,
    pub lost: __u32,
    pub object: __u64,
    pub detail: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_event"][::core::mem::size_of::<nvme_peer_event>() - 48usize];
    [
        "Alignment of nvme_peer_event",
    ][::core::mem::align_of::<nvme_peer_event>() - 8usize];
    [
        "Offset of field: nvme_peer_event::size",
    ][::core::mem::offset_of!(nvme_peer_event, size) - 0usize];
    [
        "Offset of field: nvme_peer_event::type_",
    ][::core::mem::offset_of!(nvme_peer_event, type_) - 4usize];
    [
        "Offset of field: nvme_peer_event::time",
    ][::core::mem::offset_of!(nvme_peer_event, time) - 8usize];
    [
        "Offset of field: nvme_peer_event::generation",
    ][::core::mem::offset_of!(nvme_peer_event, generation) - 16usize];
    [
        "Offset of field: nvme_peer_event::state",
    ][::core::mem::offset_of!(nvme_peer_event, state) - 20usize];
    [
        "Offset of field: nvme_peer_event::reason",
    ][::core::mem::offset_of!(nvme_peer_event, reason) - 24usize];
    [
        "Offset of field: nvme_peer_event::lost",
    ][::core::mem::offset_of!(nvme_peer_event, lost) - 28usize];
    [
        "Offset of field: nvme_peer_event::object",
    ][::core::mem::offset_of!(nvme_peer_event, object) - 32usize];
    [
        "Offset of field: nvme_peer_event::detail",
    ][::core::mem::offset_of!(nvme_peer_event, detail) - 40usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_status {
    pub magic: __le32,
    pub version: __le32,
    pub state: __le32,
    pub generation: __le32,
    pub qid: __le32,
    pub reason: __le32,
    pub size: __le32,
    pub losses: __le32,
    pub poller_asleep: __le32,
    pub window_seq: __le32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_status"][::core::mem::size_of::<nvme_peer_status>() - 40usize];
    [
        "Alignment of nvme_peer_status",
    ][::core::mem::align_of::<nvme_peer_status>() - 4usize];
    [
        "Offset of field: nvme_peer_status::magic",
    ][::core::mem::offset_of!(nvme_peer_status, magic) - 0usize];
    [
        "Offset of field: nvme_peer_status::version",
    ][::core::mem::offset_of!(nvme_peer_status, version) - 4usize];
    [
        "Offset of field: nvme_peer_status::state",
    ][::core::mem::offset_of!(nvme_peer_status, state) - 8usize];
    [
        "Offset of field: nvme_peer_status::generation",
    ][::core::mem::offset_of!(nvme_peer_status, generation) - 12usize];
    [
        "Offset of field: nvme_peer_status::qid",
    ][::core::mem::offset_of!(nvme_peer_status, qid) - 16usize];
    [
        "Offset of field: nvme_peer_status::reason",
    ][::core::mem::offset_of!(nvme_peer_status, reason) - 20usize];
    [
        "Offset of field: nvme_peer_status::size",
    ][::core::mem::offset_of!(nvme_peer_status, size) - 24usize];
    [
        "Offset of field: nvme_peer_status::losses",
    ][::core::mem::offset_of!(nvme_peer_status, losses) - 28usize];
    [
        "Offset of field: nvme_peer_status::poller_asleep",
    ][::core::mem::offset_of!(nvme_peer_status, poller_asleep) - 32usize];
    [
        "Offset of field: nvme_peer_status::window_seq",
    ][::core::mem::offset_of!(nvme_peer_status, window_seq) - 36usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_status_window {
    pub state: __le32,
    pub epoch: __le32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_status_window",
    ][::core::mem::size_of::<nvme_peer_status_window>() - 8usize];
    [
        "Alignment of nvme_peer_status_window",
    ][::core::mem::align_of::<nvme_peer_status_window>() - 4usize];
    [
        "Offset of field: nvme_peer_status_window::state",
    ][::core::mem::offset_of!(nvme_peer_status_window, state) - 0usize];
    [
        "Offset of field: nvme_peer_status_window::epoch",
    ][::core::mem::offset_of!(nvme_peer_status_window, epoch) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_control {
    pub quiesce: __le32,
    pub seq: __le32,
    pub ack: __le32,
    pub version: __le32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvme_peer_control"][::core::mem::size_of::<nvme_peer_control>() - 16usize];
    [
        "Alignment of nvme_peer_control",
    ][::core::mem::align_of::<nvme_peer_control>() - 4usize];
    [
        "Offset of field: nvme_peer_control::quiesce",
    ][::core::mem::offset_of!(nvme_peer_control, quiesce) - 0usize];
    [
        "Offset of field: nvme_peer_control::seq",
    ][::core::mem::offset_of!(nvme_peer_control, seq) - 4usize];
    [
        "Offset of field: nvme_peer_control::ack",
    ][::core::mem::offset_of!(nvme_peer_control, ack) - 8usize];
    [
        "Offset of field: nvme_peer_control::version",
    ][::core::mem::offset_of!(nvme_peer_control, version) - 12usize];
};
pub const NVME_PEER_IO_WRITE: nvme_peer_io_opcode = 1;
pub const NVME_PEER_IO_READ: nvme_peer_io_opcode = 2;
pub type nvme_peer_io_opcode = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_uring_io {
    pub flags: __u32,
    pub opcode: __u32,
    pub nsid: __u32,
    pub handle: __u32,
    pub offset: __u64,
    pub lba: __u64,
    pub blocks: __u32,
    pub reserved: [__u32; 11usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_uring_io",
    ][::core::mem::size_of::<nvme_peer_uring_io>() - 80usize];
    [
        "Alignment of nvme_peer_uring_io",
    ][::core::mem::align_of::<nvme_peer_uring_io>() - 8usize];
    [
        "Offset of field: nvme_peer_uring_io::flags",
    ][::core::mem::offset_of!(nvme_peer_uring_io, flags) - 0usize];
    [
        "Offset of field: nvme_peer_uring_io::opcode",
    ][::core::mem::offset_of!(nvme_peer_uring_io, opcode) - 4usize];
    [
        "Offset of field: nvme_peer_uring_io::nsid",
    ][::core::mem::offset_of!(nvme_peer_uring_io, nsid) - 8usize];
    [
        "Offset of field: nvme_peer_uring_io::handle",
    ][::core::mem::offset_of!(nvme_peer_uring_io, handle) - 12usize];
    [
        "Offset of field: nvme_peer_uring_io::offset",
    ][::core::mem::offset_of!(nvme_peer_uring_io, offset) - 16usize];
    [
        "Offset of field: nvme_peer_uring_io::lba",
    ][::core::mem::offset_of!(nvme_peer_uring_io, lba) - 24usize];
    [
        "Offset of field: nvme_peer_uring_io::blocks",
    ][::core::mem::offset_of!(nvme_peer_uring_io, blocks) - 32usize];
    [
        "Offset of field: nvme_peer_uring_io::reserved",
    ][::core::mem::offset_of!(nvme_peer_uring_io, reserved) - 36usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_io_range {
    pub offset: __u64,
    pub lba: __u64,
    pub blocks: __u32,
    pub handle: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_io_range",
    ][::core::mem::size_of::<nvme_peer_io_range>() - 24usize];
    [
        "Alignment of nvme_peer_io_range",
    ][::core::mem::align_of::<nvme_peer_io_range>() - 8usize];
    [
        "Offset of field: nvme_peer_io_range::offset",
    ][::core::mem::offset_of!(nvme_peer_io_range, offset) - 0usize];
    [
        "Offset of field: nvme_peer_io_range::lba",
    ][::core::mem::offset_of!(nvme_peer_io_range, lba) - 8usize];
    [
        "Offset of field: nvme_peer_io_range::blocks",
    ][::core::mem::offset_of!(nvme_peer_io_range, blocks) - 16usize];
    [
        "Offset of field: nvme_peer_io_range::handle",
    ][::core::mem::offset_of!(nvme_peer_io_range, handle) - 20usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvme_peer_uring_io_vec {
    pub flags: __u32,
    pub opcode: __u32,
    pub nsid: __u32,
    pub count: __u32,
    pub ranges: __u64,
    pub reserved: [__u32; 14usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvme_peer_uring_io_vec",
    ][::core::mem::size_of::<nvme_peer_uring_io_vec>() - 80usize];
    [
        "Alignment of nvme_peer_uring_io_vec",
    ][::core::mem::align_of::<nvme_peer_uring_io_vec>() - 8usize];
    [
        "Offset of field: nvme_peer_uring_io_vec::flags",
    ][::core::mem::offset_of!(nvme_peer_uring_io_vec, flags) - 0usize];
    [
        "Offset of field: nvme_peer_uring_io_vec::opcode",
    ][::core::mem::offset_of!(nvme_peer_uring_io_vec, opcode) - 4usize];
    [
        "Offset of field: nvme_peer_uring_io_vec::nsid",
    ][::core::mem::offset_of!(nvme_peer_uring_io_vec, nsid) - 8usize];
    [
        "Offset of field: nvme_peer_uring_io_vec::count",
    ][::core::mem::offset_of!(nvme_peer_uring_io_vec, count) - 12usize];
    [
        "Offset of field: nvme_peer_uring_io_vec::ranges",
    ][::core::mem::offset_of!(nvme_peer_uring_io_vec, ranges) - 16usize];
    [
        "Offset of field: nvme_peer_uring_io_vec::reserved",
    ][::core::mem::offset_of!(nvme_peer_uring_io_vec, reserved) - 24usize];
};
pub const NVMEPEER_PCI_TEXT: _bindgen_ty_7 = 24;
pub type _bindgen_ty_7 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_qp {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_ns {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_hostmem {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_mapping {
    _unused: [u8; 0],
}
extern "C" {
    pub fn nvmepeer_open(
        node: *const ::core::ffi::c_char,
        ctrl: *mut *mut nvmepeer,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_close(ctrl: *mut nvmepeer);
}
extern "C" {
    pub fn nvmepeer_fd(ctrl: *const nvmepeer) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_node(ctrl: *const nvmepeer) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_info(
        ctrl: *mut nvmepeer,
        info: *mut nvme_peer_info,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_route_dmabuf(
        ctrl: *mut nvmepeer,
        dmabuf_fd: ::core::ffi::c_int,
        route: *mut nvme_peer_route,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_route_pci(
        ctrl: *mut nvmepeer,
        pci_address: nvme_peer_pci_address,
        route: *mut nvme_peer_route,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_admin(
        ctrl: *mut nvmepeer,
        command: *mut nvme_passthru_cmd,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_buf_import(
        ctrl: *mut nvmepeer,
        dmabuf_fd: ::core::ffi::c_int,
        flags: u32,
        buffer: *mut nvme_peer_buf_import,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_buf_import_part(
        ctrl: *mut nvmepeer,
        buffer: *mut nvme_peer_buf_import,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_buf_release(ctrl: *mut nvmepeer, handle: u32) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_buf_table(
        ctrl: *mut nvmepeer,
        handle: u32,
        offset: u64,
        addresses: *mut u64,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_buf_contiguous(
        ctrl: *mut nvmepeer,
        handle: u32,
        offset: u64,
        length: u64,
        dma: *mut u64,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_hostmem_alloc(
        length: usize,
        memory: *mut *mut nvmepeer_hostmem,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_hostmem_free(memory: *mut nvmepeer_hostmem);
}
extern "C" {
    pub fn nvmepeer_buf_alloc(
        ctrl: *mut nvmepeer,
        length: usize,
        memory: *mut *mut nvmepeer_hostmem,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_hostmem_address(
        memory: *const nvmepeer_hostmem,
    ) -> *mut ::core::ffi::c_void;
}
extern "C" {
    pub fn nvmepeer_hostmem_length(memory: *const nvmepeer_hostmem) -> usize;
}
extern "C" {
    pub fn nvmepeer_hostmem_fd(memory: *const nvmepeer_hostmem) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_create(
        ctrl: *mut nvmepeer,
        request: *mut nvme_peer_qp_create,
        size: usize,
        qp: *mut *mut nvmepeer_qp,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_from_fd(
        fd: ::core::ffi::c_int,
        qp: *mut *mut nvmepeer_qp,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_destroy(qp: *mut nvmepeer_qp);
}
extern "C" {
    pub fn nvmepeer_qp_fd(qp: *const nvmepeer_qp) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_info(
        qp: *mut nvmepeer_qp,
        info: *mut nvme_peer_qp_info,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_events(
        qp: *mut nvmepeer_qp,
        events: *mut nvme_peer_event,
        size: usize,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_rearm(
        qp: *mut nvmepeer_qp,
        losses: u32,
        generation: *mut u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_kick(qp: *mut nvmepeer_qp) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_window_add(
        qp: *mut nvmepeer_qp,
        window: *mut nvme_peer_window_add,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_window_remove(qp: *mut nvmepeer_qp, id: u32) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_window_info(
        qp: *mut nvmepeer_qp,
        id: u32,
        info: *mut nvme_peer_window_info,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_buf_add(
        qp: *mut nvmepeer_qp,
        buffer: *mut nvme_peer_buf_add,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_buf_remove(qp: *mut nvmepeer_qp, slot: u32) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_limits(
        qp: *mut nvmepeer_qp,
        limits: *mut nvme_peer_qp_limits,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_stats(
        qp: *mut nvmepeer_qp,
        stats: *mut nvme_peer_qp_stats,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_seal(qp: *mut nvmepeer_qp) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_export {
    pub fd: ::core::ffi::c_int,
    pub offset: u64,
    pub length: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvmepeer_export"][::core::mem::size_of::<nvmepeer_export>() - 24usize];
    [
        "Alignment of nvmepeer_export",
    ][::core::mem::align_of::<nvmepeer_export>() - 8usize];
    [
        "Offset of field: nvmepeer_export::fd",
    ][::core::mem::offset_of!(nvmepeer_export, fd) - 0usize];
    [
        "Offset of field: nvmepeer_export::offset",
    ][::core::mem::offset_of!(nvmepeer_export, offset) - 8usize];
    [
        "Offset of field: nvmepeer_export::length",
    ][::core::mem::offset_of!(nvmepeer_export, length) - 16usize];
};
extern "C" {
    pub fn nvmepeer_qp_export(
        qp: *mut nvmepeer_qp,
        what: nvme_peer_export,
        flags: u32,
        exported: *mut nvmepeer_export,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_map(
        qp: *mut nvmepeer_qp,
        what: nvme_peer_export,
        mapping: *mut *mut nvmepeer_mapping,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_unmap(mapping: *mut nvmepeer_mapping);
}
extern "C" {
    pub fn nvmepeer_mapping_address(
        mapping: *const nvmepeer_mapping,
    ) -> *mut ::core::ffi::c_void;
}
extern "C" {
    pub fn nvmepeer_mapping_length(mapping: *const nvmepeer_mapping) -> usize;
}
extern "C" {
    pub fn nvmepeer_mapping_base(
        mapping: *const nvmepeer_mapping,
    ) -> *mut ::core::ffi::c_void;
}
extern "C" {
    pub fn nvmepeer_mapping_mapped(mapping: *const nvmepeer_mapping) -> usize;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_ns_info {
    pub size: u32,
    pub nsid: u32,
    pub block_size: u32,
    pub metadata_size: u32,
    pub blocks: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvmepeer_ns_info"][::core::mem::size_of::<nvmepeer_ns_info>() - 24usize];
    [
        "Alignment of nvmepeer_ns_info",
    ][::core::mem::align_of::<nvmepeer_ns_info>() - 8usize];
    [
        "Offset of field: nvmepeer_ns_info::size",
    ][::core::mem::offset_of!(nvmepeer_ns_info, size) - 0usize];
    [
        "Offset of field: nvmepeer_ns_info::nsid",
    ][::core::mem::offset_of!(nvmepeer_ns_info, nsid) - 4usize];
    [
        "Offset of field: nvmepeer_ns_info::block_size",
    ][::core::mem::offset_of!(nvmepeer_ns_info, block_size) - 8usize];
    [
        "Offset of field: nvmepeer_ns_info::metadata_size",
    ][::core::mem::offset_of!(nvmepeer_ns_info, metadata_size) - 12usize];
    [
        "Offset of field: nvmepeer_ns_info::blocks",
    ][::core::mem::offset_of!(nvmepeer_ns_info, blocks) - 16usize];
};
extern "C" {
    pub fn nvmepeer_ns_open(
        node: *const ::core::ffi::c_char,
        ns: *mut *mut nvmepeer_ns,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_ns_close(ns: *mut nvmepeer_ns);
}
extern "C" {
    pub fn nvmepeer_ns_fd(ns: *const nvmepeer_ns) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_ns_info(ns: *const nvmepeer_ns) -> *const nvmepeer_ns_info;
}
extern "C" {
    pub fn nvmepeer_ns_read(
        ns: *mut nvmepeer_ns,
        lba: u64,
        blocks: u32,
        data: *mut ::core::ffi::c_void,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_ns_write(
        ns: *mut nvmepeer_ns,
        lba: u64,
        blocks: u32,
        data: *const ::core::ffi::c_void,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_ns_flush(ns: *mut nvmepeer_ns) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_explanation {
    pub call: *const ::core::ffi::c_char,
    pub error: ::core::ffi::c_int,
    pub status: ::core::ffi::c_int,
    pub what: [::core::ffi::c_char; 160usize],
    pub limit: [::core::ffi::c_char; 320usize],
    pub help: [::core::ffi::c_char; 320usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_explanation",
    ][::core::mem::size_of::<nvmepeer_explanation>() - 816usize];
    [
        "Alignment of nvmepeer_explanation",
    ][::core::mem::align_of::<nvmepeer_explanation>() - 8usize];
    [
        "Offset of field: nvmepeer_explanation::call",
    ][::core::mem::offset_of!(nvmepeer_explanation, call) - 0usize];
    [
        "Offset of field: nvmepeer_explanation::error",
    ][::core::mem::offset_of!(nvmepeer_explanation, error) - 8usize];
    [
        "Offset of field: nvmepeer_explanation::status",
    ][::core::mem::offset_of!(nvmepeer_explanation, status) - 12usize];
    [
        "Offset of field: nvmepeer_explanation::what",
    ][::core::mem::offset_of!(nvmepeer_explanation, what) - 16usize];
    [
        "Offset of field: nvmepeer_explanation::limit",
    ][::core::mem::offset_of!(nvmepeer_explanation, limit) - 176usize];
    [
        "Offset of field: nvmepeer_explanation::help",
    ][::core::mem::offset_of!(nvmepeer_explanation, help) - 496usize];
};
extern "C" {
    pub fn nvmepeer_explain(
        explanation: *mut nvmepeer_explanation,
        size: usize,
    ) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_errors {
    _unused: [u8; 0],
}
extern "C" {
    pub fn nvmepeer_errors_new(errors: *mut *mut nvmepeer_errors) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_errors_free(errors: *mut nvmepeer_errors);
}
extern "C" {
    pub fn nvmepeer_errors_use(errors: *mut nvmepeer_errors) -> *mut nvmepeer_errors;
}
extern "C" {
    pub fn nvmepeer_errors_explain(
        errors: *mut nvmepeer_errors,
        explanation: *mut nvmepeer_explanation,
        size: usize,
    ) -> ::core::ffi::c_int;
}
pub const NVMEPEER_RESULT_COMMAND: nvmepeer_result = 0;
pub const NVMEPEER_RESULT_BUFFER: nvmepeer_result = 1;
pub const NVMEPEER_RESULT_DEVICE: nvmepeer_result = 2;
pub type nvmepeer_result = ::core::ffi::c_uint;
extern "C" {
    pub fn nvmepeer_explain_result(
        kind: nvmepeer_result,
        result: ::core::ffi::c_int,
        explanation: *mut nvmepeer_explanation,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_fail(
        explanation: *const nvmepeer_explanation,
        size: usize,
    ) -> ::core::ffi::c_int;
}
pub const NVMEPEER_FILE_NOT_REGULAR: nvmepeer_file_obstacle = 1;
pub const NVMEPEER_FILE_NO_DISK: nvmepeer_file_obstacle = 2;
pub const NVMEPEER_FILE_OTHER_DISK: nvmepeer_file_obstacle = 4;
pub const NVMEPEER_FILE_SYSTEM: nvmepeer_file_obstacle = 8;
pub const NVMEPEER_FILE_READ_ONLY: nvmepeer_file_obstacle = 16;
pub const NVMEPEER_FILE_NOT_OWNER: nvmepeer_file_obstacle = 32;
pub const NVMEPEER_FILE_IMMUTABLE: nvmepeer_file_obstacle = 64;
pub const NVMEPEER_FILE_APPEND_ONLY: nvmepeer_file_obstacle = 128;
pub const NVMEPEER_FILE_ENCRYPTED: nvmepeer_file_obstacle = 256;
pub const NVMEPEER_FILE_COMPRESSED: nvmepeer_file_obstacle = 512;
pub const NVMEPEER_FILE_VERITY: nvmepeer_file_obstacle = 1024;
pub const NVMEPEER_FILE_DAX: nvmepeer_file_obstacle = 2048;
pub const NVMEPEER_FILE_JOURNALLED: nvmepeer_file_obstacle = 4096;
pub const NVMEPEER_FILE_INLINE: nvmepeer_file_obstacle = 8192;
pub const NVMEPEER_FILE_SHARED: nvmepeer_file_obstacle = 16384;
pub const NVMEPEER_FILE_UNPLACED: nvmepeer_file_obstacle = 32768;
pub const NVMEPEER_FILE_EMPTY: nvmepeer_file_obstacle = 65536;
pub const NVMEPEER_FILE_HOLES: nvmepeer_file_obstacle = 131072;
pub const NVMEPEER_FILE_UNWRITTEN: nvmepeer_file_obstacle = 262144;
pub type nvmepeer_file_obstacle = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_file_info {
    pub size: u32,
    pub obstacles: u32,
    pub bytes: u64,
    pub extents: u64,
    pub holes: u64,
    pub unwritten: u64,
    pub file_system: [::core::ffi::c_char; 16usize],
    pub disk: [::core::ffi::c_char; 32usize],
    pub controller: [::core::ffi::c_char; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_file_info",
    ][::core::mem::size_of::<nvmepeer_file_info>() - 104usize];
    [
        "Alignment of nvmepeer_file_info",
    ][::core::mem::align_of::<nvmepeer_file_info>() - 8usize];
    [
        "Offset of field: nvmepeer_file_info::size",
    ][::core::mem::offset_of!(nvmepeer_file_info, size) - 0usize];
    [
        "Offset of field: nvmepeer_file_info::obstacles",
    ][::core::mem::offset_of!(nvmepeer_file_info, obstacles) - 4usize];
    [
        "Offset of field: nvmepeer_file_info::bytes",
    ][::core::mem::offset_of!(nvmepeer_file_info, bytes) - 8usize];
    [
        "Offset of field: nvmepeer_file_info::extents",
    ][::core::mem::offset_of!(nvmepeer_file_info, extents) - 16usize];
    [
        "Offset of field: nvmepeer_file_info::holes",
    ][::core::mem::offset_of!(nvmepeer_file_info, holes) - 24usize];
    [
        "Offset of field: nvmepeer_file_info::unwritten",
    ][::core::mem::offset_of!(nvmepeer_file_info, unwritten) - 32usize];
    [
        "Offset of field: nvmepeer_file_info::file_system",
    ][::core::mem::offset_of!(nvmepeer_file_info, file_system) - 40usize];
    [
        "Offset of field: nvmepeer_file_info::disk",
    ][::core::mem::offset_of!(nvmepeer_file_info, disk) - 56usize];
    [
        "Offset of field: nvmepeer_file_info::controller",
    ][::core::mem::offset_of!(nvmepeer_file_info, controller) - 88usize];
};
extern "C" {
    pub fn nvmepeer_file_check(
        fd: ::core::ffi::c_int,
        info: *mut nvmepeer_file_info,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_file_obstacle_name(
        obstacle: nvmepeer_file_obstacle,
    ) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_file_explain(
        info: *const nvmepeer_file_info,
        obstacle: nvmepeer_file_obstacle,
        explanation: *mut nvmepeer_explanation,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_file_extents(
        ctrl: *mut nvmepeer,
        extents: *mut nvme_peer_extents,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_file_open(
        qp: *mut nvmepeer_qp,
        path: *const ::core::ffi::c_char,
        window: *mut nvme_peer_window_add,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_state_name(
        state: nvme_peer_ctrl_state,
    ) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_qp_state_name(
        state: nvme_peer_qp_state,
    ) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_mode_name(mode: nvme_peer_mode) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_domain_name(domain: nvme_peer_domain) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_verdict_name(
        verdict: nvme_peer_route_verdict,
    ) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_reason_name(
        reason: nvme_peer_route_reason,
    ) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_export_name(what: nvme_peer_export) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_status_text(
        status: ::core::ffi::c_int,
    ) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_route_describe(
        route: *const nvme_peer_route,
        path: *const nvme_peer_path,
        text: *mut ::core::ffi::c_char,
        length: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_pci_parse(
        text: *const ::core::ffi::c_char,
        pci_address: *mut nvme_peer_pci_address,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_pci_format(
        pci_address: nvme_peer_pci_address,
        text: *mut ::core::ffi::c_char,
    ) -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_version() -> *const ::core::ffi::c_char;
}
extern "C" {
    pub fn nvmepeer_version_number() -> u32;
}
pub const NVMEPEER_OK: nvmepeer_error = 0;
pub const NVMEPEER_AGAIN: nvmepeer_error = -1;
pub const NVMEPEER_E_TIMEOUT: nvmepeer_error = -2;
pub const NVMEPEER_E_LOST: nvmepeer_error = -3;
pub const NVMEPEER_E_FULL: nvmepeer_error = -4;
pub const NVMEPEER_E_RANGE: nvmepeer_error = -5;
pub const NVMEPEER_E_TOO_LARGE: nvmepeer_error = -6;
pub const NVMEPEER_E_ALIGN: nvmepeer_error = -7;
pub const NVMEPEER_E_NO_LIST: nvmepeer_error = -8;
pub const NVMEPEER_E_ENTRIES: nvmepeer_error = -9;
pub const NVMEPEER_E_CIDS: nvmepeer_error = -10;
pub const NVMEPEER_E_ADDRESS: nvmepeer_error = -11;
pub const NVMEPEER_E_GEOMETRY: nvmepeer_error = -12;
pub const NVMEPEER_E_TOKEN: nvmepeer_error = -13;
pub const NVMEPEER_E_PLACEMENT: nvmepeer_error = -14;
pub const NVMEPEER_E_METADATA: nvmepeer_error = -15;
pub const NVMEPEER_E_BUSY: nvmepeer_error = -16;
pub const NVMEPEER_E_LAYOUT: nvmepeer_error = -17;
pub const NVMEPEER_E_OPCODE: nvmepeer_error = -18;
pub type nvmepeer_error = ::core::ffi::c_int;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_buffer {
    pub length: u64,
    pub dma: u64,
    pub pages: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvmepeer_buffer"][::core::mem::size_of::<nvmepeer_buffer>() - 24usize];
    [
        "Alignment of nvmepeer_buffer",
    ][::core::mem::align_of::<nvmepeer_buffer>() - 8usize];
    [
        "Offset of field: nvmepeer_buffer::length",
    ][::core::mem::offset_of!(nvmepeer_buffer, length) - 0usize];
    [
        "Offset of field: nvmepeer_buffer::dma",
    ][::core::mem::offset_of!(nvmepeer_buffer, dma) - 8usize];
    [
        "Offset of field: nvmepeer_buffer::pages",
    ][::core::mem::offset_of!(nvmepeer_buffer, pages) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_geometry {
    pub version: u32,
    pub flags: u32,
    pub sq: u64,
    pub cq: u64,
    pub sq_doorbell: u64,
    pub cq_doorbell: u64,
    pub status: u64,
    pub control: u64,
    pub state: u64,
    pub list_area: u64,
    pub list_memory: nvmepeer_buffer,
    pub readback: u64,
    pub timeout_ns: u64,
    pub sq_entries: u32,
    pub cq_entries: u32,
    pub cids: u32,
    pub list_bytes: u32,
    pub generation: u32,
    pub qid: u32,
    pub nsid: u32,
    pub lba_shift: u32,
    pub page_shift: u32,
    pub max_transfer: u32,
    pub metadata_bytes: u32,
    pub reserve: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_geometry",
    ][::core::mem::size_of::<nvmepeer_geometry>() - 160usize];
    [
        "Alignment of nvmepeer_geometry",
    ][::core::mem::align_of::<nvmepeer_geometry>() - 8usize];
    [
        "Offset of field: nvmepeer_geometry::version",
    ][::core::mem::offset_of!(nvmepeer_geometry, version) - 0usize];
    [
        "Offset of field: nvmepeer_geometry::flags",
    ][::core::mem::offset_of!(nvmepeer_geometry, flags) - 4usize];
    [
        "Offset of field: nvmepeer_geometry::sq",
    ][::core::mem::offset_of!(nvmepeer_geometry, sq) - 8usize];
    [
        "Offset of field: nvmepeer_geometry::cq",
    ][::core::mem::offset_of!(nvmepeer_geometry, cq) - 16usize];
    [
        "Offset of field: nvmepeer_geometry::sq_doorbell",
    ][::core::mem::offset_of!(nvmepeer_geometry, sq_doorbell) - 24usize];
    [
        "Offset of field: nvmepeer_geometry::cq_doorbell",
    ][::core::mem::offset_of!(nvmepeer_geometry, cq_doorbell) - 32usize];
    [
        "Offset of field: nvmepeer_geometry::status",
    ][::core::mem::offset_of!(nvmepeer_geometry, status) - 40usize];
    [
        "Offset of field: nvmepeer_geometry::control",
    ][::core::mem::offset_of!(nvmepeer_geometry, control) - 48usize];
    [
        "Offset of field: nvmepeer_geometry::state",
    ][::core::mem::offset_of!(nvmepeer_geometry, state) - 56usize];
    [
        "Offset of field: nvmepeer_geometry::list_area",
    ][::core::mem::offset_of!(nvmepeer_geometry, list_area) - 64usize];
    [
        "Offset of field: nvmepeer_geometry::list_memory",
    ][::core::mem::offset_of!(nvmepeer_geometry, list_memory) - 72usize];
    [
        "Offset of field: nvmepeer_geometry::readback",
    ][::core::mem::offset_of!(nvmepeer_geometry, readback) - 96usize];
    [
        "Offset of field: nvmepeer_geometry::timeout_ns",
    ][::core::mem::offset_of!(nvmepeer_geometry, timeout_ns) - 104usize];
    [
        "Offset of field: nvmepeer_geometry::sq_entries",
    ][::core::mem::offset_of!(nvmepeer_geometry, sq_entries) - 112usize];
    [
        "Offset of field: nvmepeer_geometry::cq_entries",
    ][::core::mem::offset_of!(nvmepeer_geometry, cq_entries) - 116usize];
    [
        "Offset of field: nvmepeer_geometry::cids",
    ][::core::mem::offset_of!(nvmepeer_geometry, cids) - 120usize];
    [
        "Offset of field: nvmepeer_geometry::list_bytes",
    ][::core::mem::offset_of!(nvmepeer_geometry, list_bytes) - 124usize];
    [
        "Offset of field: nvmepeer_geometry::generation",
    ][::core::mem::offset_of!(nvmepeer_geometry, generation) - 128usize];
    [
        "Offset of field: nvmepeer_geometry::qid",
    ][::core::mem::offset_of!(nvmepeer_geometry, qid) - 132usize];
    [
        "Offset of field: nvmepeer_geometry::nsid",
    ][::core::mem::offset_of!(nvmepeer_geometry, nsid) - 136usize];
    [
        "Offset of field: nvmepeer_geometry::lba_shift",
    ][::core::mem::offset_of!(nvmepeer_geometry, lba_shift) - 140usize];
    [
        "Offset of field: nvmepeer_geometry::page_shift",
    ][::core::mem::offset_of!(nvmepeer_geometry, page_shift) - 144usize];
    [
        "Offset of field: nvmepeer_geometry::max_transfer",
    ][::core::mem::offset_of!(nvmepeer_geometry, max_transfer) - 148usize];
    [
        "Offset of field: nvmepeer_geometry::metadata_bytes",
    ][::core::mem::offset_of!(nvmepeer_geometry, metadata_bytes) - 152usize];
    [
        "Offset of field: nvmepeer_geometry::reserve",
    ][::core::mem::offset_of!(nvmepeer_geometry, reserve) - 156usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_state {
    pub tail: u64,
    pub pad0: [u8; 120usize],
    pub credits: u32,
    pub lost: u32,
    pub abandoned: u32,
    pub protocol_errors: u32,
    pub generation: u32,
    pub doorbell_offer: u32,
    pub tail_rung: u32,
    pub layout: u32,
    pub pad1: [u8; 96usize],
    pub head: u32,
    pub pad2: [u8; 60usize],
    pub head_rung: u32,
    pub pad3: [u8; 60usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvmepeer_state"][::core::mem::size_of::<nvmepeer_state>() - 384usize];
    ["Alignment of nvmepeer_state"][::core::mem::align_of::<nvmepeer_state>() - 8usize];
    [
        "Offset of field: nvmepeer_state::tail",
    ][::core::mem::offset_of!(nvmepeer_state, tail) - 0usize];
    [
        "Offset of field: nvmepeer_state::pad0",
    ][::core::mem::offset_of!(nvmepeer_state, pad0) - 8usize];
    [
        "Offset of field: nvmepeer_state::credits",
    ][::core::mem::offset_of!(nvmepeer_state, credits) - 128usize];
    [
        "Offset of field: nvmepeer_state::lost",
    ][::core::mem::offset_of!(nvmepeer_state, lost) - 132usize];
    [
        "Offset of field: nvmepeer_state::abandoned",
    ][::core::mem::offset_of!(nvmepeer_state, abandoned) - 136usize];
    [
        "Offset of field: nvmepeer_state::protocol_errors",
    ][::core::mem::offset_of!(nvmepeer_state, protocol_errors) - 140usize];
    [
        "Offset of field: nvmepeer_state::generation",
    ][::core::mem::offset_of!(nvmepeer_state, generation) - 144usize];
    [
        "Offset of field: nvmepeer_state::doorbell_offer",
    ][::core::mem::offset_of!(nvmepeer_state, doorbell_offer) - 148usize];
    [
        "Offset of field: nvmepeer_state::tail_rung",
    ][::core::mem::offset_of!(nvmepeer_state, tail_rung) - 152usize];
    [
        "Offset of field: nvmepeer_state::layout",
    ][::core::mem::offset_of!(nvmepeer_state, layout) - 156usize];
    [
        "Offset of field: nvmepeer_state::pad1",
    ][::core::mem::offset_of!(nvmepeer_state, pad1) - 160usize];
    [
        "Offset of field: nvmepeer_state::head",
    ][::core::mem::offset_of!(nvmepeer_state, head) - 256usize];
    [
        "Offset of field: nvmepeer_state::pad2",
    ][::core::mem::offset_of!(nvmepeer_state, pad2) - 260usize];
    [
        "Offset of field: nvmepeer_state::head_rung",
    ][::core::mem::offset_of!(nvmepeer_state, head_rung) - 320usize];
    [
        "Offset of field: nvmepeer_state::pad3",
    ][::core::mem::offset_of!(nvmepeer_state, pad3) - 324usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_queue {
    pub sq: u64,
    pub cq: u64,
    pub sq_doorbell: u64,
    pub cq_doorbell: u64,
    pub state: *mut nvmepeer_state,
    pub free_cids: *mut u32,
    pub abandoned_cids: *mut u32,
    pub results: *mut u64,
    pub owners: *mut u32,
    pub sq_mask: u32,
    pub cq_mask: u32,
    pub cid_words_mask: u32,
    pub nsid: u32,
    pub flags: u32,
    pub lba_shift: u32,
    pub page_shift: u32,
    pub max_transfer: u32,
    pub timeout_ns: u64,
    pub status: u64,
    pub control: u64,
    pub readback: u64,
    pub list_area: u64,
    pub list_memory: nvmepeer_buffer,
    pub list_bytes: u32,
    pub cq_shift: u32,
    pub generation: u32,
    pub qid: u32,
    pub layout: u32,
    pub reserve: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvmepeer_queue"][::core::mem::size_of::<nvmepeer_queue>() - 192usize];
    ["Alignment of nvmepeer_queue"][::core::mem::align_of::<nvmepeer_queue>() - 8usize];
    [
        "Offset of field: nvmepeer_queue::sq",
    ][::core::mem::offset_of!(nvmepeer_queue, sq) - 0usize];
    [
        "Offset of field: nvmepeer_queue::cq",
    ][::core::mem::offset_of!(nvmepeer_queue, cq) - 8usize];
    [
        "Offset of field: nvmepeer_queue::sq_doorbell",
    ][::core::mem::offset_of!(nvmepeer_queue, sq_doorbell) - 16usize];
    [
        "Offset of field: nvmepeer_queue::cq_doorbell",
    ][::core::mem::offset_of!(nvmepeer_queue, cq_doorbell) - 24usize];
    [
        "Offset of field: nvmepeer_queue::state",
    ][::core::mem::offset_of!(nvmepeer_queue, state) - 32usize];
    [
        "Offset of field: nvmepeer_queue::free_cids",
    ][::core::mem::offset_of!(nvmepeer_queue, free_cids) - 40usize];
    [
        "Offset of field: nvmepeer_queue::abandoned_cids",
    ][::core::mem::offset_of!(nvmepeer_queue, abandoned_cids) - 48usize];
    [
        "Offset of field: nvmepeer_queue::results",
    ][::core::mem::offset_of!(nvmepeer_queue, results) - 56usize];
    [
        "Offset of field: nvmepeer_queue::owners",
    ][::core::mem::offset_of!(nvmepeer_queue, owners) - 64usize];
    [
        "Offset of field: nvmepeer_queue::sq_mask",
    ][::core::mem::offset_of!(nvmepeer_queue, sq_mask) - 72usize];
    [
        "Offset of field: nvmepeer_queue::cq_mask",
    ][::core::mem::offset_of!(nvmepeer_queue, cq_mask) - 76usize];
    [
        "Offset of field: nvmepeer_queue::cid_words_mask",
    ][::core::mem::offset_of!(nvmepeer_queue, cid_words_mask) - 80usize];
    [
        "Offset of field: nvmepeer_queue::nsid",
    ][::core::mem::offset_of!(nvmepeer_queue, nsid) - 84usize];
    [
        "Offset of field: nvmepeer_queue::flags",
    ][::core::mem::offset_of!(nvmepeer_queue, flags) - 88usize];
    [
        "Offset of field: nvmepeer_queue::lba_shift",
    ][::core::mem::offset_of!(nvmepeer_queue, lba_shift) - 92usize];
    [
        "Offset of field: nvmepeer_queue::page_shift",
    ][::core::mem::offset_of!(nvmepeer_queue, page_shift) - 96usize];
    [
        "Offset of field: nvmepeer_queue::max_transfer",
    ][::core::mem::offset_of!(nvmepeer_queue, max_transfer) - 100usize];
    [
        "Offset of field: nvmepeer_queue::timeout_ns",
    ][::core::mem::offset_of!(nvmepeer_queue, timeout_ns) - 104usize];
    [
        "Offset of field: nvmepeer_queue::status",
    ][::core::mem::offset_of!(nvmepeer_queue, status) - 112usize];
    [
        "Offset of field: nvmepeer_queue::control",
    ][::core::mem::offset_of!(nvmepeer_queue, control) - 120usize];
    [
        "Offset of field: nvmepeer_queue::readback",
    ][::core::mem::offset_of!(nvmepeer_queue, readback) - 128usize];
    [
        "Offset of field: nvmepeer_queue::list_area",
    ][::core::mem::offset_of!(nvmepeer_queue, list_area) - 136usize];
    [
        "Offset of field: nvmepeer_queue::list_memory",
    ][::core::mem::offset_of!(nvmepeer_queue, list_memory) - 144usize];
    [
        "Offset of field: nvmepeer_queue::list_bytes",
    ][::core::mem::offset_of!(nvmepeer_queue, list_bytes) - 168usize];
    [
        "Offset of field: nvmepeer_queue::cq_shift",
    ][::core::mem::offset_of!(nvmepeer_queue, cq_shift) - 172usize];
    [
        "Offset of field: nvmepeer_queue::generation",
    ][::core::mem::offset_of!(nvmepeer_queue, generation) - 176usize];
    [
        "Offset of field: nvmepeer_queue::qid",
    ][::core::mem::offset_of!(nvmepeer_queue, qid) - 180usize];
    [
        "Offset of field: nvmepeer_queue::layout",
    ][::core::mem::offset_of!(nvmepeer_queue, layout) - 184usize];
    [
        "Offset of field: nvmepeer_queue::reserve",
    ][::core::mem::offset_of!(nvmepeer_queue, reserve) - 188usize];
};
pub const NVMEPEER_VIEW_CPU: nvmepeer_view = 1;
pub const NVMEPEER_VIEW_DATA_IN_HOST: nvmepeer_view = 2;
pub const NVMEPEER_VIEW_DATA_ELSEWHERE: nvmepeer_view = 4;
pub const NVMEPEER_VIEW_DATA_IN_DEVICE: nvmepeer_view = 8;
pub const NVMEPEER_VIEW_DESCRIPTORS: nvmepeer_view = 16;
pub type nvmepeer_view = ::core::ffi::c_uint;
extern "C" {
    pub fn nvmepeer_data_view(
        qp_info: *const nvme_peer_qp_info,
        data: *const nvme_peer_pci_address,
    ) -> u32;
}
extern "C" {
    pub fn nvmepeer_geometry_build(
        info: *const nvme_peer_info,
        qp_info: *const nvme_peer_qp_info,
        ns: *const nvmepeer_ns_info,
        view: u32,
        doorbell_pages: u64,
        geometry: *mut nvmepeer_geometry,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_qp_geometry(
        ctrl: *mut nvmepeer,
        qp: *mut nvmepeer_qp,
        ns: *const nvmepeer_ns_info,
        view: u32,
        doorbell_pages: u64,
        geometry: *mut nvmepeer_geometry,
        size: usize,
    ) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_cpu_peer {
    _unused: [u8; 0],
}
extern "C" {
    pub fn nvmepeer_cpu_peer_open(
        ctrl: *mut nvmepeer,
        ns: *const nvmepeer_ns_info,
        entries: u32,
        data_bytes: usize,
        peer: *mut *mut nvmepeer_cpu_peer,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_cpu_peer_close(peer: *mut nvmepeer_cpu_peer);
}
extern "C" {
    pub fn nvmepeer_cpu_peer_queue(
        peer: *const nvmepeer_cpu_peer,
    ) -> *const nvmepeer_queue;
}
extern "C" {
    pub fn nvmepeer_cpu_peer_data(
        peer: *const nvmepeer_cpu_peer,
    ) -> *const nvmepeer_buffer;
}
extern "C" {
    pub fn nvmepeer_cpu_peer_address(
        peer: *const nvmepeer_cpu_peer,
    ) -> *mut ::core::ffi::c_void;
}
extern "C" {
    pub fn nvmepeer_cpu_peer_qp(peer: *const nvmepeer_cpu_peer) -> *mut nvmepeer_qp;
}
extern "C" {
    pub fn nvmepeer_cpu_peer_recover(
        peer: *mut nvmepeer_cpu_peer,
        timeout_ms: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_cpu_peer_read(
        peer: *mut nvmepeer_cpu_peer,
        offset: u64,
        lba: u64,
        blocks: u32,
        timeout_ms: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_cpu_peer_write(
        peer: *mut nvmepeer_cpu_peer,
        offset: u64,
        lba: u64,
        blocks: u32,
        timeout_ms: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
}
pub const NVMEPEER_SERVE_NAMESPACES: _bindgen_ty_8 = 64;
pub const NVMEPEER_SERVE_BUFFERS: _bindgen_ty_8 = 64;
pub type _bindgen_ty_8 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_serve {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_serve_options {
    pub size: u32,
    pub flags: u32,
    pub entries: u32,
    pub depth: u32,
    pub max_transfer: u32,
    pub reserved: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_serve_options",
    ][::core::mem::size_of::<nvmepeer_serve_options>() - 24usize];
    [
        "Alignment of nvmepeer_serve_options",
    ][::core::mem::align_of::<nvmepeer_serve_options>() - 4usize];
    [
        "Offset of field: nvmepeer_serve_options::size",
    ][::core::mem::offset_of!(nvmepeer_serve_options, size) - 0usize];
    [
        "Offset of field: nvmepeer_serve_options::flags",
    ][::core::mem::offset_of!(nvmepeer_serve_options, flags) - 4usize];
    [
        "Offset of field: nvmepeer_serve_options::entries",
    ][::core::mem::offset_of!(nvmepeer_serve_options, entries) - 8usize];
    [
        "Offset of field: nvmepeer_serve_options::depth",
    ][::core::mem::offset_of!(nvmepeer_serve_options, depth) - 12usize];
    [
        "Offset of field: nvmepeer_serve_options::max_transfer",
    ][::core::mem::offset_of!(nvmepeer_serve_options, max_transfer) - 16usize];
    [
        "Offset of field: nvmepeer_serve_options::reserved",
    ][::core::mem::offset_of!(nvmepeer_serve_options, reserved) - 20usize];
};
extern "C" {
    pub fn nvmepeer_serve_create(
        options: *const nvmepeer_serve_options,
        serve: *mut *mut nvmepeer_serve,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_serve_destroy(serve: *mut nvmepeer_serve);
}
extern "C" {
    pub fn nvmepeer_serve_add_fd(
        serve: *mut nvmepeer_serve,
        fd: ::core::ffi::c_int,
        block_size: u32,
        ns: *mut nvmepeer_ns_info,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_serve_add_buffer(
        serve: *mut nvmepeer_serve,
        address: *mut ::core::ffi::c_void,
        length: u64,
        buffer: *mut nvmepeer_buffer,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_serve_geometry(
        serve: *mut nvmepeer_serve,
        ns: *const nvmepeer_ns_info,
        view: u32,
        geometry: *mut nvmepeer_geometry,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_serve_export(
        serve: *mut nvmepeer_serve,
        what: nvme_peer_export,
        exported: *mut nvmepeer_export,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_serve_run(serve: *mut nvmepeer_serve) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_serve_stop(serve: *mut nvmepeer_serve);
}
extern "C" {
    pub fn nvmepeer_serve_kick(serve: *mut nvmepeer_serve);
}
extern "C" {
    pub fn nvmepeer_serve_rearm(
        serve: *mut nvmepeer_serve,
        losses: *mut u32,
    ) -> ::core::ffi::c_int;
}
