// SPDX-License-Identifier: MIT OR GPL-2.0
//! The C library as it is: <nvmepeer_store.h>.
// Written by bindgen from those headers (make -C rust bindings), and never by hand.

pub const NVMEPEER_STORE_PIECE_BYTES: u32 = 131072;
pub const NVMEPEER_STORE_TAG: _bindgen_ty_3 = 64;
pub const NVMEPEER_STORE_MEMBERS: _bindgen_ty_3 = 64;
pub type _bindgen_ty_3 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_list_item {
    _unused: [u8; 0],
}
pub const NVMEPEER_STORE_FORCE: nvmepeer_store_flags = 1;
pub const NVMEPEER_STORE_DEGRADED: nvmepeer_store_flags = 2;
pub const NVMEPEER_STORE_READ_ONLY: nvmepeer_store_flags = 4;
pub type nvmepeer_store_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_options {
    pub size: u32,
    pub flags: u32,
    pub page_bytes: u32,
    pub slots: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_options",
    ][::core::mem::size_of::<nvmepeer_store_options>() - 16usize];
    [
        "Alignment of nvmepeer_store_options",
    ][::core::mem::align_of::<nvmepeer_store_options>() - 4usize];
    [
        "Offset of field: nvmepeer_store_options::size",
    ][::core::mem::offset_of!(nvmepeer_store_options, size) - 0usize];
    [
        "Offset of field: nvmepeer_store_options::flags",
    ][::core::mem::offset_of!(nvmepeer_store_options, flags) - 4usize];
    [
        "Offset of field: nvmepeer_store_options::page_bytes",
    ][::core::mem::offset_of!(nvmepeer_store_options, page_bytes) - 8usize];
    [
        "Offset of field: nvmepeer_store_options::slots",
    ][::core::mem::offset_of!(nvmepeer_store_options, slots) - 12usize];
};
extern "C" {
    pub fn nvmepeer_store_create(
        members: *const *const ::core::ffi::c_char,
        count: u32,
        options: *const nvmepeer_store_options,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_open(
        members: *const *const ::core::ffi::c_char,
        count: u32,
        flags: u32,
        store: *mut *mut nvmepeer_store,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_close(store: *mut nvmepeer_store);
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_info {
    pub size: u32,
    pub members: u32,
    pub page_bytes: u32,
    pub block_bytes: u32,
    pub slots: u64,
    pub slot_bytes: u64,
    pub free_slots: u64,
    pub live: u64,
    pub emptied: u64,
    pub uuid: [u8; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_info",
    ][::core::mem::size_of::<nvmepeer_store_info>() - 72usize];
    [
        "Alignment of nvmepeer_store_info",
    ][::core::mem::align_of::<nvmepeer_store_info>() - 8usize];
    [
        "Offset of field: nvmepeer_store_info::size",
    ][::core::mem::offset_of!(nvmepeer_store_info, size) - 0usize];
    [
        "Offset of field: nvmepeer_store_info::members",
    ][::core::mem::offset_of!(nvmepeer_store_info, members) - 4usize];
    [
        "Offset of field: nvmepeer_store_info::page_bytes",
    ][::core::mem::offset_of!(nvmepeer_store_info, page_bytes) - 8usize];
    [
        "Offset of field: nvmepeer_store_info::block_bytes",
    ][::core::mem::offset_of!(nvmepeer_store_info, block_bytes) - 12usize];
    [
        "Offset of field: nvmepeer_store_info::slots",
    ][::core::mem::offset_of!(nvmepeer_store_info, slots) - 16usize];
    [
        "Offset of field: nvmepeer_store_info::slot_bytes",
    ][::core::mem::offset_of!(nvmepeer_store_info, slot_bytes) - 24usize];
    [
        "Offset of field: nvmepeer_store_info::free_slots",
    ][::core::mem::offset_of!(nvmepeer_store_info, free_slots) - 32usize];
    [
        "Offset of field: nvmepeer_store_info::live",
    ][::core::mem::offset_of!(nvmepeer_store_info, live) - 40usize];
    [
        "Offset of field: nvmepeer_store_info::emptied",
    ][::core::mem::offset_of!(nvmepeer_store_info, emptied) - 48usize];
    [
        "Offset of field: nvmepeer_store_info::uuid",
    ][::core::mem::offset_of!(nvmepeer_store_info, uuid) - 56usize];
};
extern "C" {
    pub fn nvmepeer_store_info(
        store: *mut nvmepeer_store,
        info: *mut nvmepeer_store_info,
        size: usize,
    ) -> ::core::ffi::c_int;
}
pub const NVMEPEER_STORE_PEER: nvmepeer_store_item_flags = 1;
pub const NVMEPEER_STORE_PINNED: nvmepeer_store_item_flags = 2;
pub type nvmepeer_store_item_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_item {
    pub slot: u32,
    pub length: u32,
    pub generation: u64,
    pub data: *mut ::core::ffi::c_void,
    pub result: ::core::ffi::c_int,
    pub flags: u32,
    pub tag: [u8; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_item",
    ][::core::mem::size_of::<nvmepeer_store_item>() - 96usize];
    [
        "Alignment of nvmepeer_store_item",
    ][::core::mem::align_of::<nvmepeer_store_item>() - 8usize];
    [
        "Offset of field: nvmepeer_store_item::slot",
    ][::core::mem::offset_of!(nvmepeer_store_item, slot) - 0usize];
    [
        "Offset of field: nvmepeer_store_item::length",
    ][::core::mem::offset_of!(nvmepeer_store_item, length) - 4usize];
    [
        "Offset of field: nvmepeer_store_item::generation",
    ][::core::mem::offset_of!(nvmepeer_store_item, generation) - 8usize];
    [
        "Offset of field: nvmepeer_store_item::data",
    ][::core::mem::offset_of!(nvmepeer_store_item, data) - 16usize];
    [
        "Offset of field: nvmepeer_store_item::result",
    ][::core::mem::offset_of!(nvmepeer_store_item, result) - 24usize];
    [
        "Offset of field: nvmepeer_store_item::flags",
    ][::core::mem::offset_of!(nvmepeer_store_item, flags) - 28usize];
    [
        "Offset of field: nvmepeer_store_item::tag",
    ][::core::mem::offset_of!(nvmepeer_store_item, tag) - 32usize];
};
extern "C" {
    pub fn nvmepeer_store_alloc(
        store: *mut nvmepeer_store,
        slots: *mut u32,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_free(
        store: *mut nvmepeer_store,
        items: *mut nvmepeer_store_item,
        count: u32,
        timeout_ms: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_write(
        store: *mut nvmepeer_store,
        items: *mut nvmepeer_store_item,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_commit(
        store: *mut nvmepeer_store,
        items: *mut nvmepeer_store_item,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_read(
        store: *mut nvmepeer_store,
        items: *mut nvmepeer_store_item,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_pin(
        store: *mut nvmepeer_store,
        items: *mut nvmepeer_store_item,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_unpin(
        store: *mut nvmepeer_store,
        items: *mut nvmepeer_store_item,
        count: u32,
    );
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_place {
    pub size: u32,
    pub member: u32,
    pub lba: u64,
    pub blocks: u32,
    pub block_bytes: u32,
    pub nsid: u32,
    pub reserved: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_place",
    ][::core::mem::size_of::<nvmepeer_store_place>() - 32usize];
    [
        "Alignment of nvmepeer_store_place",
    ][::core::mem::align_of::<nvmepeer_store_place>() - 8usize];
    [
        "Offset of field: nvmepeer_store_place::size",
    ][::core::mem::offset_of!(nvmepeer_store_place, size) - 0usize];
    [
        "Offset of field: nvmepeer_store_place::member",
    ][::core::mem::offset_of!(nvmepeer_store_place, member) - 4usize];
    [
        "Offset of field: nvmepeer_store_place::lba",
    ][::core::mem::offset_of!(nvmepeer_store_place, lba) - 8usize];
    [
        "Offset of field: nvmepeer_store_place::blocks",
    ][::core::mem::offset_of!(nvmepeer_store_place, blocks) - 16usize];
    [
        "Offset of field: nvmepeer_store_place::block_bytes",
    ][::core::mem::offset_of!(nvmepeer_store_place, block_bytes) - 20usize];
    [
        "Offset of field: nvmepeer_store_place::nsid",
    ][::core::mem::offset_of!(nvmepeer_store_place, nsid) - 24usize];
    [
        "Offset of field: nvmepeer_store_place::reserved",
    ][::core::mem::offset_of!(nvmepeer_store_place, reserved) - 28usize];
};
extern "C" {
    pub fn nvmepeer_store_place(
        store: *mut nvmepeer_store,
        slot: u32,
        place: *mut nvmepeer_store_place,
        size: usize,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_fill_list(
        store: *mut nvmepeer_store,
        member: u32,
        slots: *const nvmepeer_store_item,
        items: *mut nvmepeer_list_item,
        count: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_scan(
        store: *mut nvmepeer_store,
        position: *mut u64,
        items: *mut nvmepeer_store_item,
        count: u32,
    ) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_report {
    pub size: u32,
    pub reserved: u32,
    pub values: u64,
    pub verified: u64,
    pub unverified: u64,
    pub damaged_values: u64,
    pub damaged_entries: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_report",
    ][::core::mem::size_of::<nvmepeer_store_report>() - 48usize];
    [
        "Alignment of nvmepeer_store_report",
    ][::core::mem::align_of::<nvmepeer_store_report>() - 8usize];
    [
        "Offset of field: nvmepeer_store_report::size",
    ][::core::mem::offset_of!(nvmepeer_store_report, size) - 0usize];
    [
        "Offset of field: nvmepeer_store_report::reserved",
    ][::core::mem::offset_of!(nvmepeer_store_report, reserved) - 4usize];
    [
        "Offset of field: nvmepeer_store_report::values",
    ][::core::mem::offset_of!(nvmepeer_store_report, values) - 8usize];
    [
        "Offset of field: nvmepeer_store_report::verified",
    ][::core::mem::offset_of!(nvmepeer_store_report, verified) - 16usize];
    [
        "Offset of field: nvmepeer_store_report::unverified",
    ][::core::mem::offset_of!(nvmepeer_store_report, unverified) - 24usize];
    [
        "Offset of field: nvmepeer_store_report::damaged_values",
    ][::core::mem::offset_of!(nvmepeer_store_report, damaged_values) - 32usize];
    [
        "Offset of field: nvmepeer_store_report::damaged_entries",
    ][::core::mem::offset_of!(nvmepeer_store_report, damaged_entries) - 40usize];
};
extern "C" {
    pub fn nvmepeer_store_check(
        store: *mut nvmepeer_store,
        report: *mut nvmepeer_store_report,
        size: usize,
    ) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_streams {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_cuda_list {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_cuda_lists {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_memory {
    pub start: *mut ::core::ffi::c_void,
    pub bytes: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_memory",
    ][::core::mem::size_of::<nvmepeer_store_memory>() - 16usize];
    [
        "Alignment of nvmepeer_store_memory",
    ][::core::mem::align_of::<nvmepeer_store_memory>() - 8usize];
    [
        "Offset of field: nvmepeer_store_memory::start",
    ][::core::mem::offset_of!(nvmepeer_store_memory, start) - 0usize];
    [
        "Offset of field: nvmepeer_store_memory::bytes",
    ][::core::mem::offset_of!(nvmepeer_store_memory, bytes) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_streams_options {
    pub size: u32,
    pub operations: u32,
    pub most_bytes: u64,
    pub slots: *const u32,
    pub slot_count: u64,
    pub memories: *const nvmepeer_store_memory,
    pub lists: *const *mut nvmepeer_cuda_lists,
    pub call_host: ::core::option::Option<
        unsafe extern "C" fn(
            stream: *mut ::core::ffi::c_void,
            function: ::core::option::Option<
                unsafe extern "C" fn(argument: *mut ::core::ffi::c_void),
            >,
            argument: *mut ::core::ffi::c_void,
        ) -> ::core::ffi::c_int,
    >,
    pub read_list: ::core::option::Option<
        unsafe extern "C" fn(
            lists: *mut nvmepeer_cuda_lists,
            list: *const nvmepeer_cuda_list,
            stream: *mut ::core::ffi::c_void,
        ) -> ::core::ffi::c_int,
    >,
    pub write_list: ::core::option::Option<
        unsafe extern "C" fn(
            lists: *mut nvmepeer_cuda_lists,
            list: *const nvmepeer_cuda_list,
            stream: *mut ::core::ffi::c_void,
        ) -> ::core::ffi::c_int,
    >,
    pub pinned: *mut ::core::ffi::c_void,
    pub memory_count: u32,
    pub reserved: u32,
    pub pinned_bytes: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_streams_options",
    ][::core::mem::size_of::<nvmepeer_store_streams_options>() - 96usize];
    [
        "Alignment of nvmepeer_store_streams_options",
    ][::core::mem::align_of::<nvmepeer_store_streams_options>() - 8usize];
    [
        "Offset of field: nvmepeer_store_streams_options::size",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, size) - 0usize];
    [
        "Offset of field: nvmepeer_store_streams_options::operations",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, operations) - 4usize];
    [
        "Offset of field: nvmepeer_store_streams_options::most_bytes",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, most_bytes) - 8usize];
    [
        "Offset of field: nvmepeer_store_streams_options::slots",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, slots) - 16usize];
    [
        "Offset of field: nvmepeer_store_streams_options::slot_count",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, slot_count) - 24usize];
    [
        "Offset of field: nvmepeer_store_streams_options::memories",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, memories) - 32usize];
    [
        "Offset of field: nvmepeer_store_streams_options::lists",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, lists) - 40usize];
    [
        "Offset of field: nvmepeer_store_streams_options::call_host",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, call_host) - 48usize];
    [
        "Offset of field: nvmepeer_store_streams_options::read_list",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, read_list) - 56usize];
    [
        "Offset of field: nvmepeer_store_streams_options::write_list",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, write_list) - 64usize];
    [
        "Offset of field: nvmepeer_store_streams_options::pinned",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, pinned) - 72usize];
    [
        "Offset of field: nvmepeer_store_streams_options::memory_count",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, memory_count) - 80usize];
    [
        "Offset of field: nvmepeer_store_streams_options::reserved",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, reserved) - 84usize];
    [
        "Offset of field: nvmepeer_store_streams_options::pinned_bytes",
    ][::core::mem::offset_of!(nvmepeer_store_streams_options, pinned_bytes) - 88usize];
};
extern "C" {
    pub fn nvmepeer_store_streams_bytes(
        store: *mut nvmepeer_store,
        operations: u32,
        most_bytes: u64,
    ) -> u64;
}
extern "C" {
    pub fn nvmepeer_store_streams_open(
        store: *mut nvmepeer_store,
        options: *const nvmepeer_store_streams_options,
        streams: *mut *mut nvmepeer_store_streams,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_streams_close(
        streams: *mut nvmepeer_store_streams,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_read_async(
        streams: *mut nvmepeer_store_streams,
        base: *mut ::core::ffi::c_void,
        size: *const usize,
        offset: *const i64,
        base_offset: *const i64,
        done: *mut i64,
        stream: *mut ::core::ffi::c_void,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_write_async(
        streams: *mut nvmepeer_store_streams,
        base: *const ::core::ffi::c_void,
        size: *const usize,
        offset: *const i64,
        base_offset: *const i64,
        done: *mut i64,
        stream: *mut ::core::ffi::c_void,
    ) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_list_tensor {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_store_pages {
    pub size: u32,
    pub tensor_count: u32,
    pub tensors: *const nvmepeer_list_tensor,
    pub count: *const u32,
    pub items: *mut nvmepeer_store_item,
    pub numbers: *const u32,
    pub done: *mut i64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_store_pages",
    ][::core::mem::size_of::<nvmepeer_store_pages>() - 48usize];
    [
        "Alignment of nvmepeer_store_pages",
    ][::core::mem::align_of::<nvmepeer_store_pages>() - 8usize];
    [
        "Offset of field: nvmepeer_store_pages::size",
    ][::core::mem::offset_of!(nvmepeer_store_pages, size) - 0usize];
    [
        "Offset of field: nvmepeer_store_pages::tensor_count",
    ][::core::mem::offset_of!(nvmepeer_store_pages, tensor_count) - 4usize];
    [
        "Offset of field: nvmepeer_store_pages::tensors",
    ][::core::mem::offset_of!(nvmepeer_store_pages, tensors) - 8usize];
    [
        "Offset of field: nvmepeer_store_pages::count",
    ][::core::mem::offset_of!(nvmepeer_store_pages, count) - 16usize];
    [
        "Offset of field: nvmepeer_store_pages::items",
    ][::core::mem::offset_of!(nvmepeer_store_pages, items) - 24usize];
    [
        "Offset of field: nvmepeer_store_pages::numbers",
    ][::core::mem::offset_of!(nvmepeer_store_pages, numbers) - 32usize];
    [
        "Offset of field: nvmepeer_store_pages::done",
    ][::core::mem::offset_of!(nvmepeer_store_pages, done) - 40usize];
};
extern "C" {
    pub fn nvmepeer_store_read_pages_async(
        streams: *mut nvmepeer_store_streams,
        pages: *const nvmepeer_store_pages,
        stream: *mut ::core::ffi::c_void,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_store_write_pages_async(
        streams: *mut nvmepeer_store_streams,
        pages: *const nvmepeer_store_pages,
        stream: *mut ::core::ffi::c_void,
    ) -> ::core::ffi::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_index {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_index_options {
    pub size: u32,
    pub host_pages: u32,
    pub host_memory: *mut ::core::ffi::c_void,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_index_options",
    ][::core::mem::size_of::<nvmepeer_index_options>() - 16usize];
    [
        "Alignment of nvmepeer_index_options",
    ][::core::mem::align_of::<nvmepeer_index_options>() - 8usize];
    [
        "Offset of field: nvmepeer_index_options::size",
    ][::core::mem::offset_of!(nvmepeer_index_options, size) - 0usize];
    [
        "Offset of field: nvmepeer_index_options::host_pages",
    ][::core::mem::offset_of!(nvmepeer_index_options, host_pages) - 4usize];
    [
        "Offset of field: nvmepeer_index_options::host_memory",
    ][::core::mem::offset_of!(nvmepeer_index_options, host_memory) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_index_scope {
    pub size: u32,
    pub data_type: u32,
    pub model: *const ::core::ffi::c_char,
    pub layout: *const ::core::ffi::c_char,
    pub salt: *const ::core::ffi::c_char,
    pub tensor_rank: u32,
    pub tensor_size: u32,
    pub pipeline_rank: u32,
    pub pipeline_size: u32,
    pub first_layer: u32,
    pub layers: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    [
        "Size of nvmepeer_index_scope",
    ][::core::mem::size_of::<nvmepeer_index_scope>() - 56usize];
    [
        "Alignment of nvmepeer_index_scope",
    ][::core::mem::align_of::<nvmepeer_index_scope>() - 8usize];
    [
        "Offset of field: nvmepeer_index_scope::size",
    ][::core::mem::offset_of!(nvmepeer_index_scope, size) - 0usize];
    [
        "Offset of field: nvmepeer_index_scope::data_type",
    ][::core::mem::offset_of!(nvmepeer_index_scope, data_type) - 4usize];
    [
        "Offset of field: nvmepeer_index_scope::model",
    ][::core::mem::offset_of!(nvmepeer_index_scope, model) - 8usize];
    [
        "Offset of field: nvmepeer_index_scope::layout",
    ][::core::mem::offset_of!(nvmepeer_index_scope, layout) - 16usize];
    [
        "Offset of field: nvmepeer_index_scope::salt",
    ][::core::mem::offset_of!(nvmepeer_index_scope, salt) - 24usize];
    [
        "Offset of field: nvmepeer_index_scope::tensor_rank",
    ][::core::mem::offset_of!(nvmepeer_index_scope, tensor_rank) - 32usize];
    [
        "Offset of field: nvmepeer_index_scope::tensor_size",
    ][::core::mem::offset_of!(nvmepeer_index_scope, tensor_size) - 36usize];
    [
        "Offset of field: nvmepeer_index_scope::pipeline_rank",
    ][::core::mem::offset_of!(nvmepeer_index_scope, pipeline_rank) - 40usize];
    [
        "Offset of field: nvmepeer_index_scope::pipeline_size",
    ][::core::mem::offset_of!(nvmepeer_index_scope, pipeline_size) - 44usize];
    [
        "Offset of field: nvmepeer_index_scope::first_layer",
    ][::core::mem::offset_of!(nvmepeer_index_scope, first_layer) - 48usize];
    [
        "Offset of field: nvmepeer_index_scope::layers",
    ][::core::mem::offset_of!(nvmepeer_index_scope, layers) - 52usize];
};
extern "C" {
    pub fn nvmepeer_index_key(
        scope: *const nvmepeer_index_scope,
        block: *const ::core::ffi::c_void,
        bytes: usize,
        key: *mut u8,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_index_open(
        store: *mut nvmepeer_store,
        options: *const nvmepeer_index_options,
        index: *mut *mut nvmepeer_index,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_index_close(index: *mut nvmepeer_index);
}
pub const NVMEPEER_INDEX_NORMAL: nvmepeer_index_hint = 0;
pub const NVMEPEER_INDEX_ONCE: nvmepeer_index_hint = 1;
pub const NVMEPEER_INDEX_KEEP: nvmepeer_index_hint = 2;
pub type nvmepeer_index_hint = ::core::ffi::c_uint;
extern "C" {
    pub fn nvmepeer_index_put(
        index: *mut nvmepeer_index,
        key: *const u8,
        data: *const ::core::ffi::c_void,
        length: u32,
        hint: u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_index_get(
        index: *mut nvmepeer_index,
        key: *const u8,
        data: *mut ::core::ffi::c_void,
        length: *mut u32,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_index_pin(
        index: *mut nvmepeer_index,
        keys: *const [::core::ffi::c_uchar; 64usize],
        count: u32,
        items: *mut nvmepeer_store_item,
    ) -> ::core::ffi::c_int;
}
extern "C" {
    pub fn nvmepeer_index_remove(
        index: *mut nvmepeer_index,
        key: *const u8,
    ) -> ::core::ffi::c_int;
}
