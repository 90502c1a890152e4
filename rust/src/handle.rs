// SPDX-License-Identifier: MIT OR GPL-2.0
//! Owned objects of the C library, and names of device nodes.
use core::ffi::c_int;
use core::marker::PhantomData;
use core::ptr::{null_mut, NonNull};
use std::ffi::CString;
use std::os::fd::{BorrowedFd, RawFd};

use crate::error::{done, Error};

/// Owns one object of the library, which uses other objects that live for `'a`.
///
/// As the type implements `Drop`, the compiler checks that those other objects outlive it.
pub(crate) struct Handle<'a, T> {
    raw: NonNull<T>,
    close: unsafe extern "C" fn(*mut T),
    stands_on: PhantomData<&'a ()>,
}

// SAFETY: nvmepeer.h guarantees that several threads may use an object at once.  The borrow
// checker rules out a use during or after the close.
unsafe impl<T> Send for Handle<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<'_, T> {}

impl<T> Handle<'_, T> {
    /// Take ownership of the object that `open` creates.
    ///
    /// # Safety
    ///
    /// If `open` returns 0 it has stored an object, which `close` releases.
    pub(crate) unsafe fn new(
        close: unsafe extern "C" fn(*mut T),
        open: impl FnOnce(*mut *mut T) -> c_int,
    ) -> Result<Self, Error> {
        let mut raw = null_mut();
        let result = open(&mut raw);
        done(result)?;
        let raw = NonNull::new(raw).expect("the call succeeded, so it stored an object");
        Ok(Self { raw, close, stands_on: PhantomData })
    }

    pub(crate) fn raw(&self) -> *mut T {
        self.raw.as_ptr()
    }

    /// A descriptor that the object owns.
    pub(crate) fn descriptor(&self, fd: RawFd) -> BorrowedFd<'_> {
        // SAFETY: it is open until the object is closed, which this borrow prevents.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }
}

impl<T> Drop for Handle<'_, T> {
    fn drop(&mut self) {
        // SAFETY: no borrow is left.
        unsafe { (self.close)(self.raw()) }
    }
}

/// The name of a device node as a C string.
pub(crate) fn node_name(node: &str) -> Result<CString, Error> {
    CString::new(node).map_err(|_| Error::Argument(format!("{node:?} has a NUL in it")))
}
