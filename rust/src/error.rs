// SPDX-License-Identifier: MIT OR GPL-2.0
//! Errors with the explanation of the library.
use core::ffi::c_int;
use core::fmt;
use std::io;

use crate::sys;
use crate::value::{text, text_in};

/// Explanation of a failed call.  Sentences without newline; the last two may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Name of the C function, such as `nvmepeer_buf_import`.
    pub call: String,
    /// The request.
    pub what: String,
    /// The rule or limit that it violates, with the numbers.
    pub limit: String,
    /// The fix.
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

/// Reason why a transfer through a queue pair of this process failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceError {
    /// Submitted, but not completed in time: the controller may still write the data.
    Timeout,
    /// Not submitted: the queue did not have a free entry in time.
    Full,
    /// The queue pair was lost and not recovered; a write may have been executed
    /// or not.
    Lost,
    /// Not submitted: outside the data memory.
    Range,
    /// Not submitted: above the limit of one command.
    TooLarge,
    /// Not submitted: the data is not 4-byte aligned.
    Align,
    /// Not submitted: it needs a PRP list, for which there is no memory.
    NoList,
    /// Another value of the C `enum nvmepeer_error`.
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

/// A failed call.  Its text has the request, the limit and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The kernel or the library refused.
    Refused {
        /// Positive errno; [`Error::kind`] maps it to a kind.
        errno: i32,
        /// Explanation of the library.
        why: Box<Explanation>,
    },
    /// The controller completed a command with an error.
    Status {
        /// Status field of the completion without its phase tag; [`status_text`] has it in words.
        status: u16,
        /// Explanation of the library.
        why: Box<Explanation>,
    },
    /// A transfer through a queue pair of this process failed.
    Transfer {
        /// Reason.
        error: DeviceError,
        /// Explanation of the library.
        why: Box<Explanation>,
    },
    /// An argument that the library cannot represent; the text has the reason.
    Argument(String),
}

impl Error {
    /// The errno, if the call failed with one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// The nearest kind of the standard library: `WouldBlock` for `EAGAIN`, and so on.
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

    /// Explanation of the library; none if this crate refused the arguments.
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

/// An NVMe status as text; `"status 0x..."` if it has no name.
pub fn status_text(status: u16) -> String {
    // SAFETY: the text is a literal or the thread's own, and copied before it can change.
    unsafe { text(sys::nvmepeer_status_text(status.into())) }.to_owned()
}

/// The explanation that `fill`, a call of the library, stores.
pub(crate) fn explained(
    fill: impl FnOnce(*mut sys::nvmepeer_explanation, usize) -> c_int,
) -> Box<Explanation> {
    // SAFETY: numbers, arrays of numbers and a pointer, for all of which 0 is a value.
    let mut why: sys::nvmepeer_explanation = unsafe { core::mem::zeroed() };
    fill(&mut why, size_of::<sys::nvmepeer_explanation>());
    let call = match why.call.is_null() {
        true => String::new(),
        // SAFETY: a literal of the library.
        false => unsafe { text(why.call) }.to_owned(),
    };
    let [what, limit, help] = [&why.what[..], &why.limit[..], &why.help[..]].map(text_in);
    Box::new(Explanation { call, what, limit, help })
}

/// The error of the last call of this thread, which returned `result`.
fn last_refusal(result: c_int) -> Error {
    // SAFETY: the pointer is to a structure of this size.
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

/// A call that returns 0 or a negative errno.
pub(crate) fn done(result: c_int) -> Result<(), Error> {
    counted(result).map(|_| ())
}

/// A call that executes a command: 0, a positive status, or a negative errno.
pub(crate) fn completed(result: c_int) -> Result<(), Error> {
    match result {
        0 => Ok(()),
        _ => Err(last_refusal(result)),
    }
}

/// A call of the device library: 0, a positive status, or an `enum nvmepeer_error`.
pub(crate) fn transferred(call: &str, result: c_int) -> Result<(), Error> {
    if result == 0 {
        return Ok(());
    }
    // SAFETY: the pointer is to a structure of this size.
    let mut why = explained(|why, size| unsafe {
        sys::nvmepeer_explain_result(sys::NVMEPEER_RESULT_DEVICE, result, why, size)
    });
    why.call = call.to_owned();
    Err(match u16::try_from(result) {
        Ok(status) => Error::Status { status, why },
        Err(_) => Error::Transfer { error: DeviceError::from_c(result), why },
    })
}
