//! The size of a call's state, beside what it carries (design 5): at most 256 bytes.

use callgate_core::args::Args;
use callgate_core::call::{
    Admitted, Announced, Asking, Authorized, Call, Cleared, Closed, Confirm, Confirmed, Ended, Executing, Facts, Live,
    Load, Loading, Permit, Redeeming, Requested, Resolved, Validated,
};
use callgate_core::context::CallContext;
use callgate_core::outcome::Outcome;
use callgate_core::policy::Decision;
use callgate_core::request::Envelope;
use callgate_core::step::Step;
use callgate_core::tool::{Tool, ToolSpec, Violation};

struct Probe;

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        const { &ToolSpec::new("probe", "A tool") }
    }

    fn validate(&self, _: Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
}

type C = &'static mut Envelope<'static>;
type T = &'static Probe;

const LIMIT: usize = 256;

macro_rules! sizes {
    ($($type:ty),+ $(,)?) => { [$((stringify!($type), size_of::<$type>())),+] };
}

#[test]
fn a_calls_state_is_small() {
    let sizes = sizes![
        Call<C, (), Requested>,
        Call<C, T, Resolved>,
        Call<C, T, Validated>,
        Call<C, T, Authorized>,
        Call<C, T, Admitted>,
        Call<C, T, Live>,
        Call<C, T, Confirmed>,
        Call<C, T, Cleared>,
        Call<C, T, Announced>,
        Load<C, T>,
        Loading<C, T>,
        Executing<C, T>,
        Ended<C, T>,
        Confirm<C, T>,
        Asking<C, T>,
        Redeeming<C, T>,
        Closed<C, T>,
        Outcome<C, T>,
        Step<C, T>,
    ];
    for (name, size) in &sizes {
        println!("{size:>5} {name}");
    }
    for (name, size) in sizes![CallContext<'static>, Envelope<'static>, Decision<&'static str>, Permit<'static, C, T>] {
        println!("{size:>5} {name}, for information");
    }
    let facts = size_of::<Facts>();
    println!("{facts:>5} Facts, which stay in the context");
    for (name, size) in &sizes {
        assert!(*size + facts <= LIMIT, "{name} has {size} bytes, and {facts} in its context");
    }
}
