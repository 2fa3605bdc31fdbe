//! A signature is a yes to exactly one call: the checks one by one, in their order.
#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use callgate_core::call::StoreFault;
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::time::Timestamp;
use callgate_signed::{
    Authorizer, Operation, OperationError, Presented, SecretKey, SignedRefusal, Signer, VerifyingKey,
};
use callgate_std::nonces::{MemoryNonces, NonceLedger};
use proptest::prelude::*;

fn ann() -> SecretKey {
    SecretKey::from_seed(&[1; 32]).unwrap()
}

fn eve() -> SecretKey {
    SecretKey::from_seed(&[2; 32]).unwrap()
}

const ISSUED: u64 = 1_800_000_000_000;
const ARGUMENTS: &str = r#"{"to":"bob","cents":5,"tags":["a","b"],"deep":{"x":1,"y":[{"k":1,"l":2}]}}"#;
const KEY: [u8; 32] = [7; 32];

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(ISSUED.checked_add_signed(millis).unwrap())
}

/// A ledger that counts who asks, and can be made to fail.
#[derive(Default)]
struct Watched {
    kept: MemoryNonces,
    asked: AtomicUsize,
    deaf: AtomicBool,
}

impl NonceLedger for Watched {
    fn spend(&self, nonce: Digest, now: Timestamp, until: Timestamp) -> Result<bool, StoreFault> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.deaf.load(Ordering::SeqCst) { Err(StoreFault) } else { self.kept.spend(nonce, now, until) }
    }
}

struct World {
    authorizer: Authorizer,
    nonces: Arc<Watched>,
}

impl World {
    fn new() -> Self {
        let nonces = Arc::new(Watched::default());
        let key = VerifyingKey::parse(&ann().public().unwrap()).unwrap();
        let signer = Signer { name: "ann's key".into(), key, tenant: None, principal: "ann".into() };
        Self { authorizer: Authorizer::new(vec![signer], "cm4070", nonces.clone()), nonces }
    }

    fn present(&self, presented: &Presented<'_>, now: Timestamp) -> Result<(), SignedRefusal> {
        let granted = self.authorizer.authorize(presented, &DigestKey::new(KEY), now)?;
        assert_eq!((granted.consent().signer, granted.consent().tool), ("ann's key", presented.tool));
        Ok(())
    }
}

fn payload() -> String {
    Operation::new("account.pay", ARGUMENTS, "cm4070", at(0), "nonce-0123456789abcdef").unwrap().canonical()
}

fn sign(payload: &str) -> String {
    ann().sign(payload.as_bytes()).unwrap()
}

fn call<'a>(payload: &'a str, signature: &'a str) -> Presented<'a> {
    Presented {
        tool: "account.pay",
        arguments: ARGUMENTS.as_bytes(),
        tenant: None,
        principal: Some("ann"),
        payload: payload.as_bytes(),
        signature,
    }
}

fn refused(change: impl FnOnce(&mut Presented<'_>), now: Timestamp) -> SignedRefusal {
    let world = World::new();
    let (payload, signature) = (payload(), sign(&payload()));
    let mut presented = call(&payload, &signature);
    change(&mut presented);
    let refusal = world.present(&presented, now).unwrap_err();
    assert_eq!(world.nonces.asked.load(Ordering::SeqCst), 0, "a refusal leaves the nonce: {refusal}");
    world.present(&call(&payload, &signature), at(0)).expect("the nonce is still good");
    refusal
}

#[test]
fn the_canonical_text_is_as_the_papers_say() {
    let expected = concat!(
        r#"{"arguments":{"cents":5,"deep":{"x":1,"y":[{"k":1,"l":2}]},"tags":["a","b"],"to":"bob"},"#,
        r#""host":"cm4070","issuedAt":"2027-01-15T08:00:00.000Z","nonce":"nonce-0123456789abcdef","operation":"account.pay"}"#
    );
    assert_eq!(payload(), expected);
    assert_eq!(Operation::parse(expected).unwrap().canonical(), expected);
}

#[test]
fn a4_a_signature_for_this_call_is_a_yes_once() {
    let world = World::new();
    let (payload, signature) = (payload(), sign(&payload()));
    assert_eq!(world.present(&call(&payload, &signature), at(0)), Ok(()));
    assert_eq!(world.present(&call(&payload, &signature), at(1)), Err(SignedRefusal::Used));
    // The same nonce under another signature of the same signer is the same nonce.
    let other = payload.replace("\"cents\":5", "\"cents\":6");
    let arguments = ARGUMENTS.replace("\"cents\":5", "\"cents\":6");
    let signature = sign(&other);
    let presented = Presented { arguments: arguments.as_bytes(), ..call(&other, &signature) };
    assert_eq!(world.present(&presented, at(1)), Err(SignedRefusal::Used));
}

#[test]
fn the_order_of_members_says_nothing_and_that_of_items_does() {
    let world = World::new();
    let (payload, signature) = (payload(), sign(&payload()));
    let swapped = r#"{"deep":{"y":[{"l":2,"k":1}],"x":1},"tags":["a","b"],"cents":5,"to":"bob"}"#;
    let presented = Presented { arguments: swapped.as_bytes(), ..call(&payload, &signature) };
    assert_eq!(world.present(&presented, at(0)), Ok(()));
    let items = ARGUMENTS.replace(r#"["a","b"]"#, r#"["b","a"]"#);
    let refusal = refused(|presented| presented.arguments = items.clone().leak().as_bytes(), at(0));
    assert!(matches!(refusal, SignedRefusal::OtherCall { .. }));
}

#[test]
fn a4_another_call_is_refused() {
    for refusal in [
        refused(|presented| presented.tool = "account.pay2", at(0)),
        refused(|presented| presented.arguments = b"{}", at(0)),
        refused(|presented| presented.arguments = b"{", at(0)),
    ] {
        assert_eq!(refusal, SignedRefusal::OtherCall { tool: "account.pay".into(), host: "cm4070".into() });
    }
    let elsewhere = payload().replace("cm4070", "cm4071");
    let signature = sign(&elsewhere);
    let refusal = World::new().present(&call(&elsewhere, &signature), at(0)).unwrap_err();
    assert!(matches!(&refusal, SignedRefusal::OtherCall { host, .. } if host == "cm4071"), "{refusal}");
}

#[test]
fn a2_a_key_speaks_for_its_principal_alone() {
    for refusal in [
        refused(|presented| presented.principal = Some("bob"), at(0)),
        refused(|presented| presented.principal = None, at(0)),
        refused(|presented| presented.tenant = Some("acme"), at(0)),
        refused(|presented| presented.signature = "", at(0)),
        refused(|presented| presented.signature = "AAAA", at(0)),
        refused(|presented| presented.payload = b"{}", at(0)),
    ] {
        assert_eq!(refusal, SignedRefusal::Unverified);
    }
    let payload = payload();
    let forged = eve().sign(payload.as_bytes()).unwrap();
    assert_eq!(World::new().present(&call(&payload, &forged), at(0)), Err(SignedRefusal::Unverified));
    let nobody = Authorizer::new(Vec::new(), "cm4070", Arc::new(MemoryNonces::new()));
    let signature = sign(&payload);
    let result = nobody.authorize(&call(&payload, &signature), &DigestKey::new(KEY), at(0));
    assert_eq!(result, Err(SignedRefusal::Unverified), "F2");
}

// A10, C4: the boundaries, one tick to either side.
#[test]
fn a10_it_counts_within_its_window_alone() {
    assert_eq!(refused(|_| {}, at(120_001)), SignedRefusal::Expired { seconds: 1 });
    assert_eq!(refused(|_| {}, at(300_000)), SignedRefusal::Expired { seconds: 180 });
    assert_eq!(refused(|_| {}, at(-5_001)), SignedRefusal::FromTheFuture);
    for now in [at(-5_000), at(0), at(119_999), at(120_000)] {
        let (payload, signature) = (payload(), sign(&payload()));
        assert_eq!(World::new().present(&call(&payload, &signature), now), Ok(()));
    }
}

#[test]
fn f1_a_ledger_that_does_not_answer_refuses() {
    let world = World::new();
    world.nonces.deaf.store(true, Ordering::SeqCst);
    let (payload, signature) = (payload(), sign(&payload()));
    assert_eq!(world.present(&call(&payload, &signature), at(0)), Err(SignedRefusal::Ledger));
}

#[test]
fn what_is_no_operation_is_refused_though_it_is_signed() {
    let whole = payload();
    let cases = [
        ("[]", OperationError::Malformed),
        ("\"text\"", OperationError::Malformed),
        ("not json", OperationError::Malformed),
        (r#"{"operation":"account.pay"}"#, OperationError::Malformed),
        (&whole.replace(r#""host""#, r#""hast""#), OperationError::Malformed),
        (&whole.replace(r#""host":"cm4070""#, r#""host":"cm4070","extra":1"#), OperationError::Malformed),
        (&whole.replace(r#""host":"cm4070""#, r#""host":"cm4070","host":"cm4070""#), OperationError::Malformed),
        (&whole.replace(r#""host":"cm4070""#, r#""host":"  ""#), OperationError::Host),
        (&whole.replace("nonce-0123456789abcdef", "short"), OperationError::Nonce),
        (&whole.replace("2027-01-15T08:00:00.000Z", "now"), OperationError::Time),
        (&whole.replace("2027-01-15T08:00:00.000Z", "1969-01-15T08:00:00.000Z"), OperationError::Time),
        (r#"{"arguments":7,"host":"h","issuedAt":"x","nonce":"n","operation":"o"}"#, OperationError::Malformed),
    ];
    for (payload, error) in cases {
        let signature = sign(payload);
        let refusal = World::new().present(&call(payload, &signature), at(0));
        assert_eq!(refusal, Err(SignedRefusal::Payload(error)), "{payload}");
    }
}

#[test]
fn keys_of_another_kind_are_refused() {
    for text in ["", "ssh-ed25519 AAAA", "ed25519:AAAA", "ed25519:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
        assert!(VerifyingKey::parse(text).is_err(), "{text}");
    }
    let bare = {
        use base64::Engine as _;
        let key = ssh_key_bytes(&ann().public().unwrap());
        format!("ed25519:{}", base64::engine::general_purpose::STANDARD.encode(key))
    };
    assert_eq!(VerifyingKey::parse(&bare).unwrap(), VerifyingKey::parse(&ann().public().unwrap()).unwrap());
}

/// The last 32 bytes of the blob of an OpenSSH key.
fn ssh_key_bytes(public: &str) -> Vec<u8> {
    use base64::Engine as _;
    let blob = public.split_whitespace().nth(1).unwrap();
    let blob = base64::engine::general_purpose::STANDARD.decode(blob).unwrap();
    blob[blob.len() - 32..].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // A4: any other bit of the payload or of the signature is no yes.
    #[test]
    fn a4_one_other_bit_is_another_text(at_bit in 0_usize..1_000_000, in_payload in any::<bool>()) {
        let (mut payload, signature) = (payload().into_bytes(), sign(&payload()));
        let mut signature = signature.into_bytes();
        let bytes = if in_payload { &mut payload } else { &mut signature };
        let bit = at_bit % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let text = String::from_utf8_lossy(&signature).into_owned();
        let same = text.split_whitespace().eq(sign(&self::payload()).split_whitespace());
        let presented = Presented { payload: &payload, ..call("", &text) };
        let result = World::new().present(&presented, at(0));
        prop_assert!(result.is_err() || !in_payload && same);
    }
}
