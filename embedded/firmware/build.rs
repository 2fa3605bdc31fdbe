//! Puts the memory map of the target's board where the linker looks, wherever cargo is started from.
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rustc-check-cfg=cfg(microbit)");
    let microbit = env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv6m"));
    let map = if microbit { "memory/nrf51822.x" } else { "memory/stm32f405.x" };
    if microbit {
        println!("cargo::rustc-cfg=microbit");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::copy(map, out.join("memory.x"))?;
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rerun-if-changed=memory");
    Ok(())
}
