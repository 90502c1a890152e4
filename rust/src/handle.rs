// SPDX-License-Identifier: MIT OR GPL-2.0
//! What the C library made and takes back, and names of nodes.
use core::ffi::c_int;
use core::marker::PhantomData;
use core::ptr::{null_mut, NonNull};
use std::ffi::CString;
use std::os::fd::{BorrowedFd, RawFd};

use crate::error::{done, Error};

/// One thing of the library's, which stands on others that live for `'a`.
///
/// That it is dropped, and not only its parts, makes the compiler see that those are still
/// there then.
pub(crate) struct Handle<'a, T> {
    raw: NonNull<T>,
    close: unsafe extern "C" fn(*mut T),
    stands_on: PhantomData<&'a ()>,
}

// SAFETY: nvmepeer.h promises that objects may be used from several threads at once; that
// nobody uses one while or after it is closed is what borrowing means.
unsafe impl<T> Send for Handle<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<'_, T> {}

impl<T> Handle<'_, T> {
    /// What `open` makes.
    ///
    /// # Safety
    ///
    /// `open` leaves a thing behind the pointer whenever it returns 0, which `close` takes back.
    pub(crate) unsafe fn new(
        close: unsafe extern "C" fn(*mut T),
        open: impl FnOnce(*mut *mut T) -> c_int,
    ) -> Result<Self, Error> {
        let mut raw = null_mut();
        let result = open(&mut raw);
        done(result)?;
        let raw = NonNull::new(raw).expect("the library said that it made one");
        Ok(Self { raw, close, stands_on: PhantomData })
    }

    pub(crate) fn raw(&self) -> *mut T {
        self.raw.as_ptr()
    }

    /// A descriptor that the thing owns.
    pub(crate) fn descriptor(&self, fd: RawFd) -> BorrowedFd<'_> {
        // SAFETY: it is open until the thing is closed, which this borrow keeps it from.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }
}

impl<T> Drop for Handle<'_, T> {
    fn drop(&mut self) {
        // SAFETY: nobody borrows it any more.
        unsafe { (self.close)(self.raw()) }
    }
}

/// The name of a node, as C has it.
pub(crate) fn node_name(node: &str) -> Result<CString, Error> {
    CString::new(node).map_err(|_| Error::Argument(format!("{node:?} has a NUL in it")))
}
