// SPDX-License-Identifier: GPL-2.0-only
//! The C library as it is: <nvmepeer.h>, <nvmepeer_peer.h>, <nvmepeer_serve.h>, <linux/nvme_peer.h>.
// Written by bindgen from those headers (make -C rust bindings), and never by hand.

pub type __u32 = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct nvmepeer_planted {
    pub size: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of nvmepeer_planted"][::core::mem::size_of::<nvmepeer_planted>() - 4usize];
    [
        "Alignment of nvmepeer_planted",
    ][::core::mem::align_of::<nvmepeer_planted>() - 4usize];
    [
        "Offset of field: nvmepeer_planted::size",
    ][::core::mem::offset_of!(nvmepeer_planted, size) - 0usize];
};
