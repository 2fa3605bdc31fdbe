//! A caller's context that owns its texts, as a call takes it along beyond the memory of whoever made it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use callgate_core::args::SharedArgs;
use callgate_core::context::{CallContext, Mode, Scopes, SignedConsent};
use callgate_core::digest::Digest;
use callgate_core::policy::{ConsentGrant, GrantedArgs};
use callgate_core::time::Timestamp;

/// All texts in one piece of memory, and where each stands in it.
struct Owned {
    texts: String,
    tenant: Option<Range<usize>>,
    principal: Option<Range<usize>>,
    channel: Range<usize>,
    scopes: Range<usize>,
    request_id: Range<usize>,
    session: Option<Range<usize>>,
    parent: Option<Range<usize>>,
    ip: Option<Range<usize>>,
    user_agent: Option<Range<usize>>,
    depth: u8,
    mode: Mode,
    signature: Option<(Range<usize>, Range<usize>, Digest)>,
    grants: Vec<OwnedGrant>,
}

struct OwnedGrant {
    tool: Range<usize>,
    definition: Digest,
    tenant: Option<Range<usize>>,
    principal: Range<usize>,
    session: Option<Range<usize>>,
    granted_at: Timestamp,
    expires_at: Timestamp,
    uses_left: Option<u32>,
    arguments: OwnedGrantedArgs,
    provenance: Range<usize>,
}

enum OwnedGrantedArgs {
    Any,
    Exactly(Digest),
    Including(SharedArgs),
}

struct Borrowed<'a> {
    caller: CallContext<'a>,
    grants: Vec<ConsentGrant<'a>>,
}

mod cells {
    #![expect(clippy::mem_forget, reason = "the macro disarms its own drop guards with it")]

    use super::{Borrowed, Owned};
    use self_cell::self_cell;

    self_cell!(
        /// The texts, and the context that borrows them.
        pub(super) struct Cell {
            owner: Owned,
            #[covariant]
            dependent: Borrowed,
        }
    );
}

/// A context that owns its texts. Cheap to clone.
#[derive(Clone)]
pub struct CapturedContext(Arc<cells::Cell>);

impl CapturedContext {
    /// The context as the gate takes it.
    #[must_use]
    pub fn borrow(&self) -> CallContext<'_> {
        let Borrowed { caller, grants } = self.0.borrow_dependent();
        CallContext { grants, ..*caller }
    }
}

/// Copies everything. A grant for arguments of a kind that this crate does not know is left out: it covers nothing then.
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
        let mut keep = |text: &str| {
            let start = texts.len();
            texts.push_str(text);
            start..texts.len()
        };
        let owned = Owned {
            tenant: tenant.map(&mut keep),
            principal: principal.map(&mut keep),
            channel: keep(channel),
            scopes: keep(scopes.as_str()),
            request_id: keep(request_id),
            session: session.map(&mut keep),
            parent: parent.map(&mut keep),
            ip: ip.map(&mut keep),
            user_agent: user_agent.map(&mut keep),
            depth,
            mode,
            signature: signature.map(|SignedConsent { signer, tool, arguments }| (keep(signer), keep(tool), arguments)),
            grants: grants.iter().filter_map(|grant| own_grant(grant, &mut keep)).collect(),
            texts,
        };
        Self(Arc::new(cells::Cell::new(owned, borrow)))
    }
}

fn own_grant(grant: &ConsentGrant<'_>, mut keep: impl FnMut(&str) -> Range<usize>) -> Option<OwnedGrant> {
    let arguments = match grant.arguments {
        GrantedArgs::Any => OwnedGrantedArgs::Any,
        GrantedArgs::Exactly(digest) => OwnedGrantedArgs::Exactly(digest),
        GrantedArgs::Including(args) => OwnedGrantedArgs::Including(args.into()),
        _ => return None,
    };
    Some(OwnedGrant {
        tool: keep(grant.tool),
        definition: grant.definition,
        tenant: grant.tenant.map(&mut keep),
        principal: keep(grant.principal),
        session: grant.session.map(&mut keep),
        granted_at: grant.granted_at,
        expires_at: grant.expires_at,
        uses_left: grant.uses_left,
        arguments,
        provenance: keep(grant.provenance),
    })
}

fn borrow(owned: &Owned) -> Borrowed<'_> {
    let text = |range: &Range<usize>| owned.texts.get(range.clone()).unwrap_or_default();
    let optional = |range: &Option<Range<usize>>| range.as_ref().map(text);
    let caller = CallContext {
        tenant: optional(&owned.tenant),
        principal: optional(&owned.principal),
        channel: text(&owned.channel),
        scopes: Scopes::new(text(&owned.scopes)),
        request_id: text(&owned.request_id),
        session: optional(&owned.session),
        parent: optional(&owned.parent),
        depth: owned.depth,
        ip: optional(&owned.ip),
        user_agent: optional(&owned.user_agent),
        mode: owned.mode,
        signature: owned.signature.as_ref().map(|(signer, tool, arguments)| SignedConsent {
            signer: text(signer),
            tool: text(tool),
            arguments: *arguments,
        }),
        grants: &[],
    };
    let grants = owned.grants.iter().map(|grant| ConsentGrant {
        tool: text(&grant.tool),
        definition: grant.definition,
        tenant: optional(&grant.tenant),
        principal: text(&grant.principal),
        session: optional(&grant.session),
        granted_at: grant.granted_at,
        expires_at: grant.expires_at,
        uses_left: grant.uses_left,
        arguments: match &grant.arguments {
            OwnedGrantedArgs::Any => GrantedArgs::Any,
            OwnedGrantedArgs::Exactly(digest) => GrantedArgs::Exactly(*digest),
            OwnedGrantedArgs::Including(args) => GrantedArgs::Including(args.borrow()),
        },
        provenance: text(&grant.provenance),
    });
    Borrowed { caller, grants: grants.collect() }
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
