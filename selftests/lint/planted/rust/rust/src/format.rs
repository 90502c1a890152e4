// SPDX-License-Identifier: GPL-2.0-only
//! planted: format.rs:2: rustfmt has it otherwise

/// Not as rustfmt would have it.
pub fn spaced(){}
