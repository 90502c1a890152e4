// SPDX-License-Identifier: MIT OR GPL-2.0
//! Queue pairs: what a peer gets, and what happens to them.
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
        /// The controller serves it.
        Live = NVME_PEER_QP_LIVE,
        /// Its entries are lost; it waits for [`QueuePair::rearm`].
        Quiesced = NVME_PEER_QP_QUIESCED,
        /// Likewise, but it cannot come back.
        Failed = NVME_PEER_QP_FAILED,
        /// Its controller or one of its rings went away.
        Gone = NVME_PEER_QP_GONE,
    }
}

numbers! {
    /// What of a queue pair becomes a dma-buf.
    Export named by nvmepeer_export_name {
        /// The submission ring, if it lies in host memory.
        Sq = NVME_PEER_EXPORT_SQ,
        /// The completion ring, if it lies in host memory.
        Cq = NVME_PEER_EXPORT_CQ,
        /// The pages of registers that hold its doorbells; a peer must only write them.
        Doorbell = NVME_PEER_EXPORT_DOORBELL,
        /// The status page, for reading only.
        Status = NVME_PEER_EXPORT_STATUS,
        /// The page by which a peer asks for a reset.
        Request = NVME_PEER_EXPORT_REQUEST,
    }
}

numbers! {
    /// What a record tells.
    EventType {
        /// The state of the queue pair changed.
        State = NVME_PEER_EVENT_STATE,
        /// The queue pair is QUIESCED, and the controller ready for [`QueuePair::rearm`].
        Ready = NVME_PEER_EVENT_READY,
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
        /// Dma-bufs of it that are open.
        exports: u32,
        /// Devices attached to them.
        importers: u32,
        /// User mappings of them.
        mmaps: u32,
        /// Why it is not live.
        reason: u32,
        /// How often it stopped being live, for [`QueuePair::rearm`].
        losses: u32,
        /// The function in whose memory the submission ring lies, none for host memory.
        sq_pci_address: Option<PciAddress>,
        /// As well for the completion ring.
        cq_pci_address: Option<PciAddress>,
        /// Writes of the CPU to its doorbells.
        cpu_doorbell_writes: u64,
    }
}

facts! {
    /// A record of what happened to a queue pair.
    Event of nvme_peer_event {
        /// What it tells.
        type_: EventType,
        /// Nanoseconds of `CLOCK_MONOTONIC`.
        time: u64,
        /// Generation of the controller then.
        generation: u32,
        /// State of the queue pair then.
        state: QueuePairState,
        /// Why it was not live.
        reason: u32,
        /// Records that nobody read in time, between the one before and this one.
        lost: u32,
    }
}

/// Part of a queue pair as a dma-buf.
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

/// Where the rings of a queue pair are to lie: in host memory, unless in a buffer.
#[derive(Clone, Copy)]
pub struct Rings<'b> {
    sq_entries: u32,
    cq_entries: u32,
    sq: Option<(&'b Buffer<'b>, u64)>,
    cq: Option<(&'b Buffer<'b>, u64)>,
    allow_sleep: bool,
}

impl<'b> Rings<'b> {
    /// Two rings of so many entries.
    pub fn new(entries: u32) -> Self {
        Self { sq_entries: entries, cq_entries: entries, sq: None, cq: None, allow_sleep: false }
    }

    /// A longer completion ring.
    pub fn cq_entries(self, entries: u32) -> Self {
        Self { cq_entries: entries, ..self }
    }

    /// The submission ring lies in `buffer`, from byte `offset` on, page aligned.
    pub fn sq_in(self, buffer: &'b Buffer<'_>, offset: u64) -> Self {
        Self { sq: Some((buffer, offset)), ..self }
    }

    /// The completion ring lies there; that memory has to be zero.
    pub fn cq_in(self, buffer: &'b Buffer<'_>, offset: u64) -> Self {
        Self { cq: Some((buffer, offset)), ..self }
    }

    /// The machine may go to sleep; the queue pair is QUIESCED when it wakes.
    pub fn allow_sleep(self) -> Self {
        Self { allow_sleep: true, ..self }
    }

    fn request(&self, controller: &Controller) -> Result<sys::nvme_peer_qp_create, Error> {
        // SAFETY: numbers only.
        let mut request: sys::nvme_peer_qp_create = unsafe { core::mem::zeroed() };
        request.sq_entries = self.sq_entries;
        request.cq_entries = self.cq_entries;
        request.flags = if self.allow_sleep { sys::NVME_PEER_QP_ALLOW_SLEEP } else { 0 };
        (request.sq_handle, request.sq_offset) = place(self.sq, controller)?;
        (request.cq_handle, request.cq_offset) = place(self.cq, controller)?;
        Ok(request)
    }
}

/// Handle and offset of a ring.  A handle says nothing on another controller, or something
/// else.
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
/// Its file can be waited for, by [`QueuePair::wait`] or in an event loop: `POLLPRI` while an
/// event waits, `POLLHUP` once the queue pair is gone.  Dropped, it goes when the last copy of
/// its file is closed.
pub struct QueuePair<'c> {
    handle: Handle<'c, sys::nvmepeer_qp>,
}

impl<'c> QueuePair<'c> {
    pub(crate) fn create(controller: &'c Controller, rings: &Rings<'c>) -> Result<Self, Error> {
        let mut request = rings.request(controller)?;
        let size = size_of_val(&request);
        // SAFETY: the structure is ours and of this size; the two functions belong together.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_qp_destroy, |receives| {
                sys::nvmepeer_qp_create(controller.raw(), &mut request, size, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// Geometry, state and counters as of now.
    ///
    /// # Errors
    ///
    /// What the kernel says of the file.
    pub fn info(&self) -> Result<QueuePairInfo, Error> {
        // SAFETY: numbers only.
        let mut info: sys::nvme_peer_qp_info = unsafe { core::mem::zeroed() };
        // SAFETY: the structure is ours and of this size.
        done(unsafe { sys::nvmepeer_qp_info(self.handle.raw(), &mut info, size_of_val(&info)) })?;
        Ok(FromC::from_c(info))
    }

    /// A ring, the doorbells or a page as a dma-buf.  `allow_static`, for doorbells only:
    /// admit importers that cannot be told to let go.
    ///
    /// # Errors
    ///
    /// `ENODATA`: the ring lies in a buffer, whose owner exports it.  `ESHUTDOWN`, `EAGAIN`:
    /// it is not live.  `ENXIO`: the page of doorbells holds what must not be exported.
    pub fn export(&self, what: Export, allow_static: bool) -> Result<Exported, Error> {
        let flags = if allow_static { sys::NVME_PEER_EXPORT_ALLOW_STATIC } else { 0 };
        let mut made = sys::nvmepeer_export { fd: -1, offset: 0, length: 0 };
        let size = size_of_val(&made);
        // SAFETY: the structure is ours and of this size.
        done(unsafe {
            sys::nvmepeer_qp_export(self.handle.raw(), what.into(), flags, &mut made, size)
        })?;
        // SAFETY: it was just opened for us.
        let fd = unsafe { OwnedFd::from_raw_fd(made.fd) };
        Ok(Exported { fd, offset: made.offset, length: made.length })
    }

    /// Make a QUIESCED queue pair live again, whose peers have all seen the loss and use no old
    /// entry; `losses` are [`QueuePairInfo::losses`] when the caller began to deal with it.
    /// A completion ring in a buffer has to be zero.  Returns the new generation.
    ///
    /// # Errors
    ///
    /// `EAGAIN`: the controller is not ready, see [`EventType::Ready`].  `EALREADY`: it is
    /// live.  `ESTALE`: it was lost again.  `ESHUTDOWN`: it cannot come back.  `EIO`: the
    /// controller refused; it may be tried again.
    pub fn rearm(&self, losses: u32) -> Result<u32, Error> {
        let mut generation = 0;
        // SAFETY: the number is ours.
        done(unsafe { sys::nvmepeer_qp_rearm(self.handle.raw(), losses, &mut generation) })?;
        Ok(generation)
    }

    /// The records that wait, oldest first; none: the queue pair is gone.  Waits for one,
    /// unless the file is non-blocking.
    ///
    /// # Errors
    ///
    /// `EAGAIN`: the file is non-blocking, and none waits.
    pub fn read_events(&self) -> Result<Vec<Event>, Error> {
        const ROOM: usize = 32;
        // SAFETY: numbers only.
        let mut records: [sys::nvme_peer_event; ROOM] = unsafe { core::mem::zeroed() };
        // SAFETY: there is room for so many of this size.
        let filled = counted(unsafe {
            sys::nvmepeer_qp_events(
                self.handle.raw(),
                records.as_mut_ptr(),
                size_of::<sys::nvme_peer_event>(),
                ROOM as u32,
            )
        })?;
        Ok(records[..filled].iter().copied().map(FromC::from_c).collect())
    }

    /// Wait until a record can be read, or the queue pair is gone; whether it is so within
    /// `timeout`.  For whoever has no event loop.
    ///
    /// # Errors
    ///
    /// What `poll(2)` says; a signal is none, and ends the wait early.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        wait_for(self.as_raw_fd(), milliseconds(timeout))
    }
}

impl QueuePair<'static> {
    /// Take over a queue pair file that came from elsewhere, for example over a socket.
    ///
    /// # Errors
    ///
    /// What it is, if it is no queue pair file; then it is closed.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, Error> {
        // SAFETY: the descriptor is open; the two functions belong together.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_qp_destroy, |receives| {
                sys::nvmepeer_qp_from_fd(fd.as_raw_fd(), receives)
            })
        }?;
        // It is the library's now.
        let _ = fd.into_raw_fd();
        Ok(Self { handle })
    }
}

impl AsRawFd for QueuePair<'_> {
    /// The queue pair file; it stays the library's.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: it is open.
        unsafe { sys::nvmepeer_qp_fd(self.handle.raw()) }
    }
}

impl AsFd for QueuePair<'_> {
    /// The queue pair file; it stays the library's.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.descriptor(self.as_raw_fd())
    }
}

/// As C counts time to wait.
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
    // SAFETY: it is one, and ours.
    match unsafe { poll(&mut waits, 1, timeout) } {
        0 => Ok(false),
        ready if ready > 0 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
    }
}
