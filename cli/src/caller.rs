//! Who calls, as the command line says it.

use callgate_core::context::Mode;
use callgate_std::context::OwnedContext;

use crate::command_line::CallerArgs;

/// The context of a call. With nothing said of the caller it is the local user; as soon as something is, nothing is made up
/// (invariants A3, F2).
pub(crate) fn context(caller: &CallerArgs, request_id: &str, plan: bool) -> OwnedContext {
    let local = is_local(caller);
    let mut context = if local {
        OwnedContext::cli(request_id)
    } else {
        OwnedContext::new(caller.channel.as_deref().unwrap_or("cli"), request_id).with_scopes(&caller.scopes)
    };
    if let Some(principal) = &caller.principal {
        context = context.with_principal(principal.as_str());
    }
    if let Some(tenant) = &caller.tenant {
        context = context.with_tenant(tenant.as_str());
    }
    if let Some(session) = &caller.session {
        context = context.with_session(session.as_str());
    }
    context.with_mode(if plan { Mode::Plan } else { Mode::Execute })
}

/// The options that make the same caller again, each with a space before it.
pub(crate) fn options(caller: &CallerArgs) -> String {
    let mut text = String::new();
    let single = [
        ("--channel", &caller.channel),
        ("--principal", &caller.principal),
        ("--tenant", &caller.tenant),
        ("--session", &caller.session),
    ];
    let single = single.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    for (name, value) in single.chain(caller.scopes.iter().map(|scope| ("--scope", scope))) {
        text.push(' ');
        text.push_str(name);
        text.push(' ');
        text.push_str(&shell_word(value));
    }
    text
}

const fn is_local(caller: &CallerArgs) -> bool {
    caller.channel.is_none() && caller.principal.is_none() && caller.scopes.is_empty()
}

/// The text as one word of a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f2_nothing_is_made_up_once_something_is_said() {
        let caller = |caller: CallerArgs| {
            let context = context(&caller, "r", false);
            let context = context.borrow();
            (context.channel.to_owned(), context.principal.map(str::to_owned), context.scopes.as_str().to_owned())
        };
        assert_eq!(caller(CallerArgs::default()), ("cli".into(), Some("local-shell".into()), "*".into()));
        let web = CallerArgs { channel: Some("web".into()), ..CallerArgs::default() };
        assert_eq!(caller(web), ("web".into(), None, String::new()));
        let bob = CallerArgs { principal: Some("bob".into()), ..CallerArgs::default() };
        assert_eq!(caller(bob), ("cli".into(), Some("bob".into()), String::new()));
        let reader = CallerArgs { scopes: vec!["a".into(), "b".into()], ..CallerArgs::default() };
        assert_eq!(caller(reader), ("cli".into(), None, "a b".into()));
        // A tenant or a session says nothing of who calls.
        let tenant = CallerArgs { tenant: Some("t".into()), ..CallerArgs::default() };
        assert_eq!(caller(tenant).1.as_deref(), Some("local-shell"));
    }

    #[test]
    fn options_are_words_of_a_shell() {
        let caller = CallerArgs {
            channel: Some("web".into()),
            principal: Some("o'hara & co".into()),
            scopes: vec!["*".into(), "notes:read".into()],
            ..CallerArgs::default()
        };
        assert_eq!(options(&caller), r" --channel web --principal 'o'\''hara & co' --scope '*' --scope notes:read");
    }
}
