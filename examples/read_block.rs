// SPDX-License-Identifier: MIT OR GPL-2.0
//! Read the first block of a namespace twice: by the kernel, and by a queue pair of this
//! process's own, and write it to standard output.
//!
//!     cargo run --manifest-path rust/Cargo.toml --example read_block [CONTROLLER NAMESPACE]
//!
//! Default: nvmep0 ngp0n1.
use std::io::Write;
use std::process::ExitCode;

use nvmepeer::{Controller, CpuPeer, Namespace};

/// The block, and whether both ways gave the same.
fn read_block(controller: &str, namespace: &str) -> Result<(Vec<u8>, bool), nvmepeer::Error> {
    let controller = Controller::open(controller)?;
    let namespace = Namespace::open(namespace)?;
    let block = namespace.read(0, 1)?;
    let peer = CpuPeer::new(&controller, &namespace, 64, 1 << 20)?;
    peer.read(0, 0, 1, CpuPeer::RECOVERY)?;
    let same = peer.memory().part(0, block.len()).to_vec() == block;
    Ok((block, same))
}

fn main() -> ExitCode {
    let nodes: Vec<String> = std::env::args().skip(1).collect();
    let (controller, namespace) = match &nodes[..] {
        [controller, namespace, ..] => (controller.as_str(), namespace.as_str()),
        _ => ("nvmep0", "ngp0n1"),
    };
    match read_block(controller, namespace) {
        Ok((block, same)) if std::io::stdout().write_all(&block).is_ok() && same => {
            ExitCode::SUCCESS
        }
        Ok(_) => ExitCode::FAILURE,
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::FAILURE
        }
    }
}
