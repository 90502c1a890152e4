// SPDX-License-Identifier: MIT OR GPL-2.0
//! Unit tests of the crate, in front of a kernel made of one structure (lib/tests/fake.c), and
//! its structures and numbers against the pinned ones of C, which ABI names: files as
//! selftests/abi/dump writes them.
//!
//! The kernel is everybody's: one test at a time.
use core::ffi::{c_int, c_uchar, c_uint, c_ulong};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nvmepeer::{
    sys, Access, Controller, ControllerState, CpuPeer, DeviceError, Error, Export, HostMemory,
    Import, Namespace, PciAddress, QueuePair, QueuePairState, Reason, Rings, Verdict,
};

/// `struct fake` of lib/tests/fake.h, as far as it is used here.
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

/// The kernel, to be changed and looked at by one test.
struct Kernel(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Kernel {
    /// With a namespace of 0x1000 blocks of 512 bytes.
    fn new() -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let kernel = Self(ONE.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: nobody else has it now.
        unsafe { fake_reset() };
        kernel.change(|it| (it.identify[1], it.identify[130]) = (0x10, 9));
        kernel
    }

    fn change<T>(&self, change: impl FnOnce(&mut Fake) -> T) -> T {
        // SAFETY: nobody else has it now, and the library is not called meanwhile.
        change(unsafe { &mut *core::ptr::addr_of_mut!(fake) })
    }

    fn refuse(&self, command: c_ulong, error: c_int, status: c_int) {
        self.change(|it| {
            (it.fail_command, it.fail_error, it.fail_status) = (command, error, status);
        });
    }

    /// The last call's structure, as the kernel got it.
    fn asked<T: Copy>(&self) -> T {
        assert!(size_of::<T>() <= 256);
        // SAFETY: there are as many bytes, and they are numbers.
        self.change(|it| unsafe { *it.request.as_ptr().cast::<T>() })
    }

    fn files(&self) -> c_int {
        self.change(|it| it.open_files)
    }

    fn buffers(&self) -> c_int {
        self.change(|it| it.buffers)
    }
}

/// A descriptor of somebody's; this kernel does not look.
fn dmabuf() -> BorrowedFd<'static> {
    // SAFETY: nothing is done with it.
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

/// What bindgen has the compiler assert: "STRUCTURE FIELD" and "STRUCTURE" to bytes.
fn asserted() -> HashMap<String, String> {
    let text = include_str!("../src/sys.rs").split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut asserted, mut name) = (HashMap::new(), String::new());
    for part in text.split('"') {
        // A text, and after the next quote what it is about: remember the one for the other.
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

/// How Rust names a field of C's, `const char * call` or `__u32 reserved[2]`.
fn field_name(declaration: &str) -> String {
    let name = declaration.rsplit(' ').next().unwrap_or_default();
    match name.split('[').next() {
        Some("type") => "type_".to_owned(),
        name => name.unwrap_or_default().to_owned(),
    }
}

#[test]
fn structures_are_those_of_c() {
    let asserted = asserted();
    let mut compared = 0;
    for (headline, entries) in pinned() {
        let Some(name) = headline.strip_prefix("struct ") else { continue };
        // What only the device library has is not bound.
        let Some(bytes) = asserted.get(name) else {
            assert_eq!(name, "nvmepeer_set");
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

/// Each number of an enum of C's has a name here, and no other has.
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
fn every_name_of_an_enum_has_its_number() {
    use nvmepeer::{Domain, EventType};
    type State = ControllerState;
    let states = [State::New, State::Live, State::Resetting, State::Deleting, State::Dead];
    assert_enum("nvme_peer_ctrl_state", &states);
    assert_enum("nvme_peer_domain", &[Domain::Physical, Domain::Translated]);
    assert_enum("nvme_peer_access", &[Access::Both, Access::Read, Access::Write]);
    assert_enum("nvme_peer_event_type", &[EventType::State, EventType::Ready]);
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
        ],
    );
    assert_enum(
        "nvme_peer_export",
        &[Export::Sq, Export::Cq, Export::Doorbell, Export::Status, Export::Request],
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
fn version_is_that_of_the_library() {
    let version = format!("\nversion = \"{}.0\"\n", nvmepeer::version());
    assert!(include_str!("../Cargo.toml").contains(&version), "{version}");
    assert_eq!(nvmepeer::version_number(), sys::NVMEPEER_VERSION_NUMBER);
}

#[test]
fn objects_may_be_used_from_any_thread() {
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
fn a_controller_tells_its_facts() -> Result<(), Error> {
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
fn a_refusal_is_an_error_with_all_that_the_library_says() -> Result<(), Error> {
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
fn a_node_that_is_not_there() {
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
fn a_status_of_the_controller() -> Result<(), Error> {
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
fn a_namespace_has_whole_blocks() -> Result<(), Error> {
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
fn what_is_dropped_is_given_back() -> Result<(), Error> {
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
        // The peer's own is a queue pair, memory and a buffer.
        assert_eq!((kernel.files(), kernel.buffers()), (before - 1 + 5, 2));
    }
    assert_eq!((kernel.files(), kernel.buffers()), (before - 1, 0));
    Ok(())
}

#[test]
#[should_panic(expected = "range end index")]
fn memory_ends_where_it_ends() {
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
    let asked: sys::nvme_peer_qp_create = kernel.asked();
    assert_eq!((asked.sq_entries, asked.sq_handle, asked.sq_offset), (64, 7, 8192));
    assert_eq!((asked.cq_entries, asked.cq_handle, asked.cq_offset), (128, 7, 4096));
    assert_eq!(asked.flags, sys::NVME_PEER_QP_ALLOW_SLEEP);
    let info = queue_pair.info()?;
    assert_eq!((info.qid, info.generation, info.cq_entries), (5, 9, 128));
    assert_eq!(queue_pair.rearm(3)?, 10);
    assert_eq!(kernel.change(|it| it.losses), 3);
    let exported = queue_pair.export(Export::Doorbell, false)?;
    assert_eq!((exported.offset, exported.length), (0x28, 8));
    // Not one that this process has.
    std::mem::forget(exported);
    std::mem::forget(queue_pair.export(Export::Doorbell, true)?);
    let asked: sys::nvme_peer_qp_export = kernel.asked();
    assert_eq!((asked.what, asked.flags), (sys::NVME_PEER_EXPORT_DOORBELL, 1));
    let other = Controller::open("nvmep1")?;
    let error = other.create_queue_pair(&rings).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("/dev/nvmep1"), "{error}");
    kernel.refuse(pinned_number("NVME_PEER_QP_REARM"), EAGAIN, 0);
    assert_eq!(queue_pair.rearm(3).unwrap_err().kind(), ErrorKind::WouldBlock);
    Ok(())
}

#[test]
fn a_file_from_elsewhere_is_taken_over() -> Result<(), Error> {
    let kernel = Kernel::new();
    // SAFETY: a number that no file of this process has, and that this kernel closes.
    let file = unsafe { OwnedFd::from_raw_fd(2000) };
    let before = kernel.files();
    let queue_pair = QueuePair::from_fd(file)?;
    assert_eq!((queue_pair.as_raw_fd(), queue_pair.info()?.qid), (2000, 5));
    assert_eq!(kernel.files(), before);
    drop(queue_pair);
    assert_eq!(kernel.files(), before - 1);
    // One that is refused was never the library's: whoever gave it closes it.
    let other = OwnedFd::from(std::fs::File::open("/dev/null").expect("/dev/null"));
    assert_eq!(QueuePair::from_fd(other).map(|_| ()).unwrap_err().errno(), Some(EBADF));
    assert_eq!(kernel.files(), before - 1);
    Ok(())
}

#[test]
fn a_part_is_imported_as_it_was_asked_for() -> Result<(), Error> {
    let kernel = Kernel::new();
    let controller = Controller::open("nvmep0")?;
    let part = Import { require_device: true, access: Access::Write, offset: 4096, length: 8192 };
    controller.import(dmabuf(), part).map(std::mem::forget)?;
    let asked: sys::nvme_peer_buf_import = kernel.asked();
    assert_eq!((asked.dmabuf_fd, asked.flags), (42, sys::NVME_PEER_BUF_REQUIRE_DEVICE));
    assert_eq!((asked.access, asked.offset), (sys::NVME_PEER_ACCESS_WRITE, 4096));
    Ok(())
}

#[test]
fn a_buffer_is_released_once() -> Result<(), Error> {
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
fn the_cpu_as_the_peer() -> Result<(), Error> {
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
