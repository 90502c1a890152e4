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
    /// What the controller does with memory.  Where an IOMMU translates, it holds it to that.
    Access {
        /// Reads and writes it.
        Both = NVME_PEER_ACCESS_BOTH,
        /// Only reads it: data of write commands, submission rings.
        Read = NVME_PEER_ACCESS_READ,
        /// Only writes it: data of read commands, completion rings.
        Write = NVME_PEER_ACCESS_WRITE,
    }
}

/// Which part of a dma-buf is imported, and what for; by default all of it, for anything.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// Refuse host RAM.
    pub require_device: bool,
    /// What the controller does with it.
    pub access: Access,
    /// First byte, a multiple of [`Info::page_size`](crate::Info::page_size).
    pub offset: u64,
    /// Bytes, a multiple of the same; 0: all from `offset` on.
    pub length: u64,
}

impl Default for Import {
    fn default() -> Self {
        Self { require_device: false, access: Access::Both, offset: 0, length: 0 }
    }
}

facts! {
    /// Where an imported buffer lies.
    BufferInfo of nvme_peer_buf_import {
        /// Its name in C's calls on the same open controller; never 0.
        handle: u32,
        /// Bytes.
        length: u64,
        /// Contiguous ranges of DMA addresses.
        segments: u32,
        /// How the controller reaches it.
        verdict: Verdict,
        /// Why so.
        reason: Reason,
        /// The function whose memory it is, none for host RAM.
        pci_address: Option<PciAddress>,
    }
}

/// Memory that a controller reads and writes, from [`Controller::import`].  Any number of
/// threads may use it at once.
///
/// Dropped, it is released.  Where the kernel refuses that, for which see [`Buffer::release`],
/// it is released when the controller is closed and the queue pairs have ended.
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

    /// Where it lies.
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
    /// `ERANGE`: `offset` lies outside.  `EINVAL`: it is no multiple of a page.  `ESTALE`: the
    /// exporter has taken the memory back.
    pub fn addresses(&self, offset: u64, count: u32) -> Result<Vec<u64>, Error> {
        // Controller pages are no smaller than that.
        let most = self.info.length.div_ceil(4096);
        let count = u32::try_from(most).map_or(count, |most| count.min(most));
        let mut table = vec![0; count as usize];
        // SAFETY: there is room for so many.
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

    /// DMA address of byte `offset`, if the `length` bytes from there on are in one piece.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE`: they are not.  Otherwise as [`Buffer::addresses`].
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

    fn give_back(&self) -> Result<(), Error> {
        // SAFETY: the controller is open.
        done(unsafe { sys::nvmepeer_buf_release(self.controller.raw(), self.info.handle) })
    }

    /// The controller lets go of it.
    ///
    /// # Errors
    ///
    /// `EBUSY`, with the buffer, which is still good: a ring of C's making lies in it; or
    /// [`Buffer::addresses`] has told where it is, and a queue pair of the controller,
    /// anybody's, is alive.
    pub fn release(self) -> Result<(), (Self, Error)> {
        match self.give_back() {
            Ok(()) => {
                // It must not be released twice: its handle may be another's by then.
                let _ = ManuallyDrop::new(self);
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // Refused, it is what the controller's close gives back.
        let _ = self.give_back();
    }
}
