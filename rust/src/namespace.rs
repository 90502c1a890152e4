// SPDX-License-Identifier: MIT OR GPL-2.0
//! Namespaces: I/O by the CPU.
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::error::{completed, Error};
use crate::handle::{node_name, Handle};
use crate::sys;
use crate::value::{facts, FromC};

facts! {
    /// Format of a namespace.
    NamespaceInfo of nvmepeer_ns_info {
        /// Namespace identifier.
        nsid: u32,
        /// Bytes of a logical block's data.
        block_size: u32,
        /// Bytes of metadata that go with each block: 0, others are not served.
        metadata_size: u32,
        /// Size of the namespace.
        blocks: u64,
    }
}

/// A namespace node, for I/O by the CPU.  Calls are one command each, and wait for it; any
/// number of threads may make them at once.
pub struct Namespace {
    handle: Handle<'static, sys::nvmepeer_ns>,
    info: NamespaceInfo,
}

impl Namespace {
    /// Open `"/dev/ngp0n1"`, or `"ngp0n1"` for short.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`: its blocks carry metadata; what `open(2)` says.
    pub fn open(node: &str) -> Result<Self, Error> {
        let node = node_name(node)?;
        // SAFETY: the name ends with NUL, and the two functions belong together.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_ns_close, |receives| {
                sys::nvmepeer_ns_open(node.as_ptr(), receives)
            })
        }?;
        // SAFETY: the structure is the namespace's, and nobody changes it.
        let info = FromC::from_c(unsafe { *sys::nvmepeer_ns_info(handle.raw()) });
        Ok(Self { handle, info })
    }

    /// The same as C has it; it lives as long as the namespace.
    pub(crate) fn format(&self) -> *const sys::nvmepeer_ns_info {
        // SAFETY: it is open.
        unsafe { sys::nvmepeer_ns_info(self.handle.raw()) }
    }

    /// Its format, as read when it was opened.
    pub fn info(&self) -> &NamespaceInfo {
        &self.info
    }

    /// Read `blocks` blocks from `lba` on.
    ///
    /// # Errors
    ///
    /// As [`Namespace::read_into`].
    pub fn read(&self, lba: u64, blocks: u32) -> Result<Vec<u8>, Error> {
        // One more than any command takes is refused, too, and needs no memory without end.
        let blocks = blocks.min(0x10001) as usize;
        let mut data = vec![0; blocks * self.info.block_size as usize];
        self.read_into(lba, &mut data)?;
        Ok(data)
    }

    /// Fill `data`, whole blocks, with what begins at block `lba`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`]: no whole blocks.  `EINVAL`: none, more than 65536, more than
    /// the controller's `max_transfer`, or memory that is not 4-byte aligned.
    /// [`Error::Status`]: the controller's.
    pub fn read_into(&self, lba: u64, data: &mut [u8]) -> Result<(), Error> {
        let blocks = self.whole_blocks(data)?;
        // SAFETY: there is room for so many blocks.
        completed(unsafe {
            sys::nvmepeer_ns_read(self.handle.raw(), lba, blocks, data.as_mut_ptr().cast())
        })
    }

    /// Write `data`, whole blocks, from block `lba` on.
    ///
    /// # Errors
    ///
    /// As [`Namespace::read_into`].
    pub fn write(&self, lba: u64, data: &[u8]) -> Result<(), Error> {
        let blocks = self.whole_blocks(data)?;
        // SAFETY: so many blocks are there.
        completed(unsafe {
            sys::nvmepeer_ns_write(self.handle.raw(), lba, blocks, data.as_ptr().cast())
        })
    }

    /// What was written becomes durable.
    ///
    /// # Errors
    ///
    /// [`Error::Status`]: the controller's.
    pub fn flush(&self) -> Result<(), Error> {
        // SAFETY: it is open.
        completed(unsafe { sys::nvmepeer_ns_flush(self.handle.raw()) })
    }

    /// How many blocks `data` is; too many for a command become 0, which the library refuses.
    fn whole_blocks(&self, data: &[u8]) -> Result<u32, Error> {
        let (length, size) = (data.len(), self.info.block_size as usize);
        if length % size != 0 {
            return Err(Error::Argument(format!("{length} bytes are no whole blocks of {size}")));
        }
        Ok(u32::try_from(length / size).unwrap_or(0))
    }
}

impl AsRawFd for Namespace {
    /// The descriptor; it stays the library's.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: it is open.
        unsafe { sys::nvmepeer_ns_fd(self.handle.raw()) }
    }
}

impl AsFd for Namespace {
    /// The descriptor; it stays the library's.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.descriptor(self.as_raw_fd())
    }
}
