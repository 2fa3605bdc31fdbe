#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| callgate_conformance::fuzz::redacted_arguments(data));
