// SPDX-License-Identifier: MIT OR GPL-2.0
//! Stores: pages on disks that survive a restart (`<nvmepeer_store.h>`).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use nvmepeer::store::{Open, Store};
//!
//! let store = Store::open(&["/dev/nvmep0n1"], Open::default())?;
//! let slots = store.alloc(1)?;
//! store.write(&[(slots[0], &[7; 4096])])?;
//! let values = store.commit(&[(slots[0], [1; 64])])?;
//! let mut page = vec![0; store.info()?.page_bytes as usize];
//! let length = store.read(&mut [(values[0], &mut page)])?[0];
//! println!("{length} bytes, {} values", store.scan()?.len());
//! # Ok(())
//! # }
//! ```
use core::ffi::c_int;
use core::fmt;
use core::mem::zeroed;
use std::ffi::CString;

use crate::error::{counted, done, Error};
use crate::handle::{node_name, Handle};
use crate::sys_store as sys;

/// What the caller knows of a value by: bytes that the store does not interpret.
pub type Tag = [u8; sys::NVMEPEER_STORE_TAG as usize];

/// A slot with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Value {
    /// The slot.
    pub slot: u32,
    /// Identifies the commit: a read of a slot that has a later value is a miss.
    pub generation: u64,
    /// Length in bytes.
    pub length: u32,
    /// The caller's tag.
    pub tag: Tag,
}

/// A failed call on a list, of which other items may have succeeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListError {
    /// The first failure.
    pub error: Error,
    /// For each item `None`, or its errno; empty if none has a result: all have failed.
    pub results: Vec<Option<i32>>,
    /// The values that a commit has made, in the order of their items; empty after other calls.
    pub values: Vec<Value>,
}

impl ListError {
    /// Those of the call's items that have failed: what to pass again.
    pub fn failed<T: Clone>(&self, items: &[T]) -> Vec<T> {
        let succeeded = |number| self.results.get(number) == Some(&None);
        let numbered = items.iter().enumerate();
        numbered.filter(|(number, _)| !succeeded(*number)).map(|(_, item)| item.clone()).collect()
    }
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for ListError {}

/// How a store is created.
#[derive(Clone, Copy, Debug, Default)]
pub struct Create {
    /// Longest value in bytes, a multiple of 4.
    pub page_bytes: u32,
    /// Slots of each member at most; 0: as many as fit.
    pub slots: u32,
    /// Overwrite members that hold a store or other data.
    pub force: bool,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open {
    /// Go on without members that should be there: their values are misses.
    pub degraded: bool,
    /// Write nothing.
    pub read_only: bool,
}

/// Properties and state of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Number of members.
    pub members: u32,
    /// Longest value.
    pub page_bytes: u32,
    /// All slots; slot s is on member s % members.
    pub slots: u64,
    /// Slots that [`Store::alloc`] can return.
    pub free_slots: u64,
    /// Members that are there, by bit.
    pub live: u64,
    /// Members that the open has emptied, by bit.
    pub emptied: u64,
}

/// An open store, closed when it is dropped.  Threads may call concurrently.
pub struct Store {
    handle: Handle<'static, sys::nvmepeer_store>,
}

/// The paths as C has them: the strings, which the pointers need, and the pointers.
fn paths(members: &[&str]) -> Result<(Vec<CString>, Vec<*const core::ffi::c_char>), Error> {
    let names = members.iter().map(|name| node_name(name)).collect::<Result<Vec<_>, _>>()?;
    let pointers = names.iter().map(|name| name.as_ptr()).collect();
    Ok((names, pointers))
}

fn count_of<T>(list: &[T]) -> Result<u32, Error> {
    u32::try_from(list.len()).map_err(|_| Error::Argument("more than 2^32 items".into()))
}

fn empty_item() -> sys::nvmepeer_store_item {
    // SAFETY: numbers, an array of bytes and a pointer, for all of which 0 is a value.
    unsafe { zeroed() }
}

fn value_of(item: &sys::nvmepeer_store_item) -> Value {
    Value { slot: item.slot, generation: item.generation, length: item.length, tag: item.tag }
}

impl Store {
    /// Make a store.
    ///
    /// # Errors
    ///
    /// `EEXIST`: a member is not empty.  `ENOSPC`: a member is too small.  `EBUSY`, `EINVAL`.
    pub fn create(members: &[&str], how: Create) -> Result<(), Error> {
        let (_names, pointers) = paths(members)?;
        let options = sys::nvmepeer_store_options {
            size: size_of::<sys::nvmepeer_store_options>() as u32,
            flags: if how.force { sys::NVMEPEER_STORE_FORCE } else { 0 },
            page_bytes: how.page_bytes,
            slots: how.slots,
        };
        let count = count_of(members)?;
        // SAFETY: as many names as the count says, which end with NUL, and a structure.
        done(unsafe { sys::nvmepeer_store_create(pointers.as_ptr(), count, &options) })
    }

    /// Open a store, of which the members are given in any order.
    ///
    /// # Errors
    ///
    /// `ENODEV`: a member is missing.  `EUCLEAN`: one holds no store.  `ESTALE`, `EBUSY`, `EINVAL`.
    pub fn open(members: &[&str], how: Open) -> Result<Self, Error> {
        let (_names, pointers) = paths(members)?;
        let count = count_of(members)?;
        let flags = if how.degraded { sys::NVMEPEER_STORE_DEGRADED } else { 0 }
            | if how.read_only { sys::NVMEPEER_STORE_READ_ONLY } else { 0 };
        // SAFETY: as many names as the count says; the close function matches the open function.
        let handle = unsafe {
            Handle::new(sys::nvmepeer_store_close, |receives| {
                sys::nvmepeer_store_open(pointers.as_ptr(), count, flags, receives)
            })
        }?;
        Ok(Self { handle })
    }

    /// Properties and state.
    pub fn info(&self) -> Result<Info, Error> {
        // SAFETY: numbers and an array of bytes.
        let mut info: sys::nvmepeer_store_info = unsafe { zeroed() };
        // SAFETY: a structure of this size.
        done(unsafe {
            sys::nvmepeer_store_info(self.handle.raw(), &mut info, size_of_val(&info))
        })?;
        Ok(Info {
            members: info.members,
            page_bytes: info.page_bytes,
            slots: info.slots,
            free_slots: info.free_slots,
            live: info.live,
            emptied: info.emptied,
        })
    }

    /// Allocate slots: all or none.
    ///
    /// # Errors
    ///
    /// `ENOSPC`: not enough free slots.
    pub fn alloc(&self, count: u32) -> Result<Vec<u32>, Error> {
        let mut slots = vec![0; count as usize];
        // SAFETY: room for as many slots.
        done(unsafe { sys::nvmepeer_store_alloc(self.handle.raw(), slots.as_mut_ptr(), count) })?;
        Ok(slots)
    }

    fn call(
        &self,
        items: &mut [sys::nvmepeer_store_item],
        call: impl FnOnce(*mut sys::nvmepeer_store, *mut sys::nvmepeer_store_item, u32) -> c_int,
    ) -> Result<(), ListError> {
        let failed = |error, items: &[sys::nvmepeer_store_item]| ListError {
            error,
            results: items.iter().map(|it| (it.result != 0).then_some(-it.result)).collect(),
            values: Vec::new(),
        };
        let count = count_of(items).map_err(|error| failed(error, &[]))?;
        let result = call(self.handle.raw(), items.as_mut_ptr(), count);
        done(result).map_err(|error| failed(error, items))
    }

    /// Write values to allocated slots, each a multiple of 4 bytes.  Nothing is durable or can be
    /// read before [`Store::commit`].
    pub fn write(&self, values: &[(u32, &[u8])]) -> Result<(), ListError> {
        let mut items: Vec<_> = values
            .iter()
            .map(|(slot, data)| sys::nvmepeer_store_item {
                slot: *slot,
                // Longer than any page: the library refuses it.
                length: u32::try_from(data.len()).unwrap_or(u32::MAX),
                data: data.as_ptr().cast_mut().cast(),
                ..empty_item()
            })
            .collect();
        self.call(&mut items, |store, items, count| {
            // SAFETY: as many items, whose data the call reads only.
            unsafe { sys::nvmepeer_store_write(store, items, count) }
        })
    }

    /// Flush the values of slots that were written, and make them readable under their tags.
    pub fn commit(&self, slots: &[(u32, Tag)]) -> Result<Vec<Value>, ListError> {
        let mut items: Vec<_> = slots
            .iter()
            .map(|(slot, tag)| sys::nvmepeer_store_item { slot: *slot, tag: *tag, ..empty_item() })
            .collect();
        let result = self.call(&mut items, |store, items, count| {
            // SAFETY: as many items.
            unsafe { sys::nvmepeer_store_commit(store, items, count) }
        });
        let made = |items: &[sys::nvmepeer_store_item]| {
            items.iter().filter(|item| item.result == 0).map(value_of).collect()
        };
        match result {
            Ok(()) => Ok(made(&items)),
            Err(failed) if failed.results.is_empty() => Err(failed),
            Err(failed) => Err(ListError { values: made(&items), ..failed }),
        }
    }

    /// Read values into memory with room for a page each; returns their lengths.
    ///
    /// # Errors
    ///
    /// All are misses.  `ENOENT`: no value, or a later one.  `ENODEV`: its member is lost.
    /// `EILSEQ`: the checksum differs.
    ///
    /// # Panics
    ///
    /// If the memory is shorter than a page.
    pub fn read(&self, values: &mut [(Value, &mut [u8])]) -> Result<Vec<usize>, ListError> {
        let page = self.info().map_err(|error| ListError {
            error,
            results: Vec::new(),
            values: Vec::new(),
        })?;
        let mut items: Vec<_> = values
            .iter_mut()
            .map(|(value, data)| {
                assert!(data.len() >= page.page_bytes as usize, "memory is shorter than a page");
                sys::nvmepeer_store_item {
                    slot: value.slot,
                    generation: value.generation,
                    data: data.as_mut_ptr().cast(),
                    ..empty_item()
                }
            })
            .collect();
        self.call(&mut items, |store, items, count| {
            // SAFETY: as many items, each with room for a page.
            unsafe { sys::nvmepeer_store_read(store, items, count) }
        })?;
        Ok(items.iter().map(|item| item.length as usize).collect())
    }

    /// Free values: they are gone, also after a power cut, and their slots may be allocated again.
    /// Waits for readers up to `timeout_ms`.
    ///
    /// # Errors
    ///
    /// `ETIMEDOUT`: a reader has the slot, which stays without a value: free it again.  Pass only
    /// [`ListError::failed`] then: the slots of the others may have other owners by now.  `ENOENT`:
    /// no value, or a later one.  `EBUSY`, `ENODEV`, `EIO`.
    pub fn free(&self, values: &[Value], timeout_ms: i32) -> Result<(), ListError> {
        let mut items: Vec<_> = values
            .iter()
            .map(|value| sys::nvmepeer_store_item {
                slot: value.slot,
                generation: value.generation,
                ..empty_item()
            })
            .collect();
        self.call(&mut items, |store, items, count| {
            // SAFETY: as many items.
            unsafe { sys::nvmepeer_store_free(store, items, count, timeout_ms) }
        })
    }

    /// Free allocated slots that have no value.
    ///
    /// # Errors
    ///
    /// As [`Store::free`].  A slot that is passed again although it has been freed is taken from its
    /// next owner: pass only [`ListError::failed`] again.
    pub fn free_slots(&self, slots: &[u32]) -> Result<(), ListError> {
        let values: Vec<_> = slots
            .iter()
            .map(|&slot| Value { slot, generation: 0, length: 0, tag: [0; 64] })
            .collect();
        self.free(&values, 0)
    }

    /// All values of the members that are there, for an index after a restart.
    pub fn scan(&self) -> Result<Vec<Value>, Error> {
        let mut items = [empty_item(); 64];
        let (mut position, mut values) = (0, Vec::new());
        loop {
            // SAFETY: room for as many items as the count says.
            let count = counted(unsafe {
                sys::nvmepeer_store_scan(self.handle.raw(), &mut position, items.as_mut_ptr(), 64)
            })?;
            if count == 0 {
                return Ok(values);
            }
            values.extend(items[..count].iter().map(value_of));
        }
    }
}
