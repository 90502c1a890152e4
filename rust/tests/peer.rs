// SPDX-License-Identifier: MIT OR GPL-2.0
//! A peer of served queue pairs, for tests: the CPU, which writes and reads the files of the parts.
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nvmepeer::{sys, Error, Export, NamespaceInfo, ServedQueuePair};

pub const WRITE: u8 = 1;
pub const READ: u8 = 2;

/// A part: the memfd, and where the part begins.
struct Part(File, u64);

impl Part {
    fn new(served: &ServedQueuePair<'_>, what: Export) -> Result<Self, Error> {
        served.export(what).map(|part| Self(part.fd.into(), part.offset))
    }

    fn store(&self, offset: u64, data: &[u8]) {
        self.0.write_all_at(data, self.1 + offset).expect("memfd");
    }

    fn load(&self, offset: u64) -> u32 {
        let mut word = [0; 4];
        self.0.read_exact_at(&mut word, self.1 + offset).expect("memfd");
        u32::from_le_bytes(word)
    }
}

/// One command at a time, on one namespace.
pub struct Peer {
    geometry: sys::nvmepeer_geometry,
    sq: Part,
    cq: Part,
    doorbells: Part,
    status: Part,
    control: Part,
    commands: u32,
}

impl Peer {
    pub fn new(served: &ServedQueuePair<'_>, namespace: &NamespaceInfo) -> Result<Self, Error> {
        Ok(Self {
            geometry: served.geometry(namespace, true)?,
            sq: Part::new(served, Export::Sq)?,
            cq: Part::new(served, Export::Cq)?,
            doorbells: Part::new(served, Export::Doorbell)?,
            status: Part::new(served, Export::Status)?,
            control: Part::new(served, Export::Control)?,
            commands: 0,
        })
    }

    /// Of the status page, `enum nvme_peer_qp_state`.
    pub fn state(&self) -> u32 {
        self.status.load(8)
    }

    /// Write the tail doorbell.
    pub fn ring(&self, tail: u32) {
        self.doorbells.store(self.geometry.sq_doorbell, &tail.to_le_bytes());
    }

    pub fn quiesce(&self) {
        self.control.store(0, &1u32.to_le_bytes());
    }

    /// The rings begin again.
    pub fn rearmed(&mut self) {
        self.commands = 0;
    }

    /// Execute a command with an SGL of one data block.  Returns its status.
    pub fn command(&mut self, opcode: u8, lba: u64, blocks: u32, address: u64) -> u32 {
        let (index, entries) = (self.commands, self.geometry.sq_entries);
        let mut entry = [0; 64];
        entry[..4].copy_from_slice(&[opcode, 0x40, (index % entries) as u8, 0]);
        entry[4..8].copy_from_slice(&self.geometry.nsid.to_le_bytes());
        entry[24..32].copy_from_slice(&address.to_le_bytes());
        entry[32..36].copy_from_slice(&(blocks << self.geometry.lba_shift).to_le_bytes());
        entry[40..48].copy_from_slice(&lba.to_le_bytes());
        entry[48..52].copy_from_slice(&(blocks - 1).to_le_bytes());
        self.sq.store(u64::from(index % entries) * 64, &entry);
        self.commands += 1;
        self.ring(self.commands % entries);
        let status = self.completion(index);
        self.doorbells.store(self.geometry.cq_doorbell, &(self.commands % entries).to_le_bytes());
        status
    }

    fn completion(&self, index: u32) -> u32 {
        let (entries, end) = (self.geometry.cq_entries, Instant::now() + Duration::from_secs(30));
        let phase = ((index / entries) & 1) ^ 1;
        while Instant::now() < end {
            let last = self.cq.load(u64::from(index % entries) * 16 + 12);
            if (last >> 16) & 1 == phase {
                assert_eq!(last & 0xffff, index % entries);
                return last >> 17;
            }
        }
        panic!("no completion of command {index}");
    }
}
