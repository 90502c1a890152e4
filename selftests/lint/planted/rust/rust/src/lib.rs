// SPDX-License-Identifier: GPL-2.0-only
//! Mistakes for the gate to find.
#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

mod format;
#[allow(missing_docs, non_camel_case_types)]
#[rustfmt::skip]
pub mod sys;

pub use format::spaced;

pub fn undocumented() {} // planted: missing documentation for a function

/// Not as clippy would have it.
pub fn number() -> u32 {
    return 1; // planted: unneeded `return` statement
}

/// See [`nothing_of_this_name`]. planted: unresolved link to `nothing_of_this_name`
pub fn linked() {}

/// Reads the first of them.
pub fn first(bytes: &[u8]) -> u8 {
    unsafe { *bytes.as_ptr() } // planted: unsafe block missing a safety comment
}
