// SPDX-License-Identifier: MIT OR GPL-2.0
//! Unit tests of the crate with a fake kernel (lib/tests/fake.c).  They also compare its
//! structures and numbers with the pinned C ABI: the environment variable ABI has the names of
//! files that selftests/abi/dump wrote.
//!
//! All tests share the fake kernel, so a mutex serializes them.
use core::ffi::{c_int, c_uchar, c_uint, c_ulong};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nvmepeer::{
    sys, Access, Controller, ControllerState, CpuPeer, DeviceError, Error, Export, HostMemory,
    Import, Mode, Namespace, PciAddress, QueuePair, QueuePairState, Reason, Rings, Share, Verdict,
};

/// The beginning of `struct fake` of lib/tests/fake.h.
#[repr(C)]
struct Fake {
    open_error: c_int,
    fail_command: c_ulong,
    fail_error: c_int,
    fail_status: c_int,
    info: sys::nvme_peer_info,
    route: sys::nvme_peer_route,
    identify: [c_uchar; 4096],
    table_break: c_uint,
    qp_info: sys::nvme_peer_qp_info,
    losses: c_uint,
    calls: c_uint,
    open_files: c_int,
    buffers: c_int,
    path: [c_uchar; 128],
    request: [u64; 32],
}

extern "C" {
    static mut fake: Fake;
    fn fake_reset();
}

const IO_CMD: c_ulong = 0xc048_4e43;
const EBUSY: i32 = 16;
const ENXIO: i32 = 6;
const ENOENT: i32 = 2;
const EAGAIN: i32 = 11;
const EBADF: i32 = 9;

/// Exclusive access to the fake kernel.
struct Kernel(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Kernel {
    /// With a namespace of 0x1000 blocks of 512 bytes.
    fn new() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let kernel = Self(ONE.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: the mutex is held.
        unsafe { fake_reset() };
        kernel.change(|it| (it.identify[1], it.identify[130]) = (0x10, 9));
        kernel
    }

    fn change<T>(&self, change: impl FnOnce(&mut Fake) -> T) -> T {
        // SAFETY: the mutex is held, and the library is not called meanwhile.
        change(unsafe { &mut *core::ptr::addr_of_mut!(fake) })
    }

    fn refuse(&self, command: c_ulong, error: c_int, status: c_int) {
        self.change(|it| {
            (it.fail_command, it.fail_error, it.fail_status) = (command, error, status);
        });
    }

    /// The structure that the last call passed to the kernel.
    fn last_request<T: Copy>(&self) -> T {
        assert!(size_of::<T>() <= 256);
        // SAFETY: the array has at least as many bytes, and any bytes are a valid `T`.
        self.change(|it| unsafe { *it.request.as_ptr().cast::<T>() })
    }

    fn files(&self) -> c_int {
        self.change(|it| it.open_files)
    }

    fn buffers(&self) -> c_int {
        self.change(|it| it.buffers)
    }
}

/// A descriptor number; the fake kernel accepts any.
fn dmabuf() -> BorrowedFd<'static> {
    // SAFETY: no system call uses it.
    unsafe { BorrowedFd::borrow_raw(42) }
}

/// The lines below each headline of the pinned files.
fn pinned() -> HashMap<String, Vec<String>> {
    let mut sections = HashMap::<String, Vec<String>>::new();
    let mut headline = String::new();
    for path in std::env::var("ABI").expect("ABI names the files").split_whitespace() {
        for line in std::fs::read_to_string(path).expect(path).lines() {
            match line.strip_prefix('\t') {
                Some(entry) => sections.entry(headline.clone()).or_default().push(entry.to_owned()),
                None => headline = line.to_owned(),
            }
        }
    }
    sections
}

/// The number of a pinned name.
fn pinned_number(name: &str) -> u64 {
    let sections = pinned();
    let mut entries = sections.values().flatten().filter_map(|entry| entry.split_once(' '));
    let (number, _) = entries.find(|entry| entry.1 == name).expect(name);
    u64::from_str_radix(number.trim_start_matches("0x"), 16).expect(number)
}

/// The layout that sys.rs asserts: "STRUCTURE FIELD" to its offset, "STRUCTURE" to its size.
fn asserted() -> HashMap<String, String> {
    let text = include_str!("../src/sys.rs").split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut asserted, mut name) = (HashMap::new(), String::new());
    for part in text.split('"') {
        // The message has the name; the expression after its closing quote has the number.
        match part.split_once(" - ") {
            Some((_, rest)) => {
                let bytes = rest.split("usize").next().unwrap_or_default();
                asserted.insert(std::mem::take(&mut name), bytes.to_owned());
            }
            None => {
                name =
                    part.replace("Size of ", "").replace("Offset of field: ", "").replace("::", " ")
            }
        }
    }
    asserted
}

/// The Rust name of a C field, `const char * call` or `__u32 reserved[2]`.
fn field_name(declaration: &str) -> String {
    let name = declaration.rsplit(' ').next().unwrap_or_default();
    match name.split('[').next() {
        Some("type") => "type_".to_owned(),
        name => name.unwrap_or_default().to_owned(),
    }
}

#[test]
fn structures_match_c() {
    let asserted = asserted();
    let mut compared = 0;
    for (headline, entries) in pinned() {
        let Some(name) = headline.strip_prefix("struct ") else { continue };
        // Those of the device library, of CUDA programs, of the store and of served queue pairs
        // have no bindings.
        let Some(bytes) = asserted.get(name) else {
            let unbound = [
                "nvmepeer_set",
                "nvmepeer_list_",
                "nvmepeer_cuda_",
                "nvmepeer_store",
                "nvmepeer_serve",
                "nvmepeer_index",
            ];
            assert!(unbound.iter().any(|prefix| name.starts_with(prefix)), "{name}");
            continue;
        };
        let (size, fields) = entries.split_last().expect(name);
        assert_eq!(size, &format!("{bytes} bytes"), "{name}");
        for field in fields {
            let (offset, declaration) = field.split_once(' ').expect(field);
            let field = format!("{name} {}", field_name(declaration));
            assert_eq!(asserted.get(&field).map(String::as_str), Some(offset), "{field}");
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared} fields");
}

/// The Rust enum has exactly the numbers of the C enum.
fn assert_enum<T: Copy + std::fmt::Debug + Into<u32>>(name: &str, ours: &[T]) {
    let entries = &pinned()[&format!("enum {name}")];
    assert_eq!(entries.len(), ours.len(), "{name}");
    for (entry, one) in entries.iter().zip(ours) {
        let (number, constant) = entry.split_once(' ').expect(entry);
        let number = u32::from_str_radix(number.trim_start_matches("0x"), 16).expect(entry);
        assert_eq!(number, (*one).into(), "{constant}");
        let name = format!("{one:?}").to_uppercase();
        assert!(constant.replace('_', "").ends_with(&name), "{constant} is not {one:?}");
    }
}

#[test]
fn enums_match_c() {
    use nvmepeer::{Domain, EventType};
    type State = ControllerState;
    let states = [State::New, State::Live, State::Resetting, State::Deleting, State::Dead];
    assert_enum("nvme_peer_ctrl_state", &states);
    assert_enum("nvme_peer_domain", &[Domain::Physical, Domain::Strict, Domain::Lazy]);
    assert_enum("nvme_peer_access", &[Access::Both, Access::Read, Access::Write]);
    assert_enum(
        "nvme_peer_event_type",
        &[EventType::State, EventType::Ready, EventType::BufferEnded],
    );
    assert_enum(
        "nvme_peer_route_verdict",
        &[
            Verdict::None,
            Verdict::BusAddr,
            Verdict::HostBridge,
            Verdict::System,
            Verdict::HostBridgeWrites,
        ],
    );
    assert_enum(
        "nvme_peer_route_reason",
        &[
            Reason::None,
            Reason::CommonSwitch,
            Reason::HostBridgeKnown,
            Reason::HostBridgeAllowed,
            Reason::HostBridgeUnknown,
            Reason::DifferentDomains,
            Reason::SameFunction,
            Reason::HostMemory,
            Reason::UnknownMemory,
            Reason::ExporterRefused,
            Reason::AcsBlocked,
        ],
    );
    assert_enum(
        "nvme_peer_export",
        &[Export::Sq, Export::Cq, Export::Doorbell, Export::Status, Export::Control],
    );
    assert_enum(
        "nvme_peer_qp_state",
        &[
            QueuePairState::Live,
            QueuePairState::Quiesced,
            QueuePairState::Failed,
            QueuePairState::Gone,
        ],
    );
}

#[test]
fn version_matches_library() {
    let version = format!("\nversion = \"{}\"\n", nvmepeer::version());
    assert!(include_str!("../Cargo.toml").contains(&version), "{version}");
    assert_eq!(nvmepeer::version_number(), sys::NVMEPEER_VERSION_NUMBER);
}

#[test]
fn objects_are_send_and_sync() {
    fn any<T: Send + Sync>() {}
    any::<Controller>();
    any::<nvmepeer::Buffer<'_>>();
    any::<QueuePair<'_>>();
    any::<Namespace>();
    any::<HostMemory>();
    any::<CpuPeer<'_>>();
    any::<nvmepeer::Memory<'_>>();
    any::<Error>();
}

#[test]
fn controller_info() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    kernel.change(|it| {
        it.info.pci_address =
            sys::nvme_peer_pci_address { domain: 0x10000, function: 0xe111, valid: 1 }
    });
    let info = controller.info()?;
    assert_eq!(
        (info.state, info.max_entries, info.qids_peer_max),
        (ControllerState::Live, 1024, 4)
    );
    assert_eq!(
        info.pci_address.map(|address| address.to_string()).as_deref(),
        Some("10000:e1:02.1")
    );
    assert_eq!((controller.node(), info.state.to_string().as_str()), ("/dev/nvmep0", "live"));
    assert!(controller.as_fd().as_raw_fd() >= 1000 && !info.features.direct());
    Ok(())
}

#[test]
fn error_has_explanation() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    kernel.refuse(pinned_number("NVME_PEER_BUF_IMPORT"), ENXIO, 0);
    let part = Import { require_device: true, ..Import::default() };
    let error = controller.import(dmabuf(), part).map(|_| ()).unwrap_err();
    let why = error.explanation().expect("the library refused");
    assert_eq!((error.errno(), why.call.as_str()), (Some(ENXIO), "nvmepeer_buf_import"));
    assert!(why.limit.contains("host RAM"), "{why:?}");
    assert!(why.what.contains("/dev/nvmep0"), "{why:?}");
    assert!(!why.help.is_empty() && error.to_string().ends_with(&why.help), "{error}");
    Ok(())
}

#[test]
fn open_missing_node() {
    let kernel = Kernel::new();
    kernel.change(|it| it.open_error = ENOENT);
    let error = Controller::open("nvmep9").map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("nvme-peer bind"), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::NotFound);
    let error = Controller::open("nvmep\0").map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn error_has_nvme_status() -> Result<(), Error> {
    let kernel = Kernel::new();
    let namespace = Namespace::open("ngp0n1")?;
    kernel.refuse(IO_CMD, 0, 0x4080);
    match namespace.read(0, 1).unwrap_err() {
        Error::Status { status: 0x4080, why } => {
            assert!(why.limit.contains("LBA out of range"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert!(nvmepeer::status_text(0x4080).contains("LBA out of range"));
    Ok(())
}

#[test]
fn namespace_io_needs_whole_blocks() -> Result<(), Error> {
    let _kernel = Kernel::new();
    let namespace = Namespace::open("ngp0n1")?;
    let info = namespace.info();
    assert_eq!((info.nsid, info.block_size, info.blocks), (3, 512, 0x1000));
    assert_eq!(namespace.read(7, 8)?.len(), 4096);
    namespace.write(0, &[0; 1024])?;
    namespace.flush()?;
    let error = namespace.write(0, &[0; 100]).unwrap_err();
    assert_eq!(error.to_string(), "100 bytes are no whole blocks of 512");
    for blocks in [0, 0x10001, u32::MAX] {
        assert_eq!(namespace.read(0, blocks).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    Ok(())
}

#[test]
fn drop_closes_objects() -> Result<(), Error> {
    let kernel = Kernel::new();
    let memory = HostMemory::new(5000)?;
    assert_eq!((memory.memory().len(), memory.memory().to_vec()), (8192, vec![0; 8192]));
    memory.memory().part(4096, 3).copy_from(b"abc");
    assert_eq!(memory.memory().part(4095, 5).to_vec(), b"\0abc\0");
    let before = kernel.files();
    drop(memory);
    assert_eq!(kernel.files(), before - 1);
    {
        let controller = Controller::open("nvmep1")?;
        let namespace = Namespace::open("ngp0n1")?;
        let _queue_pair = controller.create_queue_pair(&Rings::new(64))?;
        let _peer = CpuPeer::new(&controller, &namespace, 64, 65536)?;
        let _buffer = controller.import(dmabuf(), Import::default())?;
        // The CPU peer has a queue pair, memory and a buffer.
        assert_eq!((kernel.files(), kernel.buffers()), (before - 1 + 5, 2));
    }
    assert_eq!((kernel.files(), kernel.buffers()), (before - 1, 0));
    Ok(())
}

#[test]
#[should_panic(expected = "range end index")]
fn memory_range_is_checked() {
    let _kernel = Kernel::new();
    let memory = HostMemory::new(4096).expect("memory");
    memory.memory().part(4000, 97);
}

#[test]
fn routes() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    kernel.change(|it| {
        it.route.data.verdict = Verdict::HostBridge.into();
        it.route.data.blocker_count = 1;
        it.route.data.blockers[0].acs = 0x1c;
        it.route.doorbell.verdict = 77;
    });
    let route = controller.route_to("0000:41:00.0".parse()?)?;
    assert_eq!(
        (route.data.verdict, route.doorbell.verdict),
        (Verdict::HostBridge, Verdict::Other(77))
    );
    assert_eq!((route.data.blockers.len(), route.data.blockers[0].acs), (1, 0x1c));
    assert!(route.data.to_string().len() > 20, "{}", route.data);
    assert_eq!(controller.route_to_dmabuf(dmabuf())?, route);
    assert_eq!("somewhere".parse::<PciAddress>().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(PciAddress { domain: 0, function: 0x4100 }.to_string(), "0000:41:00.0");
    Ok(())
}

#[test]
fn buffers_and_queue_pairs() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    let buffer = controller.import(dmabuf(), Import::default())?;
    assert_eq!((buffer.info().handle, buffer.info().length), (7, 65536));
    assert_eq!(buffer.addresses(0, 2)?, [0x1000_0000, 0x1000_1000]);
    assert_eq!(buffer.addresses(0, u32::MAX)?.len(), 16);
    assert_eq!(buffer.contiguous(8192, 4096)?, 0x1000_2000);
    let rings = Rings::new(64).cq_entries(128).sq_in(&buffer, 8192).cq_in(&buffer, 4096);
    let queue_pair = controller.create_queue_pair(&rings.allow_sleep())?;
    let request: sys::nvme_peer_qp_create = kernel.last_request();
    assert_eq!((request.sq_entries, request.sq_handle, request.sq_offset), (64, 7, 8192));
    assert_eq!((request.cq_entries, request.cq_handle, request.cq_offset), (128, 7, 4096));
    assert_eq!(request.flags, sys::NVME_PEER_QP_ALLOW_SLEEP);
    let info = queue_pair.info()?;
    assert_eq!((info.qid, info.generation, info.cq_entries), (5, 9, 128));
    assert_eq!(queue_pair.rearm(3)?, 10);
    assert_eq!(kernel.change(|it| it.losses), 3);
    let exported = queue_pair.export(Export::Doorbell, false)?;
    assert_eq!((exported.offset, exported.length), (0x28, 8));
    // This process does not have these descriptors: do not close them.
    std::mem::forget(exported);
    std::mem::forget(queue_pair.export(Export::Doorbell, true)?);
    let request: sys::nvme_peer_qp_export = kernel.last_request();
    assert_eq!((request.what, request.flags), (sys::NVME_PEER_EXPORT_DOORBELL, 1));
    let other = Controller::open("nvmep1")?;
    let error = other.create_queue_pair(&rings).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("/dev/nvmep1"), "{error}");
    assert!(queue_pair.kick().unwrap_err().to_string().contains("NVME_PEER_MODE_RELAY"));
    controller.create_queue_pair(&Rings::new(64).relay())?.kick()?;
    kernel.refuse(pinned_number("NVME_PEER_QP_REARM"), EAGAIN, 0);
    assert_eq!(queue_pair.rearm(3).unwrap_err().kind(), ErrorKind::WouldBlock);
    Ok(())
}

#[test]
fn mediated_queue_pairs() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    let share = Share { depth: 4, weight: 2, timeout_ms: 9000, max_windows: 3, max_buffers: 5 };
    let queue_pair = controller.create_queue_pair(&Rings::new(64).mediated(share))?;
    let request: sys::nvme_peer_qp_create = kernel.last_request();
    assert_eq!((request.mode, request.depth, request.weight), (2, 4, 2));
    assert_eq!((request.timeout_ms, request.max_windows, request.max_buffers), (9000, 3, 5));
    assert_eq!(queue_pair.info()?.mode, Mode::Mediated);
    let window = queue_pair.add_window(dmabuf(), 8, 16)?;
    let request: sys::nvme_peer_window_add = kernel.last_request();
    assert_eq!((request.fd, request.first, request.blocks), (42, 8, 16));
    assert_eq!((window.first, window.blocks, window.rights.read()), (8, 16, false));
    queue_pair.window(0x10002)?;
    assert_eq!(kernel.last_request::<sys::nvme_peer_window_info>().id, 0x10002);
    queue_pair.remove_window(7)?;
    assert_eq!(kernel.last_request::<sys::nvme_peer_window_remove>().id, 7);
    let mut slot = queue_pair.add_memory(dmabuf(), Access::Write, 4096, 8192)?;
    let request: sys::nvme_peer_buf_add = kernel.last_request();
    assert_eq!((request.dmabuf_fd, request.access), (42, sys::NVME_PEER_ACCESS_WRITE));
    assert_eq!((request.offset, request.length), (4096, 8192));
    slot.slot = 3;
    assert_eq!(slot.address(0x1000), 0x0003_0000_0000_1000);
    queue_pair.remove_memory(6)?;
    assert_eq!(kernel.last_request::<sys::nvme_peer_buf_remove>().slot, 6);
    assert!(!queue_pair.limits()?.sealed);
    assert_eq!(queue_pair.stats()?.refused, 0);
    let before = kernel.change(|it| it.calls);
    queue_pair.seal()?;
    assert_eq!(kernel.change(|it| it.calls), before + 1);
    let error = queue_pair.open_file("/nowhere").unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
    assert_eq!(queue_pair.open_file("a\0b").unwrap_err().kind(), ErrorKind::InvalidInput);
    let direct = controller.create_queue_pair(&Rings::new(64))?;
    assert!(direct.seal().unwrap_err().to_string().contains("NVME_PEER_MODE_MEDIATED"));
    Ok(())
}

#[test]
fn queue_pair_from_fd() -> Result<(), Error> {
    let kernel = Kernel::new();
    // SAFETY: no file of this process has this number; the fake kernel closes it.
    let file = unsafe { OwnedFd::from_raw_fd(2000) };
    let before = kernel.files();
    let queue_pair = QueuePair::from_fd(file)?;
    assert_eq!((queue_pair.as_raw_fd(), queue_pair.info()?.qid), (2000, 5));
    assert_eq!(kernel.files(), before);
    drop(queue_pair);
    assert_eq!(kernel.files(), before - 1);
    // The library does not own a refused descriptor: the caller closes it.
    let other = OwnedFd::from(std::fs::File::open("/dev/null").expect("/dev/null"));
    assert_eq!(QueuePair::from_fd(other).map(|_| ()).unwrap_err().errno(), Some(EBADF));
    assert_eq!(kernel.files(), before - 1);
    Ok(())
}

#[test]
fn import_passes_range_and_access() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    let part = Import { require_device: true, access: Access::Write, offset: 4096, length: 8192 };
    controller.import(dmabuf(), part).map(std::mem::forget)?;
    let request: sys::nvme_peer_buf_import = kernel.last_request();
    assert_eq!((request.dmabuf_fd, request.flags), (42, sys::NVME_PEER_BUF_REQUIRE_DEVICE));
    assert_eq!((request.access, request.offset), (sys::NVME_PEER_ACCESS_WRITE, 4096));
    Ok(())
}

#[test]
fn buffer_is_released_once() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    let buffer = controller.import(dmabuf(), Import::default())?;
    kernel.refuse(pinned_number("NVME_PEER_BUF_RELEASE"), EBUSY, 0);
    let (buffer, error) = buffer.release().unwrap_err();
    assert_eq!((error.errno(), kernel.buffers()), (Some(EBUSY), 1));
    kernel.refuse(0, 0, 0);
    buffer.release().map_err(|(_, error)| error)?;
    assert_eq!(kernel.buffers(), 0);
    Ok(())
}

#[test]
fn cpu_peer() -> Result<(), Error> {
    let _kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    let namespace = Namespace::open("ngp0n1")?;
    let peer = CpuPeer::new(&controller, &namespace, 64, 65536)?;
    assert_eq!(peer.memory().len(), 65536);
    match peer.read(65536, 0, 1, CpuPeer::RECOVERY).unwrap_err() {
        Error::Transfer { error, why } => {
            assert_eq!((error, why.call.as_str()), (DeviceError::Range, "nvmepeer_cpu_peer_read"));
            assert!(why.to_string().contains("outside the buffer"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}
