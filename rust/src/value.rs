// SPDX-License-Identifier: MIT OR GPL-2.0
//! Conversion of C structures and numbers to Rust types.
use core::ffi::{c_char, CStr};

/// Conversion from the type of a C field.
pub(crate) trait FromC<T> {
    fn from_c(value: T) -> Self;
}

impl FromC<u32> for u32 {
    fn from_c(value: u32) -> Self {
        value
    }
}

impl FromC<u64> for u64 {
    fn from_c(value: u64) -> Self {
        value
    }
}

impl FromC<u32> for bool {
    fn from_c(value: u32) -> Self {
        value != 0
    }
}

impl<const N: usize> FromC<[c_char; N]> for String {
    fn from_c(value: [c_char; N]) -> Self {
        text_in(&value)
    }
}

/// A string that the library owns.
///
/// # Safety
///
/// It must end with NUL, and be valid and constant for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> &'a str {
    // SAFETY: the caller ensures that the string is valid for `'a`.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?")
}

/// The string in a C array, up to its NUL.
pub(crate) fn text_in(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Defines the Rust enum of a C enum, with `Other` for values of later kernels.  Given the
/// library's function for the names, it implements `Display`.
macro_rules! numbers {
    ($(#[$about:meta])* $name:ident $(named by $text:ident)? { $($(#[$one_about:meta])* $one:ident = $number:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$one_about])* $one,)*
            /// A number that this version of the crate does not define.
            Other(u32),
        }

        impl crate::value::FromC<u32> for $name {
            fn from_c(value: u32) -> Self {
                match value {
                    $(crate::sys::$number => Self::$one,)*
                    other => Self::Other(other),
                }
            }
        }

        impl From<$name> for u32 {
            fn from(value: $name) -> u32 {
                match value {
                    $($name::$one => crate::sys::$number,)*
                    $name::Other(other) => other,
                }
            }
        }

        $(impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                // SAFETY: the library returns a literal for any number.
                f.pad(unsafe { crate::value::text(crate::sys::$text((*self).into())) })
            }
        })?
    };
}
pub(crate) use numbers;

/// Defines the Rust structure of a C structure that the library fills in, with its public
/// fields.
macro_rules! facts {
    ($(#[$about:meta])* $name:ident of $c:ident { $($(#[$field_about:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$field_about])* pub $field: $kind,)*
        }

        impl crate::value::FromC<crate::sys::$c> for $name {
            fn from_c(value: crate::sys::$c) -> Self {
                Self { $($field: crate::value::FromC::from_c(value.$field),)* }
            }
        }
    };
}
pub(crate) use facts;
