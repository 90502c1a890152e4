// SPDX-License-Identifier: MIT OR GPL-2.0
//! Queue pairs: creation, exports, events, re-arm.
use core::ffi::{c_int, c_short, c_ulong};
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::buffer::Buffer;
use crate::controller::Controller;
use crate::error::{counted, done, Error};
use crate::handle::Handle;
use crate::route::PciAddress;
use crate::sys;
use crate::value::{facts, numbers, FromC};

numbers! {
    /// State of a queue pair.
    QueuePairState named by nvmepeer_qp_state_name {
        /// The controller executes its commands.
        Live = NVME_PEER_QP_LIVE,
        /// Its entries are lost; [`QueuePair::rearm`] makes it live again.
        Quiesced = NVME_PEER_QP_QUIESCED,
        /// As `Quiesced`, but it cannot be re-armed.
        Failed = NVME_PEER_QP_FAILED,
        /// The controller or the memory of a ring was removed.
        Gone = NVME_PEER_QP_GONE,
    }
}

numbers! {
    /// The objects of a queue pair that can be exported as a dma-buf.
    Export named by nvmepeer_export_name {
        /// The submission ring, if it is in host memory.
        Sq = NVME_PEER_EXPORT_SQ,
        /// The completion ring, if it is in host memory.
        Cq = NVME_PEER_EXPORT_CQ,
        /// The pages of registers that hold its doorbells; a peer must only write them.
        Doorbell = NVME_PEER_EXPORT_DOORBELL,
        /// The status page, read-only.
        Status = NVME_PEER_EXPORT_STATUS,
        /// The control page: a peer requests recovery by writing to it.
        Control = NVME_PEER_EXPORT_CONTROL,
    }
}

numbers! {
    /// Which side writes doorbells and validates commands.
    Mode named by nvmepeer_mode_name {
        /// The peer writes the controller's registers.
        Direct = NVME_PEER_MODE_DIRECT,
        /// The peer writes host memory, and a thread of the kernel the registers.
        Relay = NVME_PEER_MODE_RELAY,
        /// As `Relay`, and the thread checks each command and sends one of its own.
        Mediated = NVME_PEER_MODE_MEDIATED,
    }
}

numbers! {
    /// Type of an event.
    EventType {
        /// The state of the queue pair changed.
        State = NVME_PEER_EVENT_STATE,
        /// The queue pair is QUIESCED, and the controller is ready for [`QueuePair::rearm`].
        Ready = NVME_PEER_EVENT_READY,
        /// The exporter of a buffer of a mediated queue pair has invalidated it.
        BufferEnded = NVME_PEER_EVENT_BUFFER_ENDED,
    }
}

facts! {
    /// Geometry, state and counters of a queue pair.
    QueuePairInfo of nvme_peer_qp_info {
        /// Queue identifier.
        qid: u32,
        /// Its state.
        state: QueuePairState,
        /// Generation of the controller that it belongs to.
        generation: u32,
        /// Its mode.
        mode: Mode,
        /// Entries of the submission ring.
        sq_entries: u32,
        /// Entries of the completion ring.
        cq_entries: u32,
        /// Bytes from the tail doorbell to the head doorbell.
        doorbell_stride: u32,
        /// Byte offset of the tail doorbell in the exported pages.
        doorbell_offset: u32,
        /// Bytes of the exported doorbell pages.
        doorbell_length: u32,
        /// Its open dma-bufs.
        exports: u32,
        /// Devices attached to them.
        importers: u32,
        /// User mappings of them.
        mmaps: u32,
        /// Reason why it is not live: `enum nvme_peer_qp_reason`, 0 while it is.
        reason: u32,
        /// Number of losses, for [`QueuePair::rearm`].
        losses: u32,
        /// The PCI function that has the submission ring in its memory, none for host memory.
        sq_pci_address: Option<PciAddress>,
        /// The same for the completion ring.
        cq_pci_address: Option<PciAddress>,
        /// Writes of the CPU to its doorbells.
        cpu_doorbell_writes: u64,
    }
}

facts! {
    /// An event of a queue pair.
    Event of nvme_peer_event {
        /// Type of the event.
        type_: EventType,
        /// Nanoseconds of `CLOCK_MONOTONIC`.
        time: u64,
        /// Generation of the controller at that time.
        generation: u32,
        /// State of the queue pair at that time.
        state: QueuePairState,
        /// Reason why it was not live: `enum nvme_peer_qp_reason`.
        reason: u32,
        /// Events dropped before this one because they were not read in time.
        lost: u32,
        /// What the event is about, by its type.
        object: u64,
        /// More about it, by its type.
        detail: u64,
    }
}

/// An object of a queue pair, exported as a dma-buf.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// The dma-buf.
    pub fd: OwnedFd,
    /// First byte of the object in it.
    pub offset: u64,
    /// Bytes of the object.
    pub length: u64,
}

impl Exported {
    /// What a call of the library opens: it stores a structure of the size that it is given.
    pub(crate) fn ask(
        call: impl FnOnce(*mut sys::nvmepeer_export, usize) -> c_int,
    ) -> Result<Self, Error> {
        let mut made = sys::nvmepeer_export { fd: -1, offset: 0, length: 0 };
        done(call(&mut made, size_of::<sys::nvmepeer_export>()))?;
        // SAFETY: the call opened it and passed on the ownership.
        let fd = unsafe { OwnedFd::from_raw_fd(made.fd) };
        Ok(Self { fd, offset: made.offset, length: made.length })
    }
}

/// Size and placement of the rings of a queue pair: host memory by default, or a buffer.
#[derive(Clone, Copy)]
pub struct Rings<'b> {
    sq_entries: u32,
    cq_entries: u32,
    sq: Option<(&'b Buffer<'b>, u64)>,
    cq: Option<(&'b Buffer<'b>, u64)>,
    allow_sleep: bool,
    mode: Mode,
    share: Share,
}

/// What a queue pair in mediated mode may use; 0: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// Most commands in flight.
    pub depth: u32,
    /// Its share in relation to others; above 1 needs `CAP_SYS_NICE`.
    pub weight: u32,
    /// Milliseconds until a command is aborted.
    pub timeout_ms: u32,
    /// Most windows.
    pub max_windows: u32,
    /// Most buffers.
    pub max_buffers: u32,
}

impl<'b> Rings<'b> {
    /// Two rings of `entries` entries in host memory.
    pub fn new(entries: u32) -> Self {
        Self {
            sq_entries: entries,
            cq_entries: entries,
            sq: None,
            cq: None,
            allow_sleep: false,
            mode: Mode::Direct,
            share: Share::default(),
        }
    }

    /// Set the number of entries of the completion ring.
    pub fn cq_entries(self, entries: u32) -> Self {
        Self { cq_entries: entries, ..self }
    }

    /// Place the submission ring in `buffer` at byte `offset`, which is page aligned.
    pub fn sq_in(self, buffer: &'b Buffer<'_>, offset: u64) -> Self {
        Self { sq: Some((buffer, offset)), ..self }
    }

    /// Place the completion ring in `buffer` at byte `offset`; that memory must be zero.
    pub fn cq_in(self, buffer: &'b Buffer<'_>, offset: u64) -> Self {
        Self { cq: Some((buffer, offset)), ..self }
    }

    /// Allow system sleep; the queue pair is QUIESCED after resume.
    pub fn allow_sleep(self) -> Self {
        Self { allow_sleep: true, ..self }
    }

    /// Relay mode: doorbells in host memory, for peers that cannot write the controller's BAR.
    pub fn relay(self) -> Self {
        Self { mode: Mode::Relay, ..self }
    }

    /// Mediated mode: commands are checked against windows and buffers, and no capability is needed.
    /// The rings are in host memory.
    pub fn mediated(self, share: Share) -> Self {
        Self { mode: Mode::Mediated, share, ..self }
    }

    fn request(&self, controller: &Controller) -> Result<sys::nvme_peer_qp_create, Error> {
        // SAFETY: numbers only.
        let mut request: sys::nvme_peer_qp_create = unsafe { core::mem::zeroed() };
        request.mode = self.mode.into();
        request.depth = self.share.depth;
        request.weight = self.share.weight;
        request.timeout_ms = self.share.timeout_ms;
        request.max_windows = self.share.max_windows;
        request.max_buffers = self.share.max_buffers;
        request.sq_entries = self.sq_entries;
        request.cq_entries = self.cq_entries;
        request.flags = if self.allow_sleep { sys::NVME_PEER_QP_ALLOW_SLEEP } else { 0 };
        (request.sq_handle, request.sq_offset) = place(self.sq, controller)?;
        (request.cq_handle, request.cq_offset) = place(self.cq, controller)?;
        Ok(request)
    }
}

/// Handle and offset of a ring.  A handle is valid only on the controller that imported the
/// buffer.
fn place(ring: Option<(&Buffer<'_>, u64)>, controller: &Controller) -> Result<(u32, u64), Error> {
    match ring {
        None => Ok((0, 0)),
        Some((buffer, offset)) if buffer.is_of(controller) => Ok((buffer.info().handle, offset)),
        Some(_) => Err(Error::Argument(format!(
            "the buffer of a ring was not imported by this {}",
            controller.node()
        ))),
    }
}

/// A queue pair, from [`Controller::create_queue_pair`] or [`QueuePair::from_fd`].  Any number
/// of threads may use it at once.
///
/// Its file can be polled, by [`QueuePair::wait`] or in an event loop: `POLLPRI` while an
/// event can be read, `POLLHUP` once the queue pair is gone.  Drop closes the file; the close of
/// the last copy destroys the queue pair.
pub struct QueuePair<'c> {
    handle: Handle<'c, sys::nvmepeer_qp>,
}

impl<'c> QueuePair<'c> {
    pub(crate) fn create(controller: &'c Controller, rings: &Rings<'c>) -> Result<Self, Error> {
        let mut request = rings.request(controller)?;
        let size = size_of_val(&request);
        // SAFETY: `request` has this size; the second function destroys what the first creates.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_qp_destroy, |receives| {
                sys::nvmepeer_qp_create(controller.raw(), &mut request, size, receives)
            })
        }?;
        Ok(Self { handle })
    }

    pub(crate) fn raw(&self) -> *mut sys::nvmepeer_qp {
        self.handle.raw()
    }

    /// Current geometry, state and counters.
    ///
    /// # Errors
    ///
    /// The error of the ioctl.
    pub fn info(&self) -> Result<QueuePairInfo, Error> {
        // SAFETY: numbers only.
        let mut info: sys::nvme_peer_qp_info = unsafe { core::mem::zeroed() };
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_qp_info(self.handle.raw(), &mut info, size_of_val(&info)) })?;
        Ok(FromC::from_c(info))
    }

    /// Export a ring, the doorbells or a page as a dma-buf.  `allow_static`, for doorbells only:
    /// accept importers that do not support invalidation.
    ///
    /// # Errors
    ///
    /// `ENODATA`: the ring is in a buffer, which its owner exports.  `ESHUTDOWN`, `EAGAIN`: the
    /// queue pair is not live.  `EOPNOTSUPP`: the page of the doorbells also has registers that must
    /// not be exported.
    pub fn export(&self, what: Export, allow_static: bool) -> Result<Exported, Error> {
        let flags = if allow_static { sys::NVME_PEER_EXPORT_ALLOW_STATIC } else { 0 };
        // SAFETY: Exported::ask() gives a structure and its size.
        Exported::ask(|made, size| unsafe {
            sys::nvmepeer_qp_export(self.handle.raw(), what.into(), flags, made, size)
        })
    }

    /// Make a QUIESCED queue pair live again.  All its peers must have seen the loss and use no
    /// old entry.  `losses` is the value of [`QueuePairInfo::losses`] when the caller began to
    /// handle the loss.  A completion ring in a buffer must be zero.  Returns the new generation.
    ///
    /// # Errors
    ///
    /// `EAGAIN`: the controller is not ready, see [`EventType::Ready`].  `EALREADY`: it is
    /// live.  `ESTALE`: another loss happened.  `ESHUTDOWN`: it cannot be re-armed.  `EIO`: the
    /// controller refused; the caller may retry.
    pub fn rearm(&self, losses: u32) -> Result<u32, Error> {
        let mut generation = 0;
        // SAFETY: the pointer is to a local variable.
        done(unsafe { sys::nvmepeer_qp_rearm(self.handle.raw(), losses, &mut generation) })?;
        Ok(generation)
    }

    /// Wake the kernel's thread that polls doorbells in host memory: for a CPU that has stored to
    /// one and found `poller_asleep` set in the status page.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`: the queue pair is in direct mode.
    pub fn kick(&self) -> Result<(), Error> {
        // SAFETY: the handle is open.
        done(unsafe { sys::nvmepeer_qp_kick(self.handle.raw()) })
    }

    /// Read the pending events, oldest first; an empty list: the queue pair is gone.  Blocks until
    /// there is an event, unless the file is non-blocking.
    ///
    /// # Errors
    ///
    /// `EAGAIN`: the file is non-blocking, and no event is pending.
    pub fn read_events(&self) -> Result<Vec<Event>, Error> {
        const MOST: usize = 32;
        // SAFETY: numbers only.
        let mut events: [sys::nvme_peer_event; MOST] = unsafe { core::mem::zeroed() };
        // SAFETY: the array has `MOST` elements of this size.
        let filled = counted(unsafe {
            sys::nvmepeer_qp_events(
                self.handle.raw(),
                events.as_mut_ptr(),
                size_of::<sys::nvme_peer_event>(),
                MOST as u32,
            )
        })?;
        Ok(events[..filled].iter().copied().map(FromC::from_c).collect())
    }

    /// Wait up to `timeout` until an event can be read or the queue pair is gone; returns false on
    /// a timeout.  For programs without an event loop.
    ///
    /// # Errors
    ///
    /// The error of `poll(2)`.  A signal ends the wait early, which returns false.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        wait_for(self.as_raw_fd(), milliseconds(timeout))
    }
}

impl QueuePair<'static> {
    /// Take ownership of a queue pair file, for example one received over a socket.
    ///
    /// # Errors
    ///
    /// `fd` is not a queue pair file; it is closed.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, Error> {
        // SAFETY: the descriptor is open; the second function closes what the first takes over.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_qp_destroy, |receives| {
                sys::nvmepeer_qp_from_fd(fd.as_raw_fd(), receives)
            })
        }?;
        // The library owns it now.
        let _ = fd.into_raw_fd();
        Ok(Self { handle })
    }
}

impl AsRawFd for QueuePair<'_> {
    /// The queue pair file, which the library owns.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: it is open.
        unsafe { sys::nvmepeer_qp_fd(self.handle.raw()) }
    }
}

impl AsFd for QueuePair<'_> {
    /// The queue pair file, which the library owns.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.descriptor(self.as_raw_fd())
    }
}

/// A timeout for poll(2).
pub(crate) fn milliseconds(time: Duration) -> c_int {
    c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX)
}

/// The standard library has no poll(2).
#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

const POLLPRI: c_short = 2;

extern "C" {
    fn poll(fds: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
}

fn wait_for(fd: RawFd, timeout: c_int) -> io::Result<bool> {
    let mut waits = PollFd { fd, events: POLLPRI, revents: 0 };
    // SAFETY: the pointer is to one element.
    match unsafe { poll(&mut waits, 1, timeout) } {
        0 => Ok(false),
        ready if ready > 0 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}
