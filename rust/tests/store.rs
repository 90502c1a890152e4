// SPDX-License-Identifier: MIT OR GPL-2.0
//! Stores of the crate on files, which count as members for tests.
use std::fs::File;
use std::path::PathBuf;

use nvmepeer::store::{Create, Open, Store, Tag, Value};

const PAGE: u32 = 6004;

/// Members in a folder of their own, on a file system with direct I/O.
struct Members(PathBuf);

impl Members {
    fn new(name: &str) -> Self {
        let folder = std::env::current_dir().unwrap();
        let folder = folder.join(format!("build/rust-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..2 {
            File::create(folder.join(number.to_string())).unwrap().set_len(8 << 20).unwrap();
        }
        let members = Self(folder);
        Store::create(&members.both(), Create { page_bytes: PAGE, slots: 20, force: false })
            .unwrap();
        members
    }

    fn path(&self, number: u32) -> &'static str {
        Box::leak(self.0.join(number.to_string()).into_os_string().into_string().unwrap().into())
    }

    fn both(&self) -> [&'static str; 2] {
        [self.path(0), self.path(1)]
    }

    fn open(&self) -> Store {
        Store::open(&self.both(), Open::default()).unwrap()
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tag(number: u8) -> Tag {
    [number; 64]
}

fn bytes(number: u8) -> Vec<u8> {
    (0..PAGE as usize - 4 * number as usize).map(|i| (i as u8).wrapping_mul(number | 1)).collect()
}

fn put(store: &Store, numbers: &[u8]) -> Vec<Value> {
    let slots = store.alloc(numbers.len() as u32).unwrap();
    let data: Vec<_> = numbers.iter().map(|&number| bytes(number)).collect();
    let written: Vec<_> = slots.iter().copied().zip(data.iter().map(|one| &one[..])).collect();
    store.write(&written).unwrap();
    let tags: Vec<_> = slots.into_iter().zip(numbers.iter().map(|&number| tag(number))).collect();
    store.commit(&tags).unwrap()
}

fn get(store: &Store, value: Value) -> Result<Vec<u8>, i32> {
    let mut page = vec![0xee; PAGE as usize];
    let lengths = store.read(&mut [(value, &mut page[..])]);
    let lengths = lengths.map_err(|failed| failed.results[0].unwrap())?;
    page.truncate(lengths[0]);
    Ok(page)
}

#[test]
fn values_are_found_after_a_restart() {
    let members = Members::new("restart");
    let store = members.open();
    let values = put(&store, &[1, 2, 3, 4, 5]);
    assert_eq!(values[2].length, PAGE - 12);
    store.free(&values[3..4], 0).unwrap();
    drop(store);
    let store = members.open();
    let mut found = store.scan().unwrap();
    found.sort_by_key(|value| value.tag);
    assert_eq!(found, [values[0], values[1], values[2], values[4]]);
    for value in found {
        assert_eq!(get(&store, value), Ok(bytes(value.tag[0])));
    }
    let info = store.info().unwrap();
    assert_eq!((info.members, info.page_bytes, info.slots, info.free_slots), (2, PAGE, 40, 36));
    assert_eq!((info.live, info.emptied), (3, 0));
}

#[test]
fn failures_are_those_of_items() {
    let members = Members::new("failures");
    let store = members.open();
    let values = put(&store, &[1, 2]);
    store.free(&values[..1], 0).unwrap();
    assert_eq!(get(&store, values[0]), Err(2));
    let failed = store.free(&values, 0).unwrap_err();
    assert_eq!(failed.results, [Some(2), None]);
    assert_eq!(failed.error.errno(), Some(2));
    assert!(!failed.to_string().is_empty());
    let slots = store.alloc(2).unwrap();
    store.write(&[(slots[0], &bytes(7)[..])]).unwrap();
    let failed = store.commit(&[(slots[1], tag(8)), (slots[0], tag(7))]).unwrap_err();
    assert_eq!(failed.results, [Some(22), None]);
    assert_eq!(failed.values.iter().map(|value| value.tag[0]).collect::<Vec<_>>(), [7]);
    store.free_slots(&slots[1..]).unwrap();
    assert_eq!(store.alloc(41).unwrap_err().errno(), Some(28));
    assert_eq!(store.write(&[(slots[0], &[0; 3])]).unwrap_err().results, [Some(22)]);
}

#[test]
fn freed_slots_are_not_freed_again() {
    let members = Members::new("again");
    let store = members.open();
    let slots = store.alloc(39).unwrap();
    let unused = (0..40).find(|slot| !slots.contains(slot)).unwrap();
    let freed = [slots[0], unused, slots[1]];
    let failed = store.free_slots(&freed).unwrap_err();
    assert_eq!(failed.results, [None, Some(2), None]);
    // All of them have other owners now.
    store.alloc(3).unwrap();
    assert_eq!(failed.failed(&freed), [unused]);
    store.free_slots(&failed.failed(&freed)).unwrap();
    assert_eq!(store.info().unwrap().free_slots, 1);
    let values = put(&store, &[1]);
    store.free(&values, 0).unwrap();
    let failed = store.free(&values, 0).unwrap_err();
    assert_eq!(failed.failed(&values), values);
}

#[test]
fn opens_are_refused() {
    let members = Members::new("refused");
    let errno = |paths: &[&str], how| Store::open(paths, how).map(drop).unwrap_err().errno();
    assert_eq!(errno(&[members.path(0)], Open::default()), Some(19));
    assert_eq!(errno(&["/dev/null"], Open::default()), Some(15));
    assert!(matches!(Store::open(&["a\0b"], Open::default()), Err(nvmepeer::Error::Argument(_))));
    let again = Create { page_bytes: PAGE, ..Create::default() };
    assert_eq!(Store::create(&members.both(), again).unwrap_err().errno(), Some(17));
    let store = Store::open(&members.both(), Open { read_only: true, ..Open::default() }).unwrap();
    assert!(store
        .alloc(1)
        .map(|slots| store.write(&[(slots[0], &[0; 4])]).is_err())
        .unwrap_or(true));
    assert_eq!(errno(&members.both(), Open::default()), Some(16));
    drop(store);
    let degraded = Open { degraded: true, ..Open::default() };
    assert_eq!(Store::open(&[members.path(1)], degraded).unwrap().info().unwrap().live, 2);
}

#[test]
#[should_panic(expected = "shorter than a page")]
fn short_memory_is_refused() {
    let members = Members::new("short");
    let store = members.open();
    let values = put(&store, &[1]);
    let _ = store.read(&mut [(values[0], &mut [0; 100])]);
}
