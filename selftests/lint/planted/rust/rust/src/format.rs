// SPDX-License-Identifier: GPL-2.0-only
//! planted: format.rs:2: rustfmt formats it differently

/// Not formatted.
pub fn spaced(){}
