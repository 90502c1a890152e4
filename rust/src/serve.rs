// SPDX-License-Identifier: MIT OR GPL-2.0
//! Queue pairs that this process serves.
use std::os::fd::{AsFd, AsRawFd};

use crate::error::{done, Error};
use crate::handle::Handle;
use crate::memory::Memory;
use crate::namespace::NamespaceInfo;
use crate::queue_pair::{Export, Exported};
use crate::sys;
use crate::value::{facts, FromC};

/// Size and limits of a served queue pair.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// Entries of each ring, a power of two from 2 to 32768.
    pub entries: u32,
    /// Most commands that the kernel has at a time, up to 4096; 0: 64.
    pub depth: u32,
    /// Most bytes of a command, a multiple of 4096 up to 16 MiB; 0: 1 MiB.
    pub max_transfer: u32,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { entries: 64, depth: 0, max_transfer: 0 }
    }
}

facts! {
    /// Data memory of a served queue pair.
    ServedBuffer of nvmepeer_buffer {
        /// Bytes.
        length: u64,
        /// Address of its first byte, as commands carry it.
        dma: u64,
    }
}

/// A queue pair whose commands a thread of this process executes by io_uring, on block devices and
/// files of any kind, with the rights of this process.  It needs no controller and no capability.
///
/// A peer, such as device code on a GPU, maps the parts of [`ServedQueuePair::export`].  Any number
/// of threads may use it at once.  Drop reports GONE to peers.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use nvmepeer::{HostMemory, ServeOptions, ServedQueuePair};
///
/// let memory = HostMemory::new(1 << 20)?;
/// let file = std::fs::File::open("/mnt/nfs/weights")?;
/// let mut served = ServedQueuePair::new(ServeOptions::default())?;
/// let namespace = served.add_namespace(&file, 0)?;
/// let buffer = served.add_buffer(memory.memory())?;
/// let geometry = served.geometry(&namespace, false)?;
/// served.serve_while(|| {
///     // Pass geometry, buffer and served.export() to the peer, and wait for it.
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// It cannot outlive its memory:
///
/// ```compile_fail,E0505
/// # fn test(memory: nvmepeer::HostMemory) -> Result<(), nvmepeer::Error> {
/// let mut served = nvmepeer::ServedQueuePair::new(Default::default())?;
/// served.add_buffer(memory.memory())?;
/// drop(memory);
/// served.run()
/// # }
/// ```
pub struct ServedQueuePair<'m> {
    handle: Handle<'m, sys::nvmepeer_serve>,
}

impl<'m> ServedQueuePair<'m> {
    /// Create one that is LIVE, without namespaces and buffers.
    ///
    /// # Errors
    ///
    /// `EINVAL`: of the options.  `ENOSYS`, `EPERM`: no io_uring.
    pub fn new(options: ServeOptions) -> Result<Self, Error> {
        let options = sys::nvmepeer_serve_options {
            size: size_of::<sys::nvmepeer_serve_options>() as u32,
            flags: 0,
            entries: options.entries,
            depth: options.depth,
            max_transfer: options.max_transfer,
            reserved: 0,
        };
        // SAFETY: `options` has its size; the second function destroys what the first creates.
        // No thread is in run() then, as it borrows the object.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_serve_destroy, |receives| {
                sys::nvmepeer_serve_create(&options, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// Add a block device or a regular file as a namespace, with the blocks that it has now.  Its
    /// access mode decides whether peers may write.  The descriptor may be closed afterwards.
    /// `block_size`: a power of two from 512 to 65536; 0: that of the device, or 512.
    ///
    /// # Errors
    ///
    /// `ENOTBLK`: it is neither.  `ENODATA`: it has no block.  `EINVAL`: of the block size.
    /// `ENOSPC`: there are 64 namespaces.
    pub fn add_namespace(
        &mut self,
        file: impl AsFd,
        block_size: u32,
    ) -> Result<NamespaceInfo, Error> {
        // SAFETY: numbers only.
        let mut namespace: sys::nvmepeer_ns_info = unsafe { core::mem::zeroed() };
        let (fd, size) = (file.as_fd().as_raw_fd(), size_of_val(&namespace));
        // SAFETY: the pointer is to a structure of this size, and no thread is in run().
        done(unsafe {
            sys::nvmepeer_serve_add_fd(self.handle.raw(), fd, block_size, &mut namespace, size)
        })?;
        Ok(FromC::from_c(namespace))
    }

    /// Let commands transfer data of `memory`, which is aligned to 4096 bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL`: alignment, or no bytes.  `ENOSPC`: there are 64 buffers.
    pub fn add_buffer(&mut self, memory: Memory<'m>) -> Result<ServedBuffer, Error> {
        let mut buffer = sys::nvmepeer_buffer { length: 0, dma: 0, pages: 0 };
        let address = memory.bytes().as_ptr().cast_mut().cast();
        // SAFETY: the memory is mapped for `'m`, which the handle does not outlive, and all
        // references to it are to atomics.  No thread is in run().
        done(unsafe {
            let length = memory.len() as u64;
            sys::nvmepeer_serve_add_buffer(self.handle.raw(), address, length, &mut buffer)
        })?;
        Ok(FromC::from_c(buffer))
    }

    /// The geometry of the device library for a peer that maps the parts: a GPU, by
    /// `nvmepeer_cuda_queues_from_fds()`, or another process.  `cpu`: the peer is a CPU.
    ///
    /// # Errors
    ///
    /// `EINVAL`: of the namespace.
    pub fn geometry(
        &self,
        namespace: &NamespaceInfo,
        cpu: bool,
    ) -> Result<sys::nvmepeer_geometry, Error> {
        let namespace = sys::nvmepeer_ns_info {
            size: size_of::<sys::nvmepeer_ns_info>() as u32,
            nsid: namespace.nsid,
            block_size: namespace.block_size,
            metadata_size: namespace.metadata_size,
            blocks: namespace.blocks,
        };
        let view = sys::NVMEPEER_VIEW_DESCRIPTORS | if cpu { sys::NVMEPEER_VIEW_CPU } else { 0 };
        // SAFETY: numbers only.
        let mut geometry: sys::nvmepeer_geometry = unsafe { core::mem::zeroed() };
        let size = size_of_val(&geometry);
        // SAFETY: the pointers are to structures of these sizes.
        done(unsafe {
            sys::nvmepeer_serve_geometry(self.handle.raw(), &namespace, view, &mut geometry, size)
        })?;
        Ok(geometry)
    }

    /// A descriptor of a part, for `mmap(2)`: a memfd, which has all parts.  The doorbells are
    /// memory.
    ///
    /// # Errors
    ///
    /// `EMFILE`: too many descriptors.
    pub fn export(&self, what: Export) -> Result<Exported, Error> {
        // SAFETY: Exported::ask() gives a structure and its size.
        Exported::ask(|made, size| unsafe {
            sys::nvmepeer_serve_export(self.handle.raw(), what.into(), made, size)
        })
    }

    /// Execute commands in this thread until [`ServedQueuePair::stop`].
    ///
    /// # Errors
    ///
    /// After a loss, which [`ServedQueuePair::rearm`] ends: `EPROTO`: a peer wrote an invalid
    /// doorbell.  `ECANCELED`: a peer requested it.  Otherwise `EBUSY`: another thread serves.
    /// `ESHUTDOWN`: it is not LIVE.
    pub fn run(&self) -> Result<(), Error> {
        // SAFETY: the handle is open, and refuses a second thread.
        done(unsafe { sys::nvmepeer_serve_run(self.handle.raw()) })
    }

    /// Make [`ServedQueuePair::run`] return, in its next call if there is none now.
    pub fn stop(&self) {
        // SAFETY: the handle is open.
        unsafe { sys::nvmepeer_serve_stop(self.handle.raw()) }
    }

    /// Execute commands in another thread while `work` runs in this one.  Returns its result.
    ///
    /// # Errors
    ///
    /// As [`ServedQueuePair::run`]; `work` has returned then, too.
    pub fn serve_while<T>(&self, work: impl FnOnce() -> T) -> Result<T, Error> {
        std::thread::scope(|scope| {
            let server = scope.spawn(|| self.run());
            // Also if `work` panics: the scope waits for the thread.
            let stop = Stop(self);
            let result = work();
            drop(stop);
            server.join().expect("run() does not panic").map(|()| result)
        })
    }

    /// Wake the thread that serves: for a CPU that has stored to a doorbell and found
    /// `poller_asleep` set in the status page.
    pub fn kick(&self) {
        // SAFETY: the handle is open.
        unsafe { sys::nvmepeer_serve_kick(self.handle.raw()) }
    }

    /// Make it LIVE after a loss.  No peer is in a call on it.  Returns the losses, for
    /// `nvmepeer_queue_rearm()`.
    ///
    /// # Errors
    ///
    /// `EALREADY`: it is LIVE.  `ESHUTDOWN`: it has failed.
    pub fn rearm(&mut self) -> Result<u32, Error> {
        let mut losses = 0;
        // SAFETY: the pointer is to a local variable, and no thread is in run().
        done(unsafe { sys::nvmepeer_serve_rearm(self.handle.raw(), &mut losses) })?;
        Ok(losses)
    }
}

/// Stops a server when it is dropped.
struct Stop<'s, 'm>(&'s ServedQueuePair<'m>);

impl Drop for Stop<'_, '_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
