// SPDX-License-Identifier: MIT OR GPL-2.0
//! Tests of the crate with a controller: NVMEPEER_NODE is its node, for example nvmep0.
use std::time::{Duration, Instant};

use nvmepeer::{Controller, Error, EventType, QueuePair, QueuePairState, Rings};

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
fn reset_sends_event_and_rearm_restores_queue_pair() -> Result<(), Box<dyn std::error::Error>> {
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
