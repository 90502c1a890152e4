// SPDX-License-Identifier: MIT OR GPL-2.0
//! Memory of a dma-buf that a controller reads and writes.
use core::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::controller::Controller;
use crate::error::{counted, done, Error};
use crate::route::{PciAddress, Reason, Verdict};
use crate::sys;
use crate::value::{facts, numbers, FromC};

numbers! {
    /// Accesses of the controller to memory.  An IOMMU that translates enforces them.
    Access {
        /// Reads and writes.
        Both = NVME_PEER_ACCESS_BOTH,
        /// Reads only: data of write commands, submission rings.
        Read = NVME_PEER_ACCESS_READ,
        /// Writes only: data of read commands, completion rings.
        Write = NVME_PEER_ACCESS_WRITE,
    }
}

/// The range of a dma-buf to import, and the accesses; by default all of it for reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// Refuse host RAM.
    pub require_device: bool,
    /// Accesses of the controller.
    pub access: Access,
    /// First byte, a multiple of [`Info::page_size`](crate::Info::page_size).
    pub offset: u64,
    /// Bytes, a multiple of the page size; 0: all from `offset` on.
    pub length: u64,
}

impl Default for Import {
    fn default() -> Self {
        Self { require_device: false, access: Access::Both, offset: 0, length: 0 }
    }
}

facts! {
    /// Placement of an imported buffer.
    BufferInfo of nvme_peer_buf_import {
        /// Buffer handle in calls on the same open controller; never 0.
        handle: u32,
        /// Bytes.
        length: u64,
        /// Contiguous runs of DMA addresses.
        segments: u32,
        /// How the controller reaches it.
        verdict: Verdict,
        /// Reason for the verdict.
        reason: Reason,
        /// The PCI function that has the memory, none for host RAM.
        pci_address: Option<PciAddress>,
    }
}

/// Memory that a controller reads and writes, from [`Controller::import`].  Any number of
/// threads may use it at once.
///
/// Drop releases it.  If the kernel refuses the release (see [`Buffer::release`]), the buffer
/// is released when the controller is closed and its queue pairs are gone.
pub struct Buffer<'c> {
    controller: &'c Controller,
    info: BufferInfo,
}

impl<'c> Buffer<'c> {
    pub(crate) fn import(
        controller: &'c Controller,
        dmabuf: BorrowedFd<'_>,
        part: Import,
    ) -> Result<Self, Error> {
        // SAFETY: numbers only.
        let mut made: sys::nvme_peer_buf_import = unsafe { core::mem::zeroed() };
        made.flags = if part.require_device { sys::NVME_PEER_BUF_REQUIRE_DEVICE } else { 0 };
        made.dmabuf_fd = dmabuf.as_raw_fd();
        made.access = part.access.into();
        made.offset = part.offset;
        made.length = part.length;
        // SAFETY: the structure is ours and of this size.
        done(unsafe {
            sys::nvmepeer_buf_import_part(controller.raw(), &mut made, size_of_val(&made))
        })?;
        Ok(Self { controller, info: FromC::from_c(made) })
    }

    /// Placement and size.
    pub fn info(&self) -> &BufferInfo {
        &self.info
    }

    pub(crate) fn is_of(&self, controller: &Controller) -> bool {
        core::ptr::eq(self.controller, controller)
    }

    /// DMA addresses, in the controller's domain, of the controller pages from byte `offset`
    /// on, `count` of them or fewer at the end of the buffer.  Needs `CAP_SYS_RAWIO`.
    ///
    /// # Errors
    ///
    /// `ERANGE`: `offset` is outside the buffer.  `EINVAL`: it is not a multiple of a page.
    /// `ESTALE`: the exporter has invalidated the memory.
    pub fn addresses(&self, offset: u64, count: u32) -> Result<Vec<u64>, Error> {
        // A controller page has at least 4096 bytes.
        let most = self.info.length.div_ceil(4096);
        let count = u32::try_from(most).map_or(count, |most| count.min(most));
        let mut table = vec![0; count as usize];
        // SAFETY: the table has `count` elements.
        let filled = counted(unsafe {
            sys::nvmepeer_buf_table(
                self.controller.raw(),
                self.info.handle,
                offset,
                table.as_mut_ptr(),
                count,
            )
        })?;
        table.truncate(filled);
        Ok(table)
    }

    /// DMA address of byte `offset`, if the `length` bytes from there on are one segment.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE`: they are several segments.  Otherwise as [`Buffer::addresses`].
    pub fn contiguous(&self, offset: u64, length: u64) -> Result<u64, Error> {
        let mut dma = 0;
        // SAFETY: the number is ours.
        done(unsafe {
            sys::nvmepeer_buf_contiguous(
                self.controller.raw(),
                self.info.handle,
                offset,
                length,
                &mut dma,
            )
        })?;
        Ok(dma)
    }

    fn try_release(&self) -> Result<(), Error> {
        // SAFETY: the controller is open.
        done(unsafe { sys::nvmepeer_buf_release(self.controller.raw(), self.info.handle) })
    }

    /// Release the buffer.
    ///
    /// # Errors
    ///
    /// `EBUSY`, with the buffer, which remains valid: it contains a ring that C code created; or
    /// [`Buffer::addresses`] returned its addresses, and a queue pair that was created through
    /// the same controller is active.
    pub fn release(self) -> Result<(), (Self, Error)> {
        match self.try_release() {
            Ok(()) => {
                // Do not release twice: the handle may be reused for another buffer.
                let _ = ManuallyDrop::new(self);
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // If this fails, the close of the controller releases the buffer.
        let _ = self.try_release();
    }
}
