// SPDX-License-Identifier: MIT OR GPL-2.0
//! Files: what prevents a window on one, and where its blocks are.
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use crate::controller::Controller;
use crate::error::{done, explained, Error, Explanation};
use crate::sys;
use crate::value::{facts, numbers, FromC};

numbers! {
    /// Why a file cannot have a window.
    FileObstacle named by nvmepeer_file_obstacle_name {
        /// It is a directory, a device or another special file.
        NotRegular = NVMEPEER_FILE_NOT_REGULAR,
        /// Its file system is not on a block device of its own: btrfs, overlayfs, tmpfs, NFS.
        NoDisk = NVMEPEER_FILE_NO_DISK,
        /// Its disk is no namespace of nvme-peer and no partition of one.
        OtherDisk = NVMEPEER_FILE_OTHER_DISK,
        /// The file system is neither ext4 nor XFS.
        FileSystem = NVMEPEER_FILE_SYSTEM,
        /// The descriptor is not open for reading and writing.
        ReadOnly = NVMEPEER_FILE_READ_ONLY,
        /// The caller neither owns the file nor has `CAP_LEASE`.
        NotOwner = NVMEPEER_FILE_NOT_OWNER,
        /// It is immutable.
        Immutable = NVMEPEER_FILE_IMMUTABLE,
        /// It is append-only.
        AppendOnly = NVMEPEER_FILE_APPEND_ONLY,
        /// Its blocks are not its data: it is encrypted.
        Encrypted = NVMEPEER_FILE_ENCRYPTED,
        /// Its blocks are not its data: it is compressed.
        Compressed = NVMEPEER_FILE_COMPRESSED,
        /// It is protected by fs-verity.
        Verity = NVMEPEER_FILE_VERITY,
        /// It is accessed by DAX.
        Dax = NVMEPEER_FILE_DAX,
        /// Its data is written to the journal first.
        Journalled = NVMEPEER_FILE_JOURNALLED,
        /// Its data is in the inode.
        Inline = NVMEPEER_FILE_INLINE,
        /// It shares blocks with another file.
        Shared = NVMEPEER_FILE_SHARED,
        /// Data has no known location on the disk.
        Unplaced = NVMEPEER_FILE_UNPLACED,
        /// It has no whole block of the file system.
        Empty = NVMEPEER_FILE_EMPTY,
        /// A part has no blocks.
        Holes = NVMEPEER_FILE_HOLES,
        /// A part has blocks that were never written.
        Unwritten = NVMEPEER_FILE_UNWRITTEN,
    }
}

facts! {
    /// A file, from [`check_file`].  Extents, holes and unwritten bytes are counted on ext4 and XFS
    /// only.
    FileInfo of nvmepeer_file_info {
        /// Size of the file.
        bytes: u64,
        /// Number of extents.
        extents: u64,
        /// Bytes without blocks.
        holes: u64,
        /// Bytes whose blocks were never written.
        unwritten: u64,
        /// Type of the file system, `"ext4"`.
        file_system: String,
        /// Block device of the file system, `"nvmep0n1p1"`; empty without one.
        disk: String,
        /// Controller of that device, `"nvmep0"`; empty if it is not of nvme-peer.
        controller: String,
    }
}

/// A file, and what prevents a window on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileCheck {
    /// The file.
    pub info: FileInfo,
    /// Obstacles with the limit and the fix, those that are hardest to change first; empty if the
    /// caller finds none.
    pub obstacles: Vec<(FileObstacle, Explanation)>,
}

/// Find what prevents a window of a mediated queue pair on a file, also if the answer is nothing:
/// the kernel checks again in [`QueuePair::add_window`](crate::QueuePair::add_window).  Dirty data
/// is written back.
///
/// # Errors
///
/// The error of `fstat(2)` and of the ioctls that find the extents.
pub fn check_file(file: impl AsFd) -> Result<FileCheck, Error> {
    // SAFETY: numbers and arrays of numbers.
    let mut info: sys::nvmepeer_file_info = unsafe { core::mem::zeroed() };
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: the pointer is to a structure of this size.
    done(unsafe { sys::nvmepeer_file_check(fd, &mut info, size_of_val(&info)) })?;
    let explain = |bit| {
        // SAFETY: the pointers are to structures of these sizes.
        *explained(|why, size| unsafe { sys::nvmepeer_file_explain(&info, bit, why, size) })
    };
    let bits = (0..u32::BITS).map(|bit| 1 << bit).filter(|bit| info.obstacles & bit != 0);
    let obstacles = bits.map(|bit| (FileObstacle::from_c(bit), explain(bit))).collect();
    Ok(FileCheck { info: FromC::from_c(info), obstacles })
}

facts! {
    /// The part of a file that is pinned.
    PinnedRange of nvme_peer_extents {
        /// Its first block on the file.
        first: u64,
        /// Number of blocks.
        blocks: u64,
        /// The namespace that has them.
        nsid: u32,
        /// Bytes of a block.
        block_size: u32,
        /// Number of extents.
        count: u32,
    }
}

/// Contiguous blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extent {
    /// The first block, on the file.
    pub first: u64,
    /// The same block, on the namespace.
    pub lba: u64,
    /// Number of blocks.
    pub blocks: u64,
}

/// A file whose blocks stay where they are, from [`Controller::pin_file`].  Peers must only read
/// them.  Drop unpins it.
pub struct PinnedFile {
    file: File,
    range: PinnedRange,
}

impl PinnedFile {
    /// The part that is pinned.
    pub fn range(&self) -> &PinnedRange {
        &self.range
    }

    /// The extents, in the order of the file.  What a peer has read is data of the file if this
    /// succeeds afterwards.
    ///
    /// # Errors
    ///
    /// `ESTALE`: blocks of the file have changed.
    pub fn extents(&self) -> io::Result<Vec<Extent>> {
        const EACH: usize = size_of::<sys::nvme_peer_extent>();
        let mut data = vec![0; self.range.count as usize * EACH];
        self.file.read_exact_at(&mut data, 0)?;
        let mut numbers = data
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let mut next = || numbers.next().unwrap_or_default();
        Ok((0..self.range.count)
            .map(|_| Extent { first: next(), lba: next(), blocks: next() })
            .collect())
    }
}

impl AsFd for PinnedFile {
    /// The file that has the extents; the blocks stay while a copy of it is open.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Controller {
    /// Pin a file, for peers in direct or relay mode, and find its extents: `blocks` blocks from
    /// `first` on; 0: all from there.  The file is open for reading and writing, and may be closed
    /// afterwards.
    ///
    /// # Errors
    ///
    /// `EXDEV`: it is not on this controller.  `ENODATA`: of a hole or an unwritten part.
    /// `ENOTBLK`, `EMEDIUMTYPE`: its blocks cannot be pinned.  `EACCES`: the caller does not own it.
    /// [`check_file`] explains them.
    pub fn pin_file(&self, file: impl AsFd, first: u64, blocks: u64) -> Result<PinnedFile, Error> {
        // SAFETY: numbers only.
        let mut extents: sys::nvme_peer_extents = unsafe { core::mem::zeroed() };
        extents.fd = file.as_fd().as_raw_fd();
        (extents.first, extents.blocks) = (first, blocks);
        let size = size_of_val(&extents);
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_file_extents(self.raw(), &mut extents, size) })?;
        // SAFETY: the call opened it and passed on the ownership.
        let file = unsafe { OwnedFd::from_raw_fd(extents.pin_fd) };
        Ok(PinnedFile { file: file.into(), range: FromC::from_c(extents) })
    }
}
