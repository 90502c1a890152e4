// SPDX-License-Identifier: MIT OR GPL-2.0
//! Tests of the crate with a controller: NVMEPEER_NODE is its node, for example nvmep0.  Those on
//! files have an ext4 file system on its namespace 1 at NVMEPEER_FILES: "file", of 1 MiB that are
//! written, and "holes", of as many that are not.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nvmepeer::{
    check_file, Controller, Error, EventType, FileObstacle, HostMemory, Namespace, QueuePair,
    QueuePairState, Rings, ServeOptions, ServedQueuePair, Share,
};

// It has no losses here.
#[allow(dead_code)]
mod peer;
use peer::Peer;

const ETXTBSY: i32 = 26;
const BYTES: usize = 1 << 20;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn rearmed(queue_pair: &QueuePair<'_>, losses: u32) -> Result<u32, Error> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match queue_pair.rearm(losses) {
            Err(error)
                if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < end =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

#[test]
fn reset_sends_event_and_rearm_restores_queue_pair() -> Outcome {
    let node = std::env::var("NVMEPEER_NODE")?;
    let controller = Controller::open(&node)?;
    let queue_pair = controller.create_queue_pair(&Rings::new(16))?;
    assert!(!queue_pair.wait(Duration::ZERO)?);
    let losses = queue_pair.info()?.losses;
    std::fs::write(format!("/sys/class/nvme-peer/{node}/reset_controller"), "1")?;
    assert!(queue_pair.wait(Duration::from_secs(20))?);
    let event = &queue_pair.read_events()?[0];
    assert_eq!((event.type_, event.state), (EventType::State, QueuePairState::Quiesced));
    let generation = rearmed(&queue_pair, losses + 1)?;
    let info = queue_pair.info()?;
    assert_eq!((info.state, info.generation), (QueuePairState::Live, generation));
    Ok(())
}

fn path(name: &str) -> String {
    format!("{}/{name}", std::env::var("NVMEPEER_FILES").expect("NVMEPEER_FILES"))
}

fn open(name: &str) -> std::io::Result<File> {
    File::options().read(true).write(true).open(path(name))
}

fn obstacles(file: File) -> Result<Vec<FileObstacle>, Error> {
    let found = check_file(file)?.obstacles;
    Ok(found.iter().map(|(obstacle, _)| *obstacle).collect())
}

#[test]
fn file_check_names_obstacles() -> Outcome {
    let node = std::env::var("NVMEPEER_NODE")?;
    let found = check_file(open("holes")?)?;
    assert_eq!((found.obstacles[0].0, found.info.holes), (FileObstacle::Holes, BYTES as u64));
    assert!(found.obstacles[0].1.help.contains("file prepare"), "{found:?}");
    assert_eq!(obstacles(File::open(path("file"))?)?, [FileObstacle::ReadOnly]);
    let info = check_file(open("file")?)?.info;
    assert_eq!((info.file_system, info.disk), ("ext4".into(), format!("{node}n1")));
    assert_eq!((info.controller, info.bytes), (node.clone(), BYTES as u64));
    assert_eq!(obstacles(open("file")?)?, []);
    let controller = Controller::open(&node)?;
    let queue_pair = controller.create_queue_pair(&Rings::new(16).mediated(Share::default()))?;
    let window = queue_pair.open_file(path("file"), 1, 2)?;
    assert_eq!((window.first, window.blocks), (1, 2));
    let error = queue_pair.open_file(path("holes"), 0, 0).unwrap_err();
    assert!(error.to_string().contains("no blocks"), "{error}");
    Ok(())
}

#[test]
fn file_is_pinned_and_served() -> Outcome {
    let node = std::env::var("NVMEPEER_NODE")?;
    let controller = Controller::open(&node)?;
    let namespace = Namespace::open(&format!("ngp{}n1", &node["nvmep".len()..]))?;
    let (file, mut data) = (open("file")?, std::fs::read(path("file"))?);
    let pinned = controller.pin_file(&file, 0, 0)?;
    let (size, mut at) = (pinned.range().block_size as usize, 0);
    assert_eq!(pinned.range().blocks as usize * size, BYTES);
    for extent in pinned.extents()? {
        assert_eq!(extent.first as usize * size, at);
        for lba in extent.lba..extent.lba + extent.blocks {
            assert!(namespace.read(lba, 1)? == data[at..at + size], "block {lba}");
            at += size;
        }
    }
    assert_eq!(at, BYTES);
    // Only while it is pinned.
    assert!(file.write_at(&data[..512], 0).is_err());
    drop(pinned);
    // Shortly after, too, as long as a process has the inode locked.
    let end = Instant::now() + Duration::from_secs(10);
    while let Err(error) = file.write_all_at(&data[..512], 0) {
        assert!(error.raw_os_error() == Some(ETXTBSY) && Instant::now() < end, "{error}");
        std::thread::sleep(Duration::from_millis(20));
    }

    let memory = HostMemory::new(BYTES)?;
    let mut served = ServedQueuePair::new(ServeOptions::default())?;
    let format = served.add_namespace(&file, 4096)?;
    let buffer = served.add_buffer(memory.memory())?;
    let mut peer = Peer::new(&served, &format)?;
    served.serve_while(|| {
        assert_eq!(peer.command(peer::READ, 0, (BYTES / 4096) as u32, buffer.dma), 0);
        assert!(memory.memory().to_vec() == data, "data of a read");
        // Blocks 1 to 4, from block 9 on.
        assert_eq!(peer.command(peer::WRITE, 9, 4, buffer.dma + 4096), 0);
    })?;
    data.copy_within(4096..5 * 4096, 9 * 4096);
    assert!(std::fs::read(path("file"))? == data, "data of a write");
    Ok(())
}
