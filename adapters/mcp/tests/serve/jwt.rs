//! Tokens that an issuer signed.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use callgate_mcp::auth::{Authenticator, Issuer, IssuerError};
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use http::HeaderMap;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "https://gate.example/mcp";

fn signing(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn jwk(seed: u8, id: &str) -> Value {
    let x = URL_SAFE_NO_PAD.encode(signing(seed).verifying_key().as_bytes());
    json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": id, "x": x})
}

fn authenticator(keys: &[Value]) -> Authenticator {
    let set = json!({"keys": keys}).to_string();
    Authenticator::new().with_issuer(Issuer::new(ISSUER, AUDIENCE, None, set.as_bytes()).unwrap())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": now() + 600, "scope": "notes:read notes:write"})
}

fn token(seed: u8, id: Option<&str>, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = id.map(str::to_owned);
    encode(&header, claims, &EncodingKey::from_ed_der(signing(seed).to_pkcs8_der().unwrap().as_bytes())).unwrap()
}

/// Who a token stands for, with the scopes.
fn who(authenticator: &Authenticator, token: &str) -> Option<(String, String)> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let caller = authenticator.authenticate(&headers).ok()?;
    let context = caller.context("r");
    Some((context.principal?.to_owned(), context.scopes.as_str().to_owned()))
}

#[test]
fn a_good_token_is_its_subject_with_its_scopes() {
    let authenticator = authenticator(&[jwk(1, "one"), jwk(2, "two")]);
    let ann = |scopes: &str| Some(("ann".to_owned(), scopes.to_owned()));
    assert_eq!(who(&authenticator, &token(1, Some("one"), &claims())), ann("notes:read notes:write"));
    assert_eq!(who(&authenticator, &token(2, Some("two"), &claims())), ann("notes:read notes:write"));
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        who(&authenticator, &token(1, Some("one"), &claims))
    };
    assert_eq!(with("aud", json!(["https://other.example", AUDIENCE])), ann("notes:read notes:write"));
    assert_eq!(with("scope", json!(["a", "b"])), ann("a b"));
    // F2: an issuer can't give every scope, and what is no scope gives nothing.
    assert_eq!(with("scope", json!("* notes:read \u{fc}")), ann("notes:read"));
    assert_eq!(with("scope", Value::Null), ann(""));
}

#[test]
fn t2_what_is_wrong_with_a_token_keeps_it_out() {
    let one = authenticator(&[jwk(1, "one"), jwk(2, "two")]);
    for (what, value) in [
        ("iss", json!("https://evil.example")),
        ("iss", Value::Null),
        ("aud", json!("https://other.example")),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("sub", json!("")),
        ("sub", json!("a\nb")),
        ("sub", Value::Null),
        ("exp", json!(now() - 3_600)),
        ("exp", Value::Null),
        ("nbf", json!(now() + 3_600)),
    ] {
        let mut claims = claims();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(what);
        } else {
            claims[what] = value.clone();
        }
        assert_eq!(who(&one, &token(1, Some("one"), &claims)), None, "{what}: {value}");
    }
    // Another key, another key's name, no name where there is a choice.
    assert_eq!(who(&one, &token(3, Some("one"), &claims())), None);
    assert_eq!(who(&one, &token(1, Some("two"), &claims())), None);
    assert_eq!(who(&one, &token(1, Some("three"), &claims())), None);
    assert_eq!(who(&one, &token(1, None, &claims())), None);
    assert!(
        who(&authenticator(&[jwk(1, "one")]), &token(1, None, &claims())).is_some(),
        "without a choice none is needed"
    );
    // Changed, or signed with what anybody has.
    let good = token(1, Some("one"), &claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let mut mallory = claims();
    mallory["sub"] = json!("mallory");
    let payload = URL_SAFE_NO_PAD.encode(mallory.to_string());
    assert_eq!(who(&one, &format!("{header}.{payload}.{signature}")), None);
    for header in [
        json!({"alg": "none", "kid": "one"}),
        json!({"alg": "HS256", "kid": "one"}),
        json!({"alg": "RS256", "kid": "one"}),
    ] {
        let header = URL_SAFE_NO_PAD.encode(header.to_string());
        assert_eq!(who(&one, &format!("{header}.{payload}.")), None);
        assert_eq!(who(&one, &format!("{header}.{payload}.{signature}")), None);
    }
    let public = signing(1).verifying_key();
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("one".into());
    let confused = encode(&header, &claims(), &EncodingKey::from_secret(public.as_bytes()).unwrap()).unwrap();
    assert_eq!(who(&one, &confused), None, "a public key is no secret");
}

#[test]
fn f7_keys_that_cannot_be_trusted_keep_the_server_from_starting() {
    let issuer = |issuer, audience, set: Value| Issuer::new(issuer, audience, None, set.to_string().as_bytes());
    let symmetric = json!({"keys": [jwk(1, "one"), {"kty": "oct", "k": "c2VjcmV0", "kid": "two"}]});
    assert!(matches!(issuer(ISSUER, AUDIENCE, symmetric), Err(IssuerError::Symmetric(1))));
    assert!(matches!(issuer(ISSUER, AUDIENCE, json!({"keys": []})), Err(IssuerError::NoKeys)));
    assert!(matches!(issuer("", AUDIENCE, json!({"keys": [jwk(1, "one")]})), Err(IssuerError::Nameless)));
    assert!(matches!(issuer(ISSUER, "", json!({"keys": [jwk(1, "one")]})), Err(IssuerError::Nameless)));
    assert!(matches!(issuer(ISSUER, AUDIENCE, json!([])), Err(IssuerError::Unreadable(_))));
    let mut encrypts = jwk(1, "one");
    encrypts["use"] = json!("enc");
    assert!(matches!(issuer(ISSUER, AUDIENCE, json!({"keys": [encrypts]})), Err(IssuerError::NoKeys)));
}
