// SPDX-License-Identifier: MIT OR GPL-2.0
//! Routes of peer-to-peer requests between devices.
use core::ffi::{c_char, c_int};
use core::fmt;
use core::str::FromStr;
use std::ffi::CString;

use crate::error::Error;
use crate::sys;
use crate::value::{numbers, text_in, FromC};

numbers! {
    /// The path of requests between two devices.
    Verdict named by nvmepeer_verdict_name {
        /// Requests do not arrive, or are not known to arrive.
        None = NVME_PEER_ROUTE_NONE,
        /// Inside a PCIe switch, by PCI bus address.
        BusAddr = NVME_PEER_ROUTE_BUS_ADDR,
        /// Through the root complex, by DMA address.
        HostBridge = NVME_PEER_ROUTE_HOST_BRIDGE,
        /// The memory is host RAM, which every device can access.
        System = NVME_PEER_ROUTE_SYSTEM,
        /// As [`Verdict::HostBridge`], but only writes arrive.
        HostBridgeWrites = NVME_PEER_ROUTE_HOST_BRIDGE_WRITES,
    }
}

numbers! {
    /// The reason for a verdict.
    Reason named by nvmepeer_reason_name {
        /// No reason: the peer device is not known.
        None = NVME_PEER_REASON_NONE,
        /// Both functions are below one switch, and no ACS bit redirects requests upstream.
        CommonSwitch = NVME_PEER_REASON_COMMON_SWITCH,
        /// Through a host bridge that is known to forward between its root ports.
        HostBridgeKnown = NVME_PEER_REASON_HOST_BRIDGE_KNOWN,
        /// Through a host bridge that the administrator has allowed.
        HostBridgeAllowed = NVME_PEER_REASON_HOST_BRIDGE_ALLOWED,
        /// Through a host bridge that is not known to forward requests.
        HostBridgeUnknown = NVME_PEER_REASON_HOST_BRIDGE_UNKNOWN,
        /// As [`Reason::HostBridgeUnknown`], and the functions are in different PCI domains.
        DifferentDomains = NVME_PEER_REASON_DIFFERENT_DOMAINS,
        /// Both ends are one PCI function.
        SameFunction = NVME_PEER_REASON_SAME_FUNCTION,
        /// The memory is host RAM.
        HostMemory = NVME_PEER_REASON_HOST_MEMORY,
        /// The memory is neither in a BAR nor host RAM.
        UnknownMemory = NVME_PEER_REASON_UNKNOWN_MEMORY,
        /// The exporter does not map the memory for the controller and reports no reason.
        ExporterRefused = NVME_PEER_REASON_EXPORTER_REFUSED,
        /// A port discards the requests, by its ACS control bits.
        AcsBlocked = NVME_PEER_REASON_ACS_BLOCKED,
    }
}

/// Address of a PCI function.  Parsed from and printed as `0000:01:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// Bus << 8 | device << 3 | function.
    pub function: u16,
}

impl PciAddress {
    pub(crate) fn to_c(self) -> sys::nvme_peer_pci_address {
        sys::nvme_peer_pci_address { domain: self.domain, function: self.function, valid: 1 }
    }
}

impl FromC<sys::nvme_peer_pci_address> for Option<PciAddress> {
    fn from_c(address: sys::nvme_peer_pci_address) -> Self {
        let sys::nvme_peer_pci_address { domain, function, valid } = address;
        (valid != 0).then_some(PciAddress { domain, function })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text: [c_char; sys::NVMEPEER_PCI_TEXT as usize] = [0; 24];
        // SAFETY: the buffer has the size that the function requires, NVMEPEER_PCI_TEXT.
        unsafe { sys::nvmepeer_pci_format(self.to_c(), text.as_mut_ptr()) };
        f.pad(&text_in(&text))
    }
}

impl FromStr for PciAddress {
    type Err = Error;

    /// Parse `"0000:01:00.0"` or `"01:00.0"`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let none = || Error::Argument(format!("{text} is no PCI address such as 0000:01:00.0"));
        let name = CString::new(text).map_err(|_| none())?;
        let mut address = sys::nvme_peer_pci_address { domain: 0, function: 0, valid: 0 };
        // SAFETY: the text ends with NUL.
        if unsafe { sys::nvmepeer_pci_parse(name.as_ptr(), &mut address) } != 0 {
            return Err(none());
        }
        Option::from_c(address).ok_or_else(none)
    }
}

/// A port that blocks peer-to-peer requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocker {
    /// The port's address, or that of an endpoint that redirects requests itself.
    pub address: Option<PciAddress>,
    /// Its ACS control bits that redirect requests to the root complex.  0 for a root port
    /// whose host bridge is not known to forward requests.
    pub acs: u32,
}

/// One direction of a route.  `Display` prints a sentence that describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path {
    /// Whether requests arrive, and by which path.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub reason: Reason,
    /// Number of blocking ports.  [`Path::blockers`] holds at most 6 of them.
    pub blocker_count: u32,
    /// The blocking ports, those with ACS bits first.
    pub blockers: Vec<Blocker>,
    sentence: String,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.sentence)
    }
}

/// The route between a controller and a peer or memory, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The peer's PCI function, or the function that owns the memory, if any.
    pub peer: Option<PciAddress>,
    /// From the controller to the memory.
    pub data: Path,
    /// From the peer to the controller.
    pub doorbell: Path,
}

/// The library's description of `path`, which is one of the two paths of `route`.
fn sentence(route: &sys::nvme_peer_route, path: &sys::nvme_peer_path) -> String {
    let mut text: Vec<c_char> = vec![0; 512];
    loop {
        // SAFETY: both references are valid, and the buffer has the given length.
        let needed =
            unsafe { sys::nvmepeer_route_describe(route, path, text.as_mut_ptr(), text.len()) };
        match usize::try_from(needed) {
            Ok(needed) if needed >= text.len() => text.resize(needed + 1, 0),
            _ => return text_in(&text),
        }
    }
}

fn path(route: &sys::nvme_peer_route, path: &sys::nvme_peer_path) -> Path {
    let filled = path.blockers.len().min(path.blocker_count as usize);
    let blocker = |blocker: &sys::nvme_peer_route_blocker| Blocker {
        address: FromC::from_c(blocker.address),
        acs: blocker.acs,
    };
    Path {
        verdict: FromC::from_c(path.verdict),
        reason: FromC::from_c(path.reason),
        blocker_count: path.blocker_count,
        blockers: path.blockers[..filled].iter().map(blocker).collect(),
        sentence: sentence(route, path),
    }
}

impl Route {
    /// The route that `ask`, a call of the library, fills in.
    pub(crate) fn ask(
        ask: impl FnOnce(*mut sys::nvme_peer_route, usize) -> c_int,
    ) -> Result<Self, Error> {
        // SAFETY: the structure holds only integers, for which zero is valid.
        let mut route: sys::nvme_peer_route = unsafe { core::mem::zeroed() };
        crate::error::done(ask(&mut route, size_of::<sys::nvme_peer_route>()))?;
        Ok(Self {
            peer: FromC::from_c(route.pci_address),
            data: path(&route, &route.data),
            doorbell: path(&route, &route.doorbell),
        })
    }
}
