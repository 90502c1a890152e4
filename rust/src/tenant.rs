// SPDX-License-Identifier: MIT OR GPL-2.0
//! Windows, buffers and limits of queue pairs in mediated mode.
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::buffer::Access;
use crate::error::{done, Error};
use crate::queue_pair::QueuePair;
use crate::route::{PciAddress, Reason, Verdict};
use crate::sys;
use crate::value::{facts, FromC};

/// What commands may do with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights(u32);

impl Rights {
    /// Read commands.
    pub fn read(self) -> bool {
        self.0 & sys::NVME_PEER_RIGHT_READ != 0
    }

    /// Write and Write Zeroes commands.
    pub fn write(self) -> bool {
        self.0 & sys::NVME_PEER_RIGHT_WRITE != 0
    }
}

impl FromC<u32> for Rights {
    fn from_c(value: u32) -> Self {
        Self(value)
    }
}

facts! {
    /// A window that was added.
    Window of nvme_peer_window_add {
        /// What commands carry as namespace ID.
        id: u32,
        /// Its first block on the device or file.
        first: u64,
        /// Number of blocks.
        blocks: u64,
        /// Bytes of a block.
        block_size: u32,
        /// Those with which the descriptor was opened.
        rights: Rights,
    }
}

facts! {
    /// What a window is now.
    WindowInfo of nvme_peer_window_info {
        /// What it permits, also because of the device.
        rights: Rights,
        /// Its first block on the device or file.
        first: u64,
        /// Number of blocks, 0 once it has ended.
        blocks: u64,
        /// Bytes of a block.
        block_size: u32,
        /// Its commands in flight.
        in_flight: u32,
    }
}

facts! {
    /// Memory that was added to a queue pair.
    Slot of nvme_peer_buf_add {
        /// For [`Slot::address`].
        slot: u32,
        /// Bytes.
        length: u64,
        /// How the controller reaches it.
        verdict: Verdict,
        /// Reason for the verdict.
        reason: Reason,
        /// The PCI function that has the memory, none for host RAM.
        pci_address: Option<PciAddress>,
    }
}

impl Slot {
    /// Byte `offset` of the memory, as commands carry it.
    pub fn address(&self, offset: u64) -> u64 {
        (u64::from(self.slot) << 48) | offset
    }
}

facts! {
    /// Limits of a queue pair in mediated mode, and what it uses of them.
    Limits of nvme_peer_qp_limits {
        /// Most commands in flight.
        depth: u32,
        /// Its share in relation to others.
        weight: u32,
        /// Milliseconds until a command is aborted.
        timeout_ms: u32,
        /// Most windows.
        max_windows: u32,
        /// Most buffers.
        max_buffers: u32,
        /// Most bytes of a Read or Write.
        max_transfer: u32,
        /// Most bytes of a Write Zeroes, 0 if the controller does not support it.
        max_write_zeroes: u32,
        /// Its windows.
        windows: u32,
        /// Its buffers.
        buffers: u32,
        /// Whether [`QueuePair::seal`] was called.
        sealed: bool,
    }
}

facts! {
    /// What the kernel has counted of a queue pair in mediated mode; not of one moment.
    Stats of nvme_peer_qp_stats {
        /// Commands in flight.
        in_flight: u32,
        /// Read commands.
        reads: u64,
        /// Write commands.
        writes: u64,
        /// Write Zeroes commands.
        zeroes: u64,
        /// Flush commands.
        flushes: u64,
        /// Bytes of the Read commands.
        read_bytes: u64,
        /// Bytes of the Write commands.
        written_bytes: u64,
        /// Commands that were not allowed.
        refused: u64,
        /// Commands that the controller did not execute with success.
        failed: u64,
        /// Time of the kernel's thread.
        busy_ns: u64,
    }
}

/// In mediated mode, see [`Rings::mediated`](crate::Rings::mediated); `EOPNOTSUPP` in others.
impl QueuePair<'_> {
    /// Let commands access `blocks` blocks from `first` on of an open block device or file; 0: all
    /// from there.  The descriptor may be closed afterwards.
    ///
    /// # Errors
    ///
    /// `EXDEV`: it is not on this controller.  `ERANGE`: of the blocks.  `EPERM`: the queue pair is
    /// sealed.  `EDQUOT`: it has as many windows as it may have.  [`QueuePair::open_file`] explains
    /// those of files.
    pub fn add_window(&self, file: impl AsFd, first: u64, blocks: u64) -> Result<Window, Error> {
        // SAFETY: numbers only.
        let mut window: sys::nvme_peer_window_add = unsafe { core::mem::zeroed() };
        window.fd = file.as_fd().as_raw_fd();
        (window.first, window.blocks) = (first, blocks);
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_window_add(self.raw(), &mut window, size_of_val(&window)) })?;
        Ok(FromC::from_c(window))
    }

    /// Open a file for reading and writing, check it, and add a window on `blocks` blocks from
    /// `first` on; 0: all from there.  [`check_file`](crate::check_file) has all that prevents it.
    ///
    /// # Errors
    ///
    /// The error of `open(2)`, or what prevents a window, with the fix.  [`Error::Argument`]: the
    /// path has a NUL.
    pub fn open_file(
        &self,
        path: impl AsRef<Path>,
        first: u64,
        blocks: u64,
    ) -> Result<Window, Error> {
        let path = CString::new(path.as_ref().as_os_str().as_bytes())
            .map_err(|_| Error::Argument("the path has a NUL".into()))?;
        // SAFETY: numbers only.
        let mut window: sys::nvme_peer_window_add = unsafe { core::mem::zeroed() };
        (window.first, window.blocks) = (first, blocks);
        // SAFETY: the path ends with NUL, and the other pointer is to a structure of this size.
        done(unsafe {
            sys::nvmepeer_file_open(self.raw(), path.as_ptr(), &mut window, size_of_val(&window))
        })?;
        Ok(FromC::from_c(window))
    }

    /// Remove a window, after its commands have completed.
    ///
    /// # Errors
    ///
    /// `ENOENT`: there is no such window.
    pub fn remove_window(&self, id: u32) -> Result<(), Error> {
        // SAFETY: the handle is open.
        done(unsafe { sys::nvmepeer_window_remove(self.raw(), id) })
    }

    /// What a window is now.
    ///
    /// # Errors
    ///
    /// `ENOENT`: there is no such window.
    pub fn window(&self, id: u32) -> Result<WindowInfo, Error> {
        // SAFETY: numbers only.
        let mut info: sys::nvme_peer_window_info = unsafe { core::mem::zeroed() };
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_window_info(self.raw(), id, &mut info, size_of_val(&info)) })?;
        Ok(FromC::from_c(info))
    }

    /// Let commands transfer data of a dma-buf: `length` bytes from `offset` on; 0: all from there.
    ///
    /// # Errors
    ///
    /// As [`Controller::import`](crate::Controller::import).  `EPERM`: the queue pair is sealed.
    /// `EDQUOT`: it has as many buffers as it may have.
    pub fn add_memory(
        &self,
        dmabuf: impl AsFd,
        access: Access,
        offset: u64,
        length: u64,
    ) -> Result<Slot, Error> {
        // SAFETY: numbers only.
        let mut memory: sys::nvme_peer_buf_add = unsafe { core::mem::zeroed() };
        memory.dmabuf_fd = dmabuf.as_fd().as_raw_fd();
        memory.access = access.into();
        (memory.offset, memory.length) = (offset, length);
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_buf_add(self.raw(), &mut memory, size_of_val(&memory)) })?;
        Ok(FromC::from_c(memory))
    }

    /// Remove memory, after its commands have completed.
    ///
    /// # Errors
    ///
    /// `ENOENT`: there is none in this slot.
    pub fn remove_memory(&self, slot: u32) -> Result<(), Error> {
        // SAFETY: the handle is open.
        done(unsafe { sys::nvmepeer_buf_remove(self.raw(), slot) })
    }

    /// Limits, and what is used of them.
    ///
    /// # Errors
    ///
    /// The error of the ioctl.
    pub fn limits(&self) -> Result<Limits, Error> {
        // SAFETY: numbers only.
        let mut limits: sys::nvme_peer_qp_limits = unsafe { core::mem::zeroed() };
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_qp_limits(self.raw(), &mut limits, size_of_val(&limits)) })?;
        Ok(FromC::from_c(limits))
    }

    /// Commands, bytes and time.
    ///
    /// # Errors
    ///
    /// The error of the ioctl.
    pub fn stats(&self) -> Result<Stats, Error> {
        // SAFETY: numbers only.
        let mut stats: sys::nvme_peer_qp_stats = unsafe { core::mem::zeroed() };
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_qp_stats(self.raw(), &mut stats, size_of_val(&stats)) })?;
        Ok(FromC::from_c(stats))
    }

    /// Let no process add windows or memory: the file may be given away then.
    ///
    /// # Errors
    ///
    /// The error of the ioctl.
    pub fn seal(&self) -> Result<(), Error> {
        // SAFETY: the handle is open.
        done(unsafe { sys::nvmepeer_qp_seal(self.raw()) })
    }
}
