// SPDX-License-Identifier: MIT OR GPL-2.0
//! Link libnvmepeer, from where pkg-config finds it: PKG_CONFIG_PATH names another place.
use std::process::Command;

fn main() {
    for variable in ["PKG_CONFIG_PATH", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_STORE").is_some() {
        println!("cargo:rustc-link-lib=nvmepeer_store");
    }
    println!("cargo:rustc-link-lib=nvmepeer");
    // Without pkg-config, or without its file, the linker looks where it always does.
    let said = Command::new("pkg-config").args(["--libs-only-L", "libnvmepeer"]).output();
    let said = said.map(|said| said.stdout).unwrap_or_default();
    for folder in String::from_utf8_lossy(&said).split_whitespace() {
        println!("cargo:rustc-link-search=native={}", folder.trim_start_matches("-L"));
    }
}
