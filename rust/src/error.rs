// SPDX-License-Identifier: MIT OR GPL-2.0
//! Refusals, with all that the library says of them.
use core::ffi::c_int;
use core::fmt;
use std::io;

use crate::sys;
use crate::value::{text, text_in};

/// What the library says of a refusal.  Sentences without newline; the last two may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Name of C's call, such as `nvmepeer_buf_import`.
    pub call: String,
    /// What was refused.
    pub what: String,
    /// The rule or limit that refused it, with the numbers.
    pub limit: String,
    /// What would help.
    pub help: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [&self.what, &self.limit, &self.help];
        let mut between = "";
        for text in said.into_iter().filter(|text| !text.is_empty()) {
            write!(f, "{between}{text}")?;
            between = ". ";
        }
        Ok(())
    }
}

/// Why a transfer by a queue pair of this process's own did not go well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceError {
    /// Sent, and no completion in time: the controller may still write the data.
    Timeout,
    /// Not sent: no room in the queue in time.
    Full,
    /// The queue pair was lost and did not come back; of a write: it may have been executed
    /// or not.
    Lost,
    /// Not sent: outside the data memory.
    Range,
    /// Not sent: above the limit of one command.
    TooLarge,
    /// Not sent: data begins at a multiple of 4 bytes.
    Align,
    /// Not sent: it needs a list of pages, for which there is no memory.
    NoList,
    /// Another of C's `enum nvmepeer_error`.
    Other(i32),
}

impl DeviceError {
    fn from_c(result: c_int) -> Self {
        match result {
            sys::NVMEPEER_E_TIMEOUT => Self::Timeout,
            sys::NVMEPEER_E_FULL => Self::Full,
            sys::NVMEPEER_E_LOST => Self::Lost,
            sys::NVMEPEER_E_RANGE => Self::Range,
            sys::NVMEPEER_E_TOO_LARGE => Self::TooLarge,
            sys::NVMEPEER_E_ALIGN => Self::Align,
            sys::NVMEPEER_E_NO_LIST => Self::NoList,
            other => Self::Other(other),
        }
    }
}

/// A refusal.  To print it gives what was refused, by which limit, and what would help.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The kernel or the library refused.
    Refused {
        /// Positive number of the operating system; [`Error::kind`] has it by name.
        errno: i32,
        /// What the library says.
        why: Box<Explanation>,
    },
    /// The controller completed a command with an error.
    Status {
        /// Status field of the completion without its phase tag; [`status_text`] has it in words.
        status: u16,
        /// What the library says.
        why: Box<Explanation>,
    },
    /// A transfer by a queue pair of this process's own did not go well.
    Transfer {
        /// What became of it.
        error: DeviceError,
        /// What the library says.
        why: Box<Explanation>,
    },
    /// What the caller gave cannot be asked for at all; the text says why.
    Argument(String),
}

impl Error {
    /// Number of the operating system, if one tells.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// The nearest of the standard library's kinds: `WouldBlock` for `EAGAIN`, and so on.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Refused { errno, .. } => io::Error::from_raw_os_error(*errno).kind(),
            Self::Transfer { error: DeviceError::Timeout | DeviceError::Full, .. } => {
                io::ErrorKind::TimedOut
            }
            Self::Argument(_) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        }
    }

    /// What the library says, unless the refusal is this crate's own.
    pub fn explanation(&self) -> Option<&Explanation> {
        match self {
            Self::Refused { why, .. } | Self::Status { why, .. } | Self::Transfer { why, .. } => {
                Some(why)
            }
            Self::Argument(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(text) => f.write_str(text),
            Self::Refused { why, .. } | Self::Status { why, .. } | Self::Transfer { why, .. } => {
                why.fmt(f)
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// An NVMe status in words; `"status 0x..."` for one that is not known.
pub fn status_text(status: u16) -> String {
    // SAFETY: the text is a literal or the thread's own, and copied before it can change.
    unsafe { text(sys::nvmepeer_status_text(status.into())) }.to_owned()
}

/// The explanation that `fill`, one of the library's calls, gives.
fn explained(
    fill: impl FnOnce(*mut sys::nvmepeer_explanation, usize) -> c_int,
) -> Box<Explanation> {
    // SAFETY: numbers, arrays of numbers and a pointer, for all of which 0 is a value.
    let mut why: sys::nvmepeer_explanation = unsafe { core::mem::zeroed() };
    fill(&mut why, size_of::<sys::nvmepeer_explanation>());
    let call = match why.call.is_null() {
        true => String::new(),
        // SAFETY: a literal of the library's.
        false => unsafe { text(why.call) }.to_owned(),
    };
    let [what, limit, help] = [&why.what[..], &why.limit[..], &why.help[..]].map(text_in);
    Box::new(Explanation { call, what, limit, help })
}

/// What the call that has just failed in this thread returned, as an error.
fn last_refusal(result: c_int) -> Error {
    // SAFETY: the structure is ours and of this size.
    let why = explained(|why, size| unsafe { sys::nvmepeer_explain(why, size) });
    match u16::try_from(result) {
        Ok(status) => Error::Status { status, why },
        Err(_) => Error::Refused { errno: -result, why },
    }
}

/// A call that returns 0 or a count, or a negative errno.
pub(crate) fn counted(result: c_int) -> Result<usize, Error> {
    usize::try_from(result).map_err(|_| last_refusal(result))
}

/// One that returns 0 or a negative errno.
pub(crate) fn done(result: c_int) -> Result<(), Error> {
    counted(result).map(|_| ())
}

/// One that carries a command: 0, a positive status, or a negative errno.
pub(crate) fn completed(result: c_int) -> Result<(), Error> {
    match result {
        0 => Ok(()),
        _ => Err(last_refusal(result)),
    }
}

/// One of the device library's: 0, a positive status, or one of its own numbers.
pub(crate) fn transferred(call: &str, result: c_int) -> Result<(), Error> {
    if result == 0 {
        return Ok(());
    }
    // SAFETY: the structure is ours and of this size.
    let mut why = explained(|why, size| unsafe {
        sys::nvmepeer_explain_result(sys::NVMEPEER_RESULT_DEVICE, result, why, size)
    });
    why.call = call.to_owned();
    Err(match u16::try_from(result) {
        Ok(status) => Error::Status { status, why },
        Err(_) => Error::Transfer { error: DeviceError::from_c(result), why },
    })
}
