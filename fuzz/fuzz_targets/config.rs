#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| callgate::config::fuzz::config(data));
