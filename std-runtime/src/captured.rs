//! A caller's context that owns its texts, as a call takes it along beyond the memory of whoever made it.

use std::fmt;
use std::sync::Arc;

use callgate_core::args::SharedArgs;
use callgate_core::context::{CallContext, Mode, Scopes, SignedConsent};
use callgate_core::digest::Digest;
use callgate_core::policy::{ConsentGrant, GrantedArgs};
use callgate_core::time::Timestamp;

/// A context that owns its texts. Cheap to clone.
///
/// Every parked call holds one, so it is kept small: all texts stand in one piece of memory, and what few calls have is behind a
/// pointer.
#[derive(Clone)]
pub struct CapturedContext(Arc<Captured>);

struct Captured {
    /// All texts, one behind the other, in the order of their lengths.
    texts: Box<str>,
    tenant: Length,
    principal: Length,
    channel: Length,
    scopes: Length,
    request_id: Length,
    session: Length,
    parent: Length,
    ip: Length,
    user_agent: Length,
    depth: u8,
    mode: Mode,
    consents: Option<Box<Consents>>,
}

/// How long a text is, if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Length(u32);

impl Length {
    const NONE: Self = Self(u32::MAX);
}

/// Signature and grants.
struct Consents {
    signature: Option<OwnedSignature>,
    grants: cells::Grants,
}

struct OwnedSignature {
    signer: String,
    tool: String,
    arguments: Digest,
}

struct OwnedGrant {
    tool: String,
    definition: Digest,
    tenant: Option<String>,
    principal: String,
    session: Option<String>,
    granted_at: Timestamp,
    expires_at: Timestamp,
    uses_left: Option<u32>,
    arguments: OwnedGrantedArgs,
    provenance: String,
}

enum OwnedGrantedArgs {
    Any,
    Exactly(Digest),
    Including(SharedArgs),
}

mod cells {
    #![expect(clippy::mem_forget, reason = "the macro disarms its own drop guards with it")]

    use super::{ConsentGrant, OwnedGrant};
    use self_cell::self_cell;

    type List<'a> = Vec<ConsentGrant<'a>>;

    self_cell!(
        /// Grants, and the list of them that core takes.
        pub(super) struct Grants {
            owner: Vec<OwnedGrant>,
            #[covariant]
            dependent: List,
        }
    );
}

impl CapturedContext {
    /// The context as the gate takes it. Inlined, so that who looks at one part of it takes none of the others.
    #[must_use]
    #[inline]
    pub fn borrow(&self) -> CallContext<'_> {
        let captured = &*self.0;
        let mut rest: &str = &captured.texts;
        let mut next = |length: Length| {
            if length == Length::NONE {
                return None;
            }
            let (text, behind) = rest.split_at_checked(length.0 as usize)?;
            rest = behind;
            Some(text)
        };
        let consents = captured.consents.as_deref();
        // In the order in which they were kept.
        CallContext {
            tenant: next(captured.tenant),
            principal: next(captured.principal),
            channel: next(captured.channel).unwrap_or_default(),
            scopes: Scopes::new(next(captured.scopes).unwrap_or_default()),
            request_id: next(captured.request_id).unwrap_or_default(),
            session: next(captured.session),
            parent: next(captured.parent),
            ip: next(captured.ip),
            user_agent: next(captured.user_agent),
            depth: captured.depth,
            mode: captured.mode,
            signature: consents.and_then(|consents| consents.signature.as_ref()).map(OwnedSignature::borrow),
            grants: consents.map_or(&[], |consents| consents.grants.borrow_dependent()),
        }
    }
}

/// Copies everything. A grant for arguments of a kind that this crate does not know is left out: it covers nothing then. Texts of
/// 4 GiB and more together are left out too, so that no name in the copy fits its grammar and the gate refuses it.
impl From<&CallContext<'_>> for CapturedContext {
    fn from(context: &CallContext<'_>) -> Self {
        // Taken apart by name, so that a field added later is not left behind.
        let CallContext {
            tenant,
            principal,
            channel,
            scopes,
            request_id,
            session,
            parent,
            depth,
            ip,
            user_agent,
            mode,
            signature,
            grants,
        } = *context;
        let optional = [tenant, principal, session, parent, ip, user_agent];
        let length = optional.iter().flatten().map(|text| text.len()).sum::<usize>()
            + channel.len()
            + scopes.as_str().len()
            + request_id.len();
        let mut texts = String::with_capacity(length);
        let mut keep = |text: &str| match (u32::try_from(texts.len()), u32::try_from(text.len())) {
            (Ok(_), Ok(length)) if length != Length::NONE.0 => {
                texts.push_str(text);
                Length(length)
            }
            _ => Length::NONE,
        };
        let consents = (signature.is_some() || !grants.is_empty()).then(|| {
            let grants = grants.iter().filter_map(OwnedGrant::of).collect();
            Box::new(Consents {
                signature: signature.as_ref().map(OwnedSignature::of),
                grants: cells::Grants::new(grants, |grants| grants.iter().map(OwnedGrant::borrow).collect()),
            })
        });
        // In the order in which they are read.
        Self(Arc::new(Captured {
            tenant: tenant.map_or(Length::NONE, &mut keep),
            principal: principal.map_or(Length::NONE, &mut keep),
            channel: keep(channel),
            scopes: keep(scopes.as_str()),
            request_id: keep(request_id),
            session: session.map_or(Length::NONE, &mut keep),
            parent: parent.map_or(Length::NONE, &mut keep),
            ip: ip.map_or(Length::NONE, &mut keep),
            user_agent: user_agent.map_or(Length::NONE, &mut keep),
            depth,
            mode,
            consents,
            texts: texts.into(),
        }))
    }
}

impl OwnedSignature {
    fn of(signature: &SignedConsent<'_>) -> Self {
        let SignedConsent { signer, tool, arguments } = *signature;
        Self { signer: signer.to_owned(), tool: tool.to_owned(), arguments }
    }

    fn borrow(&self) -> SignedConsent<'_> {
        let Self { signer, tool, arguments } = self;
        SignedConsent { signer, tool, arguments: *arguments }
    }
}

impl OwnedGrant {
    fn of(grant: &ConsentGrant<'_>) -> Option<Self> {
        Some(Self {
            tool: grant.tool.to_owned(),
            definition: grant.definition,
            tenant: grant.tenant.map(str::to_owned),
            principal: grant.principal.to_owned(),
            session: grant.session.map(str::to_owned),
            granted_at: grant.granted_at,
            expires_at: grant.expires_at,
            uses_left: grant.uses_left,
            arguments: match grant.arguments {
                GrantedArgs::Any => OwnedGrantedArgs::Any,
                GrantedArgs::Exactly(digest) => OwnedGrantedArgs::Exactly(digest),
                GrantedArgs::Including(args) => OwnedGrantedArgs::Including(args.into()),
                _ => return None,
            },
            provenance: grant.provenance.to_owned(),
        })
    }

    fn borrow(&self) -> ConsentGrant<'_> {
        ConsentGrant {
            tool: &self.tool,
            definition: self.definition,
            tenant: self.tenant.as_deref(),
            principal: &self.principal,
            session: self.session.as_deref(),
            granted_at: self.granted_at,
            expires_at: self.expires_at,
            uses_left: self.uses_left,
            arguments: match &self.arguments {
                OwnedGrantedArgs::Any => GrantedArgs::Any,
                OwnedGrantedArgs::Exactly(digest) => GrantedArgs::Exactly(*digest),
                OwnedGrantedArgs::Including(args) => GrantedArgs::Including(args.borrow()),
            },
            provenance: &self.provenance,
        }
    }
}

impl fmt::Debug for CapturedContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.borrow().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_core::args::Args;
    use callgate_core::json::{KeySlot, Limits};

    #[test]
    fn p3_everything_travels_along() {
        let mut keys = [KeySlot::default(); 4];
        let args = Args::read(br#"{"path": "a"}"#, &mut keys, &Limits::DEFAULT).unwrap();
        let grant = ConsentGrant {
            tool: "fs.read",
            definition: Digest::of_bytes(b"d"),
            tenant: Some("t"),
            principal: "ada",
            session: Some("s"),
            granted_at: Timestamp::from_unix_millis(1),
            expires_at: Timestamp::from_unix_millis(2),
            uses_left: Some(3),
            arguments: GrantedArgs::Including(args),
            provenance: "asked once",
        };
        let grants = [grant, ConsentGrant { arguments: GrantedArgs::Any, session: None, ..grant }];
        let context = CallContext {
            tenant: Some("t"),
            session: Some("s"),
            parent: Some("r0"),
            depth: 3,
            ip: Some("192.0.2.1"),
            user_agent: Some("agent/1"),
            mode: Mode::Plan,
            signature: Some(SignedConsent { signer: "key-1", tool: "fs.read", arguments: Digest::of_bytes(b"a") }),
            grants: &grants,
            ..CallContext::web("r1", Some("ada"), Scopes::new("read write"))
        };
        let captured = CapturedContext::from(&context);
        let copy = CapturedContext::from(&captured.borrow());
        drop(captured);
        assert_eq!(format!("{:?}", copy.borrow()), format!("{context:?}"));
        let GrantedArgs::Including(kept) = copy.borrow().grants[0].arguments else { panic!("another grant") };
        assert_eq!(kept.sent(), args.sent());
    }
}
