// SPDX-License-Identifier: MIT OR GPL-2.0
//! Unit tests of the crate with a fake kernel (lib/tests/fake.c).  They also compare its
//! structures and numbers with the pinned C ABI: the environment variable ABI has the names of
//! files that selftests/abi/dump wrote.
//!
//! All tests share the fake kernel, so a mutex serializes them.
use core::ffi::{c_int, c_uchar, c_uint, c_ulong};
use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU8;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nvmepeer::{
    check_file, sys, Access, Controller, ControllerState, CpuPeer, DeviceError, Error, Export,
    FileObstacle, HostMemory, Import, Memory, Mode, Namespace, PciAddress, QueuePair,
    QueuePairState, Reason, Rings, ServeOptions, ServedQueuePair, Share, Verdict,
};

mod peer;
use peer::Peer;

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
const EINVAL: i32 = 22;
const ENODATA: i32 = 61;
const ENOTBLK: i32 = 15;
const EPROTO: i32 = 71;
const ESHUTDOWN: i32 = 108;
const EALREADY: i32 = 114;
const ECANCELED: i32 = 125;

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
        // Those of the device library, of CUDA programs and of the store have no bindings.
        let Some(bytes) = asserted.get(name) else {
            let unbound = [
                "nvmepeer_set",
                "nvmepeer_list_",
                "nvmepeer_cuda_",
                "nvmepeer_store",
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
    any::<Memory<'_>>();
    any::<ServedQueuePair<'_>>();
    any::<nvmepeer::PinnedFile>();
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
    let error = queue_pair.open_file("/nowhere", 1, 2).unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
    assert_eq!(queue_pair.open_file("a\0b", 0, 0).unwrap_err().kind(), ErrorKind::InvalidInput);
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

#[test]
fn obstacles_match_c() {
    type It = FileObstacle;
    let placed = [It::NotRegular, It::NoDisk, It::OtherDisk, It::FileSystem, It::ReadOnly];
    let flags = [It::NotOwner, It::Immutable, It::AppendOnly, It::Encrypted, It::Compressed];
    let kinds = [It::Verity, It::Dax, It::Journalled, It::Inline, It::Shared, It::Unplaced];
    let parts = [It::Empty, It::Holes, It::Unwritten];
    let all = placed.iter().chain(&flags).chain(&kinds).chain(&parts);
    for (bit, one) in all.enumerate() {
        assert_eq!(u32::from(*one), 1 << bit, "{one:?}");
        assert_eq!(one.to_string().replace('-', ""), format!("{one:?}").to_lowercase());
    }
    assert_eq!(It::Other(1 << 19).to_string(), "unknown");
}

/// A file in memory, on tmpfs.
fn file_in_memory(bytes: &[u8]) -> File {
    // Unlinked at once.
    let path =
        format!("/dev/shm/nvmepeer-unit-{}-{:?}", std::process::id(), std::thread::current().id());
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
    std::fs::remove_file(&path).expect(&path);
    let file = file.expect(&path);
    file.write_all_at(bytes, 0).expect("write");
    file
}

#[test]
fn obstacles_have_explanations() -> Result<(), Error> {
    let _kernel = Kernel::new();
    let found = check_file(file_in_memory(&[0; 8192]))?;
    assert_eq!((found.info.file_system.as_str(), found.info.bytes), ("tmpfs", 8192));
    assert!(found.info.disk.is_empty() && found.info.controller.is_empty());
    let obstacles: Vec<_> = found.obstacles.iter().map(|(obstacle, _)| *obstacle).collect();
    assert_eq!(obstacles, [FileObstacle::NoDisk, FileObstacle::FileSystem]);
    let why = &found.obstacles[1].1;
    assert_eq!(why.call, "nvmepeer_file_check");
    assert!(why.limit.contains("tmpfs") && why.help.contains("nvmepeer_serve_create(3)"), "{why}");
    // No file of this process has this number.
    // SAFETY: nothing uses it but one call, which fails.
    let error = check_file(unsafe { BorrowedFd::borrow_raw(900) }).unwrap_err();
    assert_eq!(error.errno(), Some(EBADF));
    Ok(())
}

#[test]
fn pin_file_passes_range() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    kernel.refuse(pinned_number("NVME_PEER_EXTENTS"), ENODATA, 0);
    let error = controller.pin_file(dmabuf(), 8, 16).map(|_| ()).unwrap_err();
    assert!(error.errno() == Some(ENODATA) && error.to_string().contains("hole"), "{error}");
    let request: sys::nvme_peer_extents = kernel.last_request();
    assert_eq!((request.fd, request.first, request.blocks), (42, 8, 16));
    Ok(())
}

/// Blocks of the file of a served queue pair, each of which is filled with its number.
const BLOCKS: u8 = 64;

fn described() -> Vec<u8> {
    (0..BLOCKS).flat_map(|block| [block; 512]).collect()
}

/// Data memory that begins at a page.
fn aligned(memory: &[AtomicU8]) -> Memory<'_> {
    let start = memory.as_ptr().align_offset(4096);
    memory[start..][..65536].into()
}

fn some_memory() -> Vec<AtomicU8> {
    (0..65536 + 4096).map(|_| AtomicU8::new(0)).collect()
}

fn entries(entries: u32) -> ServeOptions {
    ServeOptions { entries, ..ServeOptions::default() }
}

#[test]
fn served_queue_pair_transfers_data() -> Result<(), Error> {
    let _kernel = Kernel::new();
    let (file, room, data) = (file_in_memory(&described()), some_memory(), described());
    let memory = aligned(&room);
    let mut served = ServedQueuePair::new(entries(4))?;
    let namespace = served.add_namespace(&file, 0)?;
    assert_eq!((namespace.nsid, namespace.block_size, namespace.blocks), (1, 512, BLOCKS.into()));
    let buffer = served.add_buffer(memory)?;
    assert_eq!(buffer.length, 65536);
    let mut peer = Peer::new(&served, &namespace)?;
    for round in 0..3 {
        served.serve_while(|| {
            served.kick();
            // More commands than the rings have entries.
            for lba in (0..40).step_by(8) {
                assert_eq!(peer.command(peer::READ, lba, 8, buffer.dma + 512 * lba), 0);
            }
            assert_eq!(memory.part(0, 20480).to_vec(), data[..20480]);
            memory.part(512, 1024).copy_from(&[0xa0 + round; 1024]);
            assert_eq!(peer.command(peer::WRITE, 50, 2, buffer.dma + 512), 0);
            let beyond = peer.command(peer::READ, BLOCKS.into(), 1, buffer.dma);
            assert!(
                nvmepeer::status_text(beyond as u16).contains("LBA out of range"),
                "{beyond:x}"
            );
        })?;
        let mut written = [0; 2048];
        file.read_exact_at(&mut written, 49 * 512).expect("file");
        assert_eq!(written[..512], [49; 512]);
        assert_eq!(written[512..1536], [0xa0 + round; 1024]);
        assert_eq!(written[1536..], [52; 512]);
    }
    drop(served);
    assert_eq!(peer.state(), QueuePairState::Gone.into());
    Ok(())
}

#[test]
fn served_queue_pair_is_rearmed() -> Result<(), Error> {
    let _kernel = Kernel::new();
    let (file, room) = (file_in_memory(&described()), some_memory());
    let memory = aligned(&room);
    let mut served = ServedQueuePair::new(entries(4))?;
    let namespace = served.add_namespace(&file, 0)?;
    let buffer = served.add_buffer(memory)?;
    let mut peer = Peer::new(&served, &namespace)?;
    for (round, errno) in [(1, EPROTO), (2, ECANCELED)] {
        match errno {
            EPROTO => peer.ring(u32::MAX),
            _ => peer.quiesce(),
        }
        // The stop comes after the loss.
        let error = served
            .serve_while(|| {
                while peer.state() == QueuePairState::Live.into() {
                    std::thread::yield_now();
                }
            })
            .unwrap_err();
        let why = error.explanation().expect("of the library");
        assert_eq!((error.errno(), why.call.as_str()), (Some(errno), "nvmepeer_serve_run"));
        assert!(!why.limit.is_empty() && !why.help.is_empty(), "{why}");
        assert_eq!(peer.state(), QueuePairState::Quiesced.into());
        assert_eq!(served.run().unwrap_err().errno(), Some(ESHUTDOWN));
        assert_eq!(served.rearm()?, round);
        peer.rearmed();
        let status = served.serve_while(|| peer.command(peer::READ, 9, 1, buffer.dma))?;
        assert_eq!((status, memory.part(0, 512).to_vec()), (0, vec![9; 512]));
    }
    assert_eq!(served.rearm().unwrap_err().errno(), Some(EALREADY));
    Ok(())
}

#[test]
fn served_queue_pair_refuses() -> Result<(), Error> {
    let _kernel = Kernel::new();
    let room = some_memory();
    for options in [entries(3), ServeOptions { depth: 4097, ..entries(4) }] {
        let error = ServedQueuePair::new(options).map(|_| ()).unwrap_err();
        assert_eq!(error.errno(), Some(EINVAL));
    }
    let mut served = ServedQueuePair::new(ServeOptions::default())?;
    let (null, file) = (File::open("/dev/null").expect("/dev/null"), file_in_memory(&[0; 4096]));
    assert_eq!(served.add_namespace(null, 0).unwrap_err().errno(), Some(ENOTBLK));
    assert_eq!(served.add_namespace(&file, 100).unwrap_err().errno(), Some(EINVAL));
    let error = served.add_buffer(aligned(&room).part(1, 4096)).unwrap_err();
    assert!(error.to_string().contains("4096"), "{error}");
    served.stop();
    served.run()
}

#[test]
#[should_panic(expected = "the work")]
fn panic_stops_the_server() {
    let _kernel = Kernel::new();
    let served = ServedQueuePair::new(ServeOptions::default()).expect("io_uring");
    let _ = served.serve_while(|| panic!("the work"));
}
