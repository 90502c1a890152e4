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
        /// Bytes of data in a logical block.
        block_size: u32,
        /// Bytes of metadata of each block; always 0, as other namespaces are refused.
        metadata_size: u32,
        /// Size of the namespace in logical blocks.
        blocks: u64,
    }
}

/// A namespace node, for I/O by the CPU.  Each call submits one command and waits for its
/// completion.  Threads may call concurrently.
pub struct Namespace {
    handle: Handle<'static, sys::nvmepeer_ns>,
    info: NamespaceInfo,
}

impl Namespace {
    /// Open `"/dev/ngp0n1"`, or `"ngp0n1"` for short.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`: its blocks have metadata.  Also the errors of `open(2)`.
    pub fn open(node: &str) -> Result<Self, Error> {
        let node = node_name(node)?;
        // SAFETY: the name ends with NUL, and the close function matches the open function.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_ns_close, |receives| {
                sys::nvmepeer_ns_open(node.as_ptr(), receives)
            })
        }?;
        // SAFETY: the structure is valid and constant while the namespace is open.
        let info = FromC::from_c(unsafe { *sys::nvmepeer_ns_info(handle.raw()) });
        Ok(Self { handle, info })
    }

    /// The format as the C structure, valid as long as the namespace.
    pub(crate) fn format(&self) -> *const sys::nvmepeer_ns_info {
        // SAFETY: the handle is open.
        unsafe { sys::nvmepeer_ns_info(self.handle.raw()) }
    }

    /// The format, as read when the namespace was opened.
    pub fn info(&self) -> &NamespaceInfo {
        &self.info
    }

    /// Read `blocks` blocks, beginning at block `lba`.
    ///
    /// # Errors
    ///
    /// The errors of [`Namespace::read_into`].
    pub fn read(&self, lba: u64, blocks: u32) -> Result<Vec<u8>, Error> {
        // Limits the allocation: the library refuses 65537 blocks, as no command holds them.
        let blocks = blocks.min(0x10001) as usize;
        let mut data = vec![0; blocks * self.info.block_size as usize];
        self.read_into(lba, &mut data)?;
        Ok(data)
    }

    /// Fill `data`, a multiple of the block size, from block `lba` onwards.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`]: the length is not a multiple of the block size.  `EINVAL`: 0
    /// blocks, more than 65536, more than the controller's `max_transfer`, or memory that is
    /// not 4-byte aligned.  [`Error::Status`]: the status of the completion.
    pub fn read_into(&self, lba: u64, data: &mut [u8]) -> Result<(), Error> {
        let blocks = self.whole_blocks(data)?;
        // SAFETY: `data` holds this many blocks.
        completed(unsafe {
            sys::nvmepeer_ns_read(self.handle.raw(), lba, blocks, data.as_mut_ptr().cast())
        })
    }

    /// Write `data`, a multiple of the block size, from block `lba` onwards.
    ///
    /// # Errors
    ///
    /// The errors of [`Namespace::read_into`].
    pub fn write(&self, lba: u64, data: &[u8]) -> Result<(), Error> {
        let blocks = self.whole_blocks(data)?;
        // SAFETY: `data` holds this many blocks.
        completed(unsafe {
            sys::nvmepeer_ns_write(self.handle.raw(), lba, blocks, data.as_ptr().cast())
        })
    }

    /// Make all completed writes durable.
    ///
    /// # Errors
    ///
    /// [`Error::Status`]: the status of the completion.
    pub fn flush(&self) -> Result<(), Error> {
        // SAFETY: the handle is open.
        completed(unsafe { sys::nvmepeer_ns_flush(self.handle.raw()) })
    }

    /// Length of `data` in blocks.  A length above `u32::MAX` becomes 0, which the library
    /// refuses.
    fn whole_blocks(&self, data: &[u8]) -> Result<u32, Error> {
        let (length, size) = (data.len(), self.info.block_size as usize);
        if length % size != 0 {
            return Err(Error::Argument(format!("{length} bytes are no whole blocks of {size}")));
        }
        Ok(u32::try_from(length / size).unwrap_or(0))
    }
}

impl AsRawFd for Namespace {
    /// The file descriptor, which the library owns.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: the handle is open.
        unsafe { sys::nvmepeer_ns_fd(self.handle.raw()) }
    }
}

impl AsFd for Namespace {
    /// The file descriptor, which the library owns.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.descriptor(self.as_raw_fd())
    }
}
