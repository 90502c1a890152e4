// SPDX-License-Identifier: MIT OR GPL-2.0
//! Memory that devices and this process access concurrently.
use core::sync::atomic::{AtomicU8, Ordering};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::controller::Controller;
use crate::error::Error;
use crate::handle::Handle;
use crate::sys;

/// A view of memory that a device, or another thread, may write at any time.
///
/// Because of that it is not a slice of bytes: callers copy the contents or access single atomic
/// bytes.  A copy is not atomic: if it races with a transfer to the same bytes, it returns a
/// mixture of old and new data.  Any thread may use it.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    bytes: &'a [AtomicU8],
}

impl<'a> Memory<'a> {
    /// # Safety
    ///
    /// `length` bytes from `address` on are mapped for reading and writing for `'a`, and this
    /// process has no references to them other than to atomics.
    pub(crate) unsafe fn new(address: *mut u8, length: usize) -> Self {
        // SAFETY: as above; an atomic byte has the layout of a byte, and any value is valid.
        let bytes = unsafe { core::slice::from_raw_parts(address as *const AtomicU8, length) };
        Self { bytes }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All of it, as atomic bytes.
    pub fn bytes(&self) -> &'a [AtomicU8] {
        self.bytes
    }

    /// The range of `length` bytes from `offset` on.
    ///
    /// # Panics
    ///
    /// If the range exceeds this memory.
    pub fn part(&self, offset: usize, length: usize) -> Memory<'a> {
        Memory { bytes: &self.bytes[offset..][..length] }
    }

    /// Copy all of it to `data`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn copy_to(&self, data: &mut [u8]) {
        assert_eq!(data.len(), self.len(), "lengths of a copy");
        for (to, from) in data.iter_mut().zip(self.bytes) {
            *to = from.load(Ordering::Relaxed);
        }
    }

    /// Overwrite all of it with `data`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub fn copy_from(&self, data: &[u8]) {
        assert_eq!(data.len(), self.len(), "lengths of a copy");
        for (to, from) in self.bytes.iter().zip(data) {
            to.store(*from, Ordering::Relaxed);
        }
    }

    /// A copy of all of it.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut data = vec![0; self.len()];
        self.copy_to(&mut data);
        data
    }
}

impl<'a> From<&'a [AtomicU8]> for Memory<'a> {
    /// Memory of the caller, for [`ServedQueuePair::add_buffer`](crate::ServedQueuePair::add_buffer).
    fn from(bytes: &'a [AtomicU8]) -> Self {
        Self { bytes }
    }
}

/// Host memory that is also a dma-buf, for [`Controller::import`](crate::Controller::import).
///
/// An imported buffer remains valid after this is dropped.  Any number of threads may use it at
/// once.
pub struct HostMemory {
    handle: Handle<'static, sys::nvmepeer_hostmem>,
}

impl HostMemory {
    /// Allocate `length` bytes, rounded up to whole pages, zeroed.
    ///
    /// # Errors
    ///
    /// `ENOSYS`: the kernel has neither `/dev/udmabuf` nor `/dev/dma_heap/system`.  Otherwise the
    /// error of that device.
    pub fn new(length: usize) -> Result<Self, Error> {
        // SAFETY: the second function frees what the first one allocates.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_hostmem_free, |receives| {
                sys::nvmepeer_hostmem_alloc(length, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// The same, allocated by the kernel module near `controller`, which it may outlive.
    ///
    /// # Errors
    ///
    /// `EFBIG`: more than 1 GiB.  `ENOBUFS`: more locked memory than the user may have.
    pub fn near(controller: &Controller, length: usize) -> Result<Self, Error> {
        // SAFETY: the controller is open, and the second function frees what the first one
        // allocates.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_hostmem_free, |receives| {
                sys::nvmepeer_buf_alloc(controller.raw(), length, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// All of it, in this process.
    pub fn memory(&self) -> Memory<'_> {
        // SAFETY: mapped until it is freed, which the borrow prevents; no other code in this
        // process has the address.
        unsafe {
            let address = sys::nvmepeer_hostmem_address(self.handle.raw());
            let length = sys::nvmepeer_hostmem_length(self.handle.raw());
            Memory::new(address.cast(), length)
        }
    }
}

impl AsRawFd for HostMemory {
    /// The dma-buf, which the library owns.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: it is open.
        unsafe { sys::nvmepeer_hostmem_fd(self.handle.raw()) }
    }
}

impl AsFd for HostMemory {
    /// The dma-buf, which the library owns.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.descriptor(self.as_raw_fd())
    }
}
