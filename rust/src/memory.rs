// SPDX-License-Identifier: MIT OR GPL-2.0
//! Memory that devices read and write while this process looks at it.
use core::sync::atomic::{AtomicU8, Ordering};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::error::Error;
use crate::handle::Handle;
use crate::sys;

/// A view of memory that a device, or another thread, may write at any time.
///
/// So it is never a slice of bytes: what is in it is copied, or looked at byte by byte.  A copy
/// is not made at once: who copies while a transfer to the same bytes is on its way gets parts
/// of old and new.  All of it may be done from any thread.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    bytes: &'a [AtomicU8],
}

impl<'a> Memory<'a> {
    /// # Safety
    ///
    /// `length` bytes from `address` on are mapped for reading and writing for `'a`, and this
    /// process's program has no other kind of reference to them.
    pub(crate) unsafe fn new(address: *mut u8, length: usize) -> Self {
        // SAFETY: as above, and an atomic byte may be anything that a byte may be.
        let bytes = unsafe { core::slice::from_raw_parts(address as *const AtomicU8, length) };
        Self { bytes }
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All of it, to be looked at and changed byte by byte.
    pub fn bytes(&self) -> &'a [AtomicU8] {
        self.bytes
    }

    /// The part of `length` bytes from `offset` on.
    ///
    /// # Panics
    ///
    /// If it does not lie within.
    pub fn part(&self, offset: usize, length: usize) -> Memory<'a> {
        Memory { bytes: &self.bytes[offset..][..length] }
    }

    /// Copy all of it to `data`, which is as long.
    ///
    /// # Panics
    ///
    /// If `data` is not as long.
    pub fn copy_to(&self, data: &mut [u8]) {
        assert_eq!(data.len(), self.len(), "lengths of a copy");
        for (to, from) in data.iter_mut().zip(self.bytes) {
            *to = from.load(Ordering::Relaxed);
        }
    }

    /// Copy `data`, which is as long, over all of it.
    ///
    /// # Panics
    ///
    /// If `data` is not as long.
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

/// Host memory that is also a dma-buf, for [`Controller::import`](crate::Controller::import).
///
/// What was imported stays the controller's after this is dropped.  Any number of threads may
/// use it at once.
pub struct HostMemory {
    handle: Handle<'static, sys::nvmepeer_hostmem>,
}

impl HostMemory {
    /// Get `length` bytes, rounded up to whole pages, zeroed.
    ///
    /// # Errors
    ///
    /// `ENOSYS`: the kernel has neither `/dev/udmabuf` nor `/dev/dma_heap/system`; what they
    /// say.
    pub fn new(length: usize) -> Result<Self, Error> {
        // SAFETY: the two functions belong together.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_hostmem_free, |receives| {
                sys::nvmepeer_hostmem_alloc(length, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// All of it, in this process.
    pub fn memory(&self) -> Memory<'_> {
        // SAFETY: mapped until it is freed, which the borrow keeps it from; nobody else in
        // this process knows the address.
        unsafe {
            let address = sys::nvmepeer_hostmem_address(self.handle.raw());
            let length = sys::nvmepeer_hostmem_length(self.handle.raw());
            Memory::new(address.cast(), length)
        }
    }
}

impl AsRawFd for HostMemory {
    /// The dma-buf; it stays the library's.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: it is open.
        unsafe { sys::nvmepeer_hostmem_fd(self.handle.raw()) }
    }
}

impl AsFd for HostMemory {
    /// The dma-buf; it stays the library's.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.descriptor(self.as_raw_fd())
    }
}
