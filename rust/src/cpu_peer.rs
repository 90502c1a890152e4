// SPDX-License-Identifier: MIT OR GPL-2.0
//! The CPU as a peer.
use core::time::Duration;

use crate::controller::Controller;
use crate::error::{transferred, Error};
use crate::handle::Handle;
use crate::memory::Memory;
use crate::namespace::Namespace;
use crate::queue_pair::milliseconds;
use crate::sys;

/// A queue pair of this process's own: reads and writes without a system call each.
///
/// Transfers move blocks between the disk and [`CpuPeer::memory`], from any number of threads
/// at once.  After a loss the library brings the queue pair back and reads again by itself.
pub struct CpuPeer<'c> {
    handle: Handle<'c, sys::nvmepeer_cpu_peer>,
}

impl<'c> CpuPeer<'c> {
    /// A good time to wait for a controller after a loss.
    pub const RECOVERY: Duration = Duration::from_secs(30);

    /// Make one: rings of `entries`, a power of two, and `data_bytes` of memory, rounded up to
    /// controller pages.  `namespace` is one of the controller's.  Needs `CAP_SYS_RAWIO`.
    ///
    /// # Errors
    ///
    /// As of [`HostMemory::new`](crate::HostMemory::new), [`Controller::import`] and
    /// [`Controller::create_queue_pair`].
    pub fn new(
        controller: &'c Controller,
        namespace: &Namespace,
        entries: u32,
        data_bytes: usize,
    ) -> Result<Self, Error> {
        let format = namespace.format();
        // SAFETY: the structure is the namespace's; the two functions belong together, and
        // the controller outlives what is made.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_cpu_peer_close, |receives| {
                sys::nvmepeer_cpu_peer_open(controller.raw(), format, entries, data_bytes, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// The data memory.
    pub fn memory(&self) -> Memory<'_> {
        // SAFETY: mapped until this is closed, which the borrow keeps it from; nobody else in
        // this process knows the address.
        unsafe {
            let data = sys::nvmepeer_cpu_peer_data(self.handle.raw());
            let address = sys::nvmepeer_cpu_peer_address(self.handle.raw());
            Memory::new(address.cast(), (*data).length as usize)
        }
    }

    /// `blocks` blocks from `lba` on, to byte `offset` of the memory; `recovery`: how long to
    /// wait for the controller after each loss.
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
        // SAFETY: the library keeps to its memory.
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

    /// The other direction, once: a write that was lost is not made again.
    ///
    /// # Errors
    ///
    /// As [`CpuPeer::read`].  After [`DeviceError::Lost`](crate::DeviceError::Lost) the write
    /// may have been executed or not; the queue pair is back, if it comes back.
    pub fn write(
        &self,
        offset: u64,
        lba: u64,
        blocks: u32,
        recovery: Duration,
    ) -> Result<(), Error> {
        // SAFETY: as above.
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
