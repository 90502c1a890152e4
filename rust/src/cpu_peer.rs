// SPDX-License-Identifier: MIT OR GPL-2.0
//! Queue pairs whose peer is the CPU.
use core::time::Duration;

use crate::controller::Controller;
use crate::error::{transferred, Error};
use crate::handle::Handle;
use crate::memory::Memory;
use crate::namespace::Namespace;
use crate::queue_pair::milliseconds;
use crate::sys;

/// A queue pair driven by this process: reads and writes need no system call.
///
/// Transfers move blocks between the disk and [`CpuPeer::memory`].  Threads may call
/// concurrently.  After a loss the library re-arms the queue pair and retries reads.
pub struct CpuPeer<'c> {
    handle: Handle<'c, sys::nvmepeer_cpu_peer>,
}

impl<'c> CpuPeer<'c> {
    /// Recommended limit for the recovery of a controller after a loss.
    pub const RECOVERY: Duration = Duration::from_secs(30);

    /// Create a queue pair with rings of `entries`, a power of two, and `data_bytes` of memory,
    /// rounded up to controller pages.  `namespace` must belong to `controller`.  Requires
    /// `CAP_SYS_RAWIO`.
    ///
    /// # Errors
    ///
    /// The errors of [`HostMemory::new`](crate::HostMemory::new), [`Controller::import`] and
    /// [`Controller::create_queue_pair`].
    pub fn new(
        controller: &'c Controller,
        namespace: &Namespace,
        entries: u32,
        data_bytes: usize,
    ) -> Result<Self, Error> {
        let format = namespace.format();
        // SAFETY: `namespace` keeps the format valid, the close function matches the open
        // function, and the controller outlives the handle.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_cpu_peer_close, |receives| {
                sys::nvmepeer_cpu_peer_open(controller.raw(), format, entries, data_bytes, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// The data memory.
    pub fn memory(&self) -> Memory<'_> {
        // SAFETY: the memory is mapped until the handle is closed, which the borrow prevents;
        // no other code in this process has its address.
        unsafe {
            let data = sys::nvmepeer_cpu_peer_data(self.handle.raw());
            let address = sys::nvmepeer_cpu_peer_address(self.handle.raw());
            Memory::new(address.cast(), (*data).length as usize)
        }
    }

    /// Read `blocks` blocks, beginning at block `lba`, to byte `offset` of the memory.
    /// `recovery` limits the wait for the controller after each loss.
    ///
    /// # Errors
    ///
    /// [`Error::Transfer`] and [`Error::Status`].
    pub fn read(
        &self,
        offset: u64,
        lba: u64,
        blocks: u32,
        recovery: Duration,
    ) -> Result<(), Error> {
        // SAFETY: the library checks the range against the size of its memory.
        let result = unsafe {
            sys::nvmepeer_cpu_peer_read(
                self.handle.raw(),
                offset,
                lba,
                blocks,
                milliseconds(recovery),
            )
        };
        transferred("nvmepeer_cpu_peer_read", result)
    }

    /// Write `blocks` blocks from byte `offset` of the memory, beginning at block `lba`.  A write
    /// is not retried after a loss.
    ///
    /// # Errors
    ///
    /// The errors of [`CpuPeer::read`].  After [`DeviceError::Lost`](crate::DeviceError::Lost)
    /// the write may or may not have been executed, and the queue pair is re-armed if the
    /// controller recovered in time.
    pub fn write(
        &self,
        offset: u64,
        lba: u64,
        blocks: u32,
        recovery: Duration,
    ) -> Result<(), Error> {
        // SAFETY: the library checks the range against the size of its memory.
        let result = unsafe {
            sys::nvmepeer_cpu_peer_write(
                self.handle.raw(),
                offset,
                lba,
                blocks,
                milliseconds(recovery),
            )
        };
        transferred("nvmepeer_cpu_peer_write", result)
    }
}
