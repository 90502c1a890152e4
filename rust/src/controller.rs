// SPDX-License-Identifier: MIT OR GPL-2.0
//! Controllers.
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::buffer::{Buffer, Import};
use crate::error::{done, Error};
use crate::handle::{node_name, Handle};
use crate::queue_pair::{QueuePair, Rings};
use crate::route::{PciAddress, Route};
use crate::sys;
use crate::value::{facts, numbers, FromC};

numbers! {
    /// State of a controller.
    ControllerState named by nvmepeer_state_name {
        /// Not enabled yet.
        New = NVME_PEER_CTRL_NEW,
        /// In operation.
        Live = NVME_PEER_CTRL_LIVE,
        /// It is being reset.
        Resetting = NVME_PEER_CTRL_RESETTING,
        /// The driver is being unbound.
        Deleting = NVME_PEER_CTRL_DELETING,
        /// The driver failed the controller.
        Dead = NVME_PEER_CTRL_DEAD,
    }
}

numbers! {
    /// The address space of the controller's DMA addresses.
    Domain named by nvmepeer_domain_name {
        /// Physical addresses.
        Physical = NVME_PEER_DOMAIN_PHYSICAL,
        /// Addresses that an IOMMU translates; they fault as soon as memory is unmapped.
        Strict = NVME_PEER_DOMAIN_STRICT,
        /// The same, but an address may work for some time after its memory was unmapped.
        Lazy = NVME_PEER_DOMAIN_LAZY,
    }
}

/// What the kernel module can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    fn has(self, bit: u32) -> bool {
        self.0 & u64::from(bit) != 0
    }

    /// Queue pairs whose peers write doorbells themselves.
    pub fn direct(self) -> bool {
        self.has(sys::NVME_PEER_FEATURE_DIRECT)
    }

    /// Rings in imported buffers.
    pub fn buffer_rings(self) -> bool {
        self.has(sys::NVME_PEER_FEATURE_BUF_RINGS)
    }

    /// I/O of the CPU with imported buffers.
    pub fn buffer_io(self) -> bool {
        self.has(sys::NVME_PEER_FEATURE_BUF_IO)
    }

    /// The same by lists of ranges.
    pub fn buffer_io_vec(self) -> bool {
        self.has(sys::NVME_PEER_FEATURE_BUF_IO_VEC)
    }

    /// [`Rings::relay`](crate::Rings::relay).
    pub fn relay(self) -> bool {
        self.has(sys::NVME_PEER_FEATURE_RELAY)
    }

    /// [`Rings::mediated`](crate::Rings::mediated).
    pub fn mediated(self) -> bool {
        self.has(sys::NVME_PEER_FEATURE_MEDIATED)
    }

    /// [`HostMemory::near`](crate::HostMemory::near).
    pub fn buffer_alloc(self) -> bool {
        self.has(sys::NVME_PEER_FEATURE_BUF_ALLOC)
    }
}

impl FromC<u64> for Features {
    fn from_c(value: u64) -> Self {
        Self(value)
    }
}

facts! {
    /// Limits, facts and state of a controller.
    Info of nvme_peer_info {
        /// What the kernel module can do.
        features: Features,
        /// The controller's CAP register.
        cap: u64,
        /// Its VS register.
        version: u32,
        /// Its state.
        state: ControllerState,
        /// Resets so far.
        generation: u32,
        /// What its DMA addresses are.
        domain: Domain,
        /// Most entries of a ring.
        max_entries: u32,
        /// Bytes from one doorbell register to the next.
        doorbell_stride: u32,
        /// Bytes of a controller page.
        page_size: u32,
        /// Most bytes of one command's data.
        max_transfer: u32,
        /// Identify Controller SGLS; 0 means lists of pages only.
        sgls: u32,
        /// Namespaces that have nodes now.
        namespaces: u32,
        /// I/O queue pairs that the controller granted.
        qids_total: u32,
        /// Those that the CPU's own queues use.
        qids_cpu: u32,
        /// Most that peers may have at once.
        qids_peer_max: u32,
        /// Those of them that the caller could get now.
        qids_peer_free: u32,
        /// The controller's function.
        pci_address: Option<PciAddress>,
        /// Whether a ring must be one contiguous range of DMA addresses.
        contiguous_rings: bool,
        /// Identifiers of queue pairs that have ended and whose doorbells a process may
        /// still store.
        qids_quarantined: u32,
        /// Bytes of controller memory buffer, 0 for none.
        cmb_size: u64,
    }
}

/// An open controller node.  Any number of threads may use it at once.
pub struct Controller {
    handle: Handle<'static, sys::nvmepeer>,
}

impl Controller {
    /// Open `"/dev/nvmep0"`, or `"nvmep0"` for short.
    ///
    /// # Errors
    ///
    /// `ENOTTY`: not a node of nvme-peer.  Otherwise the error of `open(2)`.
    pub fn open(node: &str) -> Result<Self, Error> {
        let node = node_name(node)?;
        // SAFETY: the name ends with NUL, and `nvmepeer_close` closes it.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_close, |receives| sys::nvmepeer_open(node.as_ptr(), receives))
        }?;
        Ok(Self { handle })
    }

    pub(crate) fn raw(&self) -> *mut sys::nvmepeer {
        self.handle.raw()
    }

    /// The path of the node.
    pub fn node(&self) -> &str {
        // SAFETY: the text lives as long as the controller.
        unsafe { crate::value::text(sys::nvmepeer_node(self.raw())) }
    }

    /// Current limits, properties and state.
    ///
    /// # Errors
    ///
    /// `ENODEV`: the controller is gone.
    pub fn info(&self) -> Result<Info, Error> {
        // SAFETY: numbers only.
        let mut info: sys::nvme_peer_info = unsafe { core::mem::zeroed() };
        // SAFETY: the pointer is to a structure of this size.
        done(unsafe { sys::nvmepeer_info(self.raw(), &mut info, size_of_val(&info)) })?;
        Ok(FromC::from_c(info))
    }

    /// Check whether the controller can reach the memory of a dma-buf.  If not, the verdict is
    /// [`Verdict::None`](crate::Verdict), which is not an error.  Nothing is imported.
    ///
    /// # Errors
    ///
    /// `EBADF`, `EINVAL`: no dma-buf.  `EOPNOTSUPP`: the controller would see a copy of it.
    pub fn route_to_dmabuf(&self, dmabuf: impl AsFd) -> Result<Route, Error> {
        let fd = dmabuf.as_fd().as_raw_fd();
        // SAFETY: Route::ask() gives a structure and its size.
        Route::ask(|route, size| unsafe { sys::nvmepeer_route_dmabuf(self.raw(), fd, route, size) })
    }

    /// Check whether the controller and a PCI function can reach each other.
    ///
    /// # Errors
    ///
    /// `ENODEV`: no such function.
    pub fn route_to(&self, peer: PciAddress) -> Result<Route, Error> {
        // SAFETY: as above.
        Route::ask(|route, size| unsafe {
            sys::nvmepeer_route_pci(self.raw(), peer.to_c(), route, size)
        })
    }

    /// Import a dma-buf or a range of it for rings and data.  The descriptor may be closed
    /// afterwards.
    ///
    /// # Errors
    ///
    /// `EXDEV`: the controller cannot reach it.  `ENXIO`: host RAM, but the caller requires
    /// device memory.  `EINVAL`: not a dma-buf, or alignment.  `ERANGE`: the range exceeds the
    /// dma-buf.  `EACCES`: the dma-buf is read-only.
    pub fn import(&self, dmabuf: impl AsFd, part: Import) -> Result<Buffer<'_>, Error> {
        Buffer::import(self, dmabuf.as_fd(), part)
    }

    /// Create a queue pair, whose entries a peer writes and reads.  Needs `CAP_SYS_RAWIO`, except in
    /// mediated mode.
    ///
    /// # Errors
    ///
    /// `EPERM`: no permission.  `ENOSPC`: no identifier is free.  `EINVAL`, `ERANGE`, `EMSGSIZE`,
    /// `EEXIST`: of the rings.  [`Error::Argument`]: a buffer of another controller.
    /// `EAGAIN`: the controller is being reset.
    pub fn create_queue_pair<'c>(&'c self, rings: &Rings<'c>) -> Result<QueuePair<'c>, Error> {
        QueuePair::create(self, rings)
    }
}

impl AsRawFd for Controller {
    /// The descriptor of the node, which the library owns.
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: it is open.
        unsafe { sys::nvmepeer_fd(self.raw()) }
    }
}

impl AsFd for Controller {
    /// The descriptor of the node, which the library owns.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.descriptor(self.as_raw_fd())
    }
}
