//! The pages: plain HTML with forms, complete without scripts and without anything from elsewhere.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callgate_std::confirmations::PendingApproval;
use callgate_std::render::approver;
use sha2::{Digest as _, Sha256};

use super::super::request;
use super::door::Session;

/// Takes the code out of the address, where no server and no log sees it, and puts it into the form.
const SCRIPT: &str = "const h=location.hash.slice(1);if(h){history.replaceState(null,'',location.pathname);\
                      document.getElementById('code').value=h;document.getElementById('login').submit()}";
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
                     pre{font:14px/1.45 ui-monospace,monospace;background:#f6f6f4;border:1px solid #ccc;padding:.8rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}\
                     section{border-top:2px solid #222;margin-top:2rem}dt{float:left;width:7rem;color:#666}dd{margin:0 0 0 7.5rem}\
                     form{display:inline-block;margin:0 1.5rem .5rem 0}button{font:inherit;padding:.3rem 1.2rem}\
                     input[type=text]{font:14px ui-monospace,monospace;width:24rem;max-width:100%}.well{color:#075}.ill{color:#a00}.warn{color:#850}";

/// What pages may load and do: their own style, the script above, and forms to this server.
pub(super) fn content_policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// A text in HTML.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            c => f.write_char(c),
        })
    }
}

fn page(body: &str, script: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>callgate approvals</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body><h1>callgate approvals</h1>{body}{script}</body></html>"
    )
}

/// The page that asks for the code.
pub(super) fn login(wrong: bool) -> String {
    let wrong =
        if wrong { "<p class=\"ill\" id=\"message\">That is not the code, or it was used before.</p>" } else { "" };
    let body = format!(
        "{wrong}<form id=\"login\" method=\"post\" action=\"/login\"><p><label>The code that the terminal shows<br>\
         <input type=\"text\" id=\"code\" name=\"code\" autocomplete=\"off\" required autofocus></label></p><button>Come in</button></form>"
    );
    page(&body, &format!("<script>{SCRIPT}</script>"))
}

/// A page that only says something.
pub(super) fn notice(text: &str) -> String {
    page(&format!("<p class=\"ill\" id=\"message\">{}</p><p><a href=\"/\">Back</a></p>", Escaped(text)), "")
}

/// What waits.
pub(super) fn waiting(requests: &[PendingApproval], session: &mut Session) -> String {
    let mut body = String::new();
    if let Some((text, well)) = session.message.take() {
        let class = if well { "well" } else { "ill" };
        // A string takes everything.
        let _ = write!(body, "<p class=\"{class}\" id=\"message\">{}</p>", Escaped(&text));
    }
    let count = match requests.len() {
        0 => "Nothing waits that this approver could decide.".to_owned(),
        1 => "1 request waits.".to_owned(),
        count => format!("{count} requests wait."),
    };
    let _ = write!(body, "<p>{count} <a href=\"/\" id=\"again\">Look again</a></p>");
    for request in requests {
        one(request, &session.form, &mut body);
    }
    page(&body, "")
}

fn one(request: &PendingApproval, form: &str, out: &mut String) {
    let ticket = request.ticket;
    let _ = write!(out, "<section id=\"r{ticket}\"><h2>{}</h2><dl>", Escaped(&request.tool));
    for (name, value) in request::about(request) {
        let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", Escaped(&value));
    }
    let _ = write!(out, "</dl><pre>{}</pre>", Escaped(&request.summary));
    let whole = approver::is_whole(&request.summary);
    let digest = approver::digest_of(&request.summary).map(|digest| digest.to_string()).unwrap_or_default();
    // D2: what can't be read here is approved by whoever has read it elsewhere and names its digest.
    let seen = if whole {
        format!(
            "<input type=\"hidden\" name=\"digest\" value=\"{digest}\"><label><input type=\"checkbox\" required> I have read it</label> "
        )
    } else {
        "<p class=\"warn\">Not all of it can be shown. Look at it elsewhere, and give the digest of its arguments:</p>\
         <input type=\"text\" name=\"digest\" autocomplete=\"off\" required> "
            .to_owned()
    };
    for (verdict, label, more) in [("approve", "Approve", seen.as_str()), ("deny", "Deny", "")] {
        let _ = write!(
            out,
            "<form class=\"{verdict}\" method=\"post\" action=\"/decide\"><input type=\"hidden\" name=\"form\" value=\"{form}\">\
             <input type=\"hidden\" name=\"ticket\" value=\"{ticket}\"><input type=\"hidden\" name=\"verdict\" value=\"{verdict}\">\
             {more}<button>{label}</button></form>"
        );
    }
    out.push_str("</section>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d5_nothing_of_a_request_is_markup() {
        assert_eq!(Escaped("<b a='\"'>&").to_string(), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        assert!(notice("<script>").contains("&lt;script&gt;"));
    }

    #[test]
    fn pages_need_nothing_from_elsewhere() {
        let policy = content_policy();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for page in [login(true), notice("x")] {
            assert!(!page.contains("http") && !page.contains("src="), "{page}");
        }
    }
}
