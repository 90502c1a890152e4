// SPDX-License-Identifier: MIT OR GPL-2.0
//! libnvmepeer: the host side of nvme-peer.
//!
//! ```no_run
//! # fn main() -> Result<(), nvmepeer::Error> {
//! use nvmepeer::{Controller, CpuPeer, Namespace};
//!
//! let controller = Controller::open("nvmep0")?;
//! let namespace = Namespace::open("ngp0n1")?;
//! let peer = CpuPeer::new(&controller, &namespace, 64, 1 << 20)?;
//! peer.read(0, 0, 1, CpuPeer::RECOVERY)?;
//! println!("{} free, {:02x?}", controller.info()?.qids_peer_free, &peer.memory().to_vec()[..16]);
//! # Ok(())
//! # }
//! ```
//!
//! # Conventions
//!
//! - Sizes and offsets are bytes unless a name says blocks or entries.
//! - A failed call returns an [`Error`] with the request, the limit and the fix.  The program may
//!   keep it and move it to another thread.
//! - All objects are [`Send`] and [`Sync`]: several threads may use an object of the C library at
//!   once.  Drop releases the resources of an object.
//! - Buffers and queue pairs borrow their controller, and a queue pair borrows the buffers that
//!   contain its rings: the compiler refuses a program that drops the borrowed object first.
//! - No function requires `unsafe` of its caller.  Memory that a device writes is never a
//!   `&[u8]`, see [`Memory`].  [`sys`] has the bindings of the C library.
//! - A [`ServedQueuePair`] needs no controller: a thread of this process executes its commands on any
//!   block device or file.
//! - Stores of pages are module `store`, with the feature of that name, which links
//!   libnvmepeer_store.
//!
//! A queue pair cannot outlive its controller:
//!
//! ```compile_fail,E0505
//! # fn test(dmabuf: std::os::fd::BorrowedFd) -> Result<(), nvmepeer::Error> {
//! let controller = nvmepeer::Controller::open("nvmep0")?;
//! let queue_pair = controller.create_queue_pair(&nvmepeer::Rings::new(64))?;
//! drop(controller);
//! queue_pair.info()?;
//! # Ok(())
//! # }
//! ```
//!
//! A buffer cannot be released while it contains a ring:
//!
//! ```compile_fail,E0505
//! # fn test(controller: nvmepeer::Controller, dmabuf: std::os::fd::BorrowedFd) -> Result<(), nvmepeer::Error> {
//! let buffer = controller.import(dmabuf, nvmepeer::Import::default())?;
//! let queue_pair = controller.create_queue_pair(&nvmepeer::Rings::new(64).sq_in(&buffer, 0))?;
//! drop(buffer);
//! queue_pair.info()?;
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod buffer;
mod controller;
mod cpu_peer;
mod error;
mod file;
mod handle;
mod memory;
mod namespace;
mod queue_pair;
mod route;
mod serve;
#[cfg(feature = "store")]
pub mod store;
#[allow(missing_docs, non_camel_case_types)]
#[rustfmt::skip]
pub mod sys;
#[cfg(feature = "store")]
#[allow(missing_docs, non_camel_case_types)]
#[rustfmt::skip]
pub mod sys_store;
mod tenant;
mod value;

pub use buffer::{Access, Buffer, BufferInfo, Import};
pub use controller::{Controller, ControllerState, Domain, Features, Info};
pub use cpu_peer::CpuPeer;
pub use error::{status_text, DeviceError, Error, Explanation};
pub use file::{check_file, Extent, FileCheck, FileInfo, FileObstacle, PinnedFile, PinnedRange};
pub use memory::{HostMemory, Memory};
pub use namespace::{Namespace, NamespaceInfo};
pub use queue_pair::{
    Event, EventType, Export, Exported, Mode, QueuePair, QueuePairInfo, QueuePairState, Rings,
    Share,
};
pub use route::{Blocker, Path, PciAddress, Reason, Route, Verdict};
pub use serve::{ServeOptions, ServedBuffer, ServedQueuePair};
pub use tenant::{Limits, Rights, Slot, Stats, Window, WindowInfo};

/// Version of the C library that is loaded, as text: `"0.9.0"`.
pub fn version() -> &'static str {
    // SAFETY: the library returns a literal.
    unsafe { value::text(sys::nvmepeer_version()) }
}

/// The same as an increasing number: major << 16 | minor << 8 | patch.
pub fn version_number() -> u32 {
    // SAFETY: takes nothing and returns a number.
    unsafe { sys::nvmepeer_version_number() }
}
