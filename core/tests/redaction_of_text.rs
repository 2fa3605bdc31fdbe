//! Redaction of free texts (invariants L1, L2; case R4), through the public API alone.

use callgate_core::redact::{Redaction, Secrets};

fn redacted(text: &str) -> String {
    Redaction::DEFAULT.text(text, Secrets::NONE).to_string()
}

/// Texts with what they become; `*` stands for the replacement.
#[track_caller]
fn check(table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let expected = expected.replace('*', "***REDACTED***");
        let found = redacted(text);
        if found != expected {
            wrong.push(format!("{text:?}\n  gives  {found:?}\n  and not {expected:?}"));
        }
        let again = redacted(&found);
        if again != found {
            wrong.push(format!("{text:?}\n  gives  {found:?}\n  then   {again:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn l2_names_with_values() {
    check(&[
        ("password=hunter2", "password=*"),
        ("password = hunter2 and more", "password = * and more"),
        ("password: hunter2, user: bob", "password: *, user: bob"),
        ("user=bob;password=hunter2;host=db", "user=bob;password=*;host=db"),
        ("PASSWORD='hunter 2' run", "PASSWORD='*' run"),
        ("{\"apiKey\":\"a b c\",\"max\":5}", "{\"apiKey\":\"*\",\"max\":5}"),
        ("{\"apiKey\" : 12345, \"max\": 5}", "{\"apiKey\" : *, \"max\": 5}"),
        ("{\"pwd\":12345}", "{\"pwd\":*}"),
        (r#"{\"token\":\"a\\\"b\",\"max\":5}"#, r#"{\"token\":\"*\",\"max\":5}"#),
        (r#"{"token":"a\"b\\","max":5}"#, r#"{"token":"*","max":5}"#),
        (r#"{"to\u006ben":"abc","max":5}"#, r#"{"to\u006ben":"*","max":5}"#),
        ("config['secret_key'] = 'x y'", "config['secret_key'] = '*'"),
        ("os.environ[\"API_KEY\"]=\"x\"", "os.environ[\"API_KEY\"]=\"*\""),
        ("API key: abc123", "API key: *"),
        ("Incorrect API key provided: abc123.", "Incorrect API key provided: *"),
        ("the client secret = abc", "the client secret = *"),
        ("--password hunter2 --user bob", "--password * --user bob"),
        ("--token=abc --user bob", "--token=* --user bob"),
        ("-token 'a b' x", "-token '*' x"),
        ("invalid token \"abc def\" at 3", "invalid token \"*\" at 3"),
        ("password => hunter2", "password => *"),
        ("password := hunter2", "password := *"),
        ("password->hunter2", "password->*"),
        ("password -> hunter2", "password -> *"),
        ("password==hunter2", "password==*"),
        ("<password>hunter 2</password>", "<password>*</password>"),
        ("password: Some(\"hunter 2\"), max: 5", "password: *, max: 5"),
        (
            "Login { user: \"bob\", password: Secret { inner: \"a b\" }, max: 5 }",
            "Login { user: \"bob\", password: *, max: 5 }",
        ),
        ("\"credentials\": {\"a\": [\"x}\", 2], \"b\": \"y\"}, \"max\": 5", "\"credentials\": *, \"max\": 5"),
        ("\"credentials\": {\"a\": \"\", \"b\": \"}\"}, \"max\": 5", "\"credentials\": *, \"max\": 5"),
        ("tokens: [\"a\", \"b\"], max: 5", "tokens: *, max: 5"),
        ("key: |\nprivate_key: |\n  abc\n  def\nother: 1", "key: |\nprivate_key: |\n  *\nother: 1"),
        ("password=ab,cd", "password=*"),
        ("password=ab,cd=1", "password=*,cd=1"),
        ("password=ab&cd", "password=*"),
        ("password=ab;cd ef", "password=* ef"),
        ("(token=abc)", "(token=*)"),
        ("\"token=abc\", x", "\"token=*\", x"),
        ("'it' password='it''s' x", "'it' password=* x"),
        ("password=ab'c d'ef g", "password=* g"),
        ("password=b\"c d\" g", "password=* g"),
        ("password=\"\"\"c d\"\"\" g", "password=\"\"\"*\"\"\" g"),
        ("\"\"password\"\":\"\"c\"\" g", "\"\"password\"\":\"\"*\"\" g"),
        ("password\u{ff1a}hunter2", "password\u{ff1a}*"),
        ("pass\u{200b}word: hunter2", "pass\u{200b}word: *"),
        ("password: \u{201c}a b\u{201d} c", "password: \u{201c}*\u{201d} c"),
        ("{\"/password\": \"a b\"}", "{\"/password\": \"*\"}"),
        (
            "env:\n- name: DB_PASSWORD\n  value: a b\n- name: X\n  value: y",
            "env:\n- name: DB_PASSWORD\n  value: * b\n- name: X\n  value: y",
        ),
        (
            "{\"name\":\"DB_PASSWORD\",\"value\":\"a b\"},{\"name\":\"X\",\"value\":\"y\"}",
            "{\"name\":\"DB_PASSWORD\",\"value\":\"*\"},{\"name\":\"X\",\"value\":\"y\"}",
        ),
        ("<add key=\"ApiKey\" value=\"a b\"/>", "<add key=\"ApiKey\" value=\"*\"/>"),
        ("args: [\"mysql\", \"--password\", \"a b\", \"-v\"]", "args: [\"mysql\", \"--password\", \"*\", \"-v\"]"),
        ("password=a%22b c", "password=* c"),
        ("password=\"a%22b c\" d", "password=\"*\" d"),
        (r#"{\"token\":\"abc"} rest"#, r#"{\"token\":\"*"} rest"#),
        ("'password=abc'x y", "'password=*'x y"),
        ("password=\"\"\"c \"d\" e\"\"\" g", "password=\"\"\"*\"\"\" g"),
        ("password: a#b {c}", "password: * {c}"),
        ("max, token: abc", "max, token: *"),
        ("password=\"my token: \" and more", "password=\"*\" and more"),
        ("username/password: bob/hunter2", "username/password: *"),
        ("password=", "password="),
        ("password: \"\" max", "password: \"\" max"),
        ("password=&x=1", "password=&x=1"),
        ("PASSWORD=\nUSER=bob", "PASSWORD=\nUSER=bob"),
        ("secret: \"unclosed and more", "secret: \"*"),
        ("&quot;password&quot;: &quot;hunter 2&quot;, x", "&quot;password&quot;: &quot;*&quot;, x"),
    ]);
}

#[test]
fn l2_headers_and_phrases_reach_to_the_end_of_the_line() {
    check(&[
        ("Authorization: Bearer abc\nHost: x", "Authorization: *\nHost: x"),
        ("authorization: Digest username=\"x\", response=\"y\"\r\nHost: x", "authorization: *\r\nHost: x"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz' https://x", "curl -H 'Authorization: *' https://x"),
        ("Authorization: a\\nb c", "Authorization: *"),
        ("curl -H \"X-Api-Key: a b\" https://x", "curl -H \"X-Api-Key: *\" https://x"),
        ("Cookie: a=b; c=d", "Cookie: *"),
        ("passphrase: correct horse battery staple", "passphrase: *"),
        ("got Bearer abcdef, sorry", "got Bearer *, sorry"),
        ("got bearer  abcdef", "got bearer  *"),
        ("got Bearer a/b+c== and", "got Bearer * and"),
        ("got Bearer in-valid.token/x and", "got Bearer * and"),
        ("Basic dXNlcjpwYXNz and", "Basic * and"),
        ("Proxy-Authorization=Basic dXNlcjpwYXNz", "Proxy-Authorization=*"),
    ]);
}

/// L2: where a value begins and ends, at the edges.
#[test]
fn l2_values_end_where_they_end() {
    check(&[
        ("passphrase: |\nnext", "passphrase: *\nnext"),
        ("\"token: abc\ndef\" x", "\"token: *\ndef\" x"),
        ("--password \nx", "--password \nx"),
        ("pass\u{ab}%3Dr", "pass\u{ab}%3D*"),
        ("pw>\".\"", "pw>\".\""),
        ("token:\\t", "token:\\t"),
        ("passphrase:\\n", "passphrase:\\n"),
        ("passphrase:\\r", "passphrase:\\r"),
        ("password=a,\"b", "password=*"),
        ("cookie:','\"", "cookie:'*'\""),
        ("&cookie:,\"", "&cookie:*\""),
        ("APIkey:-&quot;\"", "APIkey:*\""),
        ("pass=&\u{ff1d}", "pass=*"),
        ("pass=)d", "pass=*"),
        ("token=]\"", "token=]\""),
        ("pass=a\"\" x", "pass=*\"\" x"),
        // A quote within brackets hides the bracket that would close them.
        ("token:[\"],", "token:*"),
        ("token:[b\"],", "token:*"),
        ("pass=[')'", "pass=*"),
    ]);
}

/// L2: a value in brackets ends with them, whatever follows without a space.
#[test]
fn l2_what_follows_a_closed_value_is_read_from_its_beginning() {
    for (text, expected) in [("pass=[]token:x", "pass=*token:*"), ("pass={\u{ab}}=", "pass=*=")] {
        assert_eq!(redacted(text), expected.replace('*', "***REDACTED***"));
    }
}

/// L2: what is encoded up to three times is read, in names, separators and quotes alike.
#[test]
fn l2_encodings_are_read() {
    check(&[
        ("APIkey%3D12", "APIkey%3D*"),
        ("token%25253Dabc", "token%25253D*"),
        ("token%2525253Dabc", "token%2525253Dabc"),
        ("cookie:\"%2522", "cookie:\"*"),
        ("Authorization:%22%2522", "Authorization:%22*"),
        ("token%3d@\\u0022", "token%3d*\\u0022"),
        ("\\x41uthorization:b", "\\x41uthorization:*"),
        (r#"token%253Dabc\\\" x"#, r#"token%253D*\\\" x"#),
        ("//%2F%3A%40", "//%2F*%40"),
    ]);
}

#[test]
fn l2_urls() {
    check(&[
        ("https://user:pass@host/path?x=1", "https://*@host/path?x=1"),
        ("postgres://user:p%40ss@db:5432/x failed", "postgres://*@db:5432/x failed"),
        ("postgres://user:p@ss@db:5432/x failed", "postgres://*@db:5432/x failed"),
        ("postgres://user:p/a/ss@db:5432/x failed", "postgres://*@db:5432/x failed"),
        ("https://ghtoken@github.com/x", "https://*@github.com/x"),
        ("https:\\/\\/user:pass@host\\/x", "https:\\/\\/*@host\\/x"),
        ("next=https%3A%2F%2Fuser%3Apass%40host%2Fx", "next=https%3A%2F%2F*%40host%2Fx"),
        ("https://h/?api_key=abc&max=5#top", "https://h/?api_key=*&max=5#top"),
        ("https://h/?max=5&token=abc", "https://h/?max=5&token=*"),
        ("https://h/?token=abc&flag", "https://h/?token=*&flag"),
        ("https://h/?API%5FKEY=abc&max=5", "https://h/?API%5FKEY=*&max=5"),
        ("https://h/?%61pi_key=abc&max=5", "https://h/?%61pi_key=*&max=5"),
        ("https://h/?user[password]=abc&max=5", "https://h/?user[password]=*&max=5"),
        ("https://h/#access_token=abc&state=5", "https://h/#access_token=*&state=5"),
        ("https://h/?X-Amz-Signature=abc&x=1", "https://h/?X-Amz-Signature=*&x=1"),
        ("https://h/?sv=1&sig=a%2Bb%3D&se=2", "https://h/?sv=1&sig=*&se=2"),
        ("next=https%3A%2F%2Fh%3Ftoken%3Dabc%26max%3D5", "next=https%3A%2F%2Fh%3Ftoken%3D*%26max%3D5"),
        (
            "next=https%253A%252F%252Fh%253Ftoken%253Dabc%2526max%253D5",
            "next=https%253A%252F%252Fh%253Ftoken%253D*%2526max%253D5",
        ),
        ("https://h/?token=abc%20def", "https://h/?token=*"),
        ("//user:pass@host/x", "//*@host/x"),
        ("https://user:1%2Fb@host/x", "https://*@host/x"),
        ("https://u:p@h/x@y", "https://*@h/x@y"),
        ("//[::1]:x@h", "//*@h"),
    ]);
}

#[test]
fn l2_shapes_of_secrets() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow-IBA+/\nAKCA=\n-----END RSA PRIVATE KEY-----";
    check(&[
        ("key sk-abcdefghijklmnopqrst!", "key *!"),
        ("key sk-ant-api03-AbC_dEf-1234567890 x", "key * x"),
        ("(ghp_0123456789abcdefABCDEF0123456789abcd)", "(*)"),
        ("x\\nghp_0123456789abcdefABCDEF0123456789abcd", "x\\n*"),
        ("ghp_0123456789abcdefABCDEF0123456789abcd_tail-", "*"),
        ("github_pat_11ABCDEFG0123456789_abcdefgh", "*"),
        ("glpat-abcdefghij0123456789", "*"),
        ("xoxb-123456789012-abcdef", "*"),
        ("sk-abc12345 x", "* x"),
        ("AKIAIOSFODNN7EXAMPLE-tail_x y", "* y"),
        ("AKIAIOSFODNN7EXAMPLE and", "* and"),
        ("AIzaSyA-0123456789abcdefghijklmnopqrstuv x", "* x"),
        (&format!("jwt {jwt}, x"), "jwt *, x"),
        (&format!("{jwt}{jwt}"), "*"),
        (&format!("a\n{pem}\nb"), "a\n*\nb"),
        (&format!("{}b", pem.replace('\n', "\\n")), "*b"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", "*"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nMIIE\n-----END PGP PRIVATE KEY BLOCK----- x", "* x"),
        // A last line that breaks off is none, and does not part what stands behind it from its name.
        ("-----BEGIN EC PRIVATE KEY-----\nMIIE\n-----END EC PRIVATE KE password=hunter2", "*"),
        ("-----BEGIN EC PRIVATE KEY-----\nMIIE\n-----END EC PRIVATE KEY--- password=hunter2", "*"),
        ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "*"),
    ]);
}

/// L2: a token of each service is found from the fewest characters on that one has, and a shorter word is none.
#[test]
fn l2_tokens_of_services_are_told_by_their_beginning() {
    for (prefix, least) in [
        ("sk-", 16),
        ("sk_live_", 8),
        ("sk_test_", 8),
        ("shpat_", 16),
        ("shpss_", 16),
        ("sq0csp-", 16),
        ("ghp_", 16),
        ("gho_", 16),
        ("ghu_", 16),
        ("ghs_", 16),
        ("ghr_", 16),
        ("github_pat_", 16),
        ("glpat-", 16),
        ("gsk_", 24),
        ("xoxb-", 8),
        ("xapp-", 8),
        ("xai-", 24),
        ("AIza", 24),
        ("AGE-SECRET-KEY-", 16),
        ("ATATT", 24),
        ("SG.", 24),
        ("dop_v1_", 24),
        ("dckr_pat_", 16),
        ("hf_", 24),
        ("hvs.", 16),
        ("lin_api_", 16),
        ("npm_", 24),
        ("pypi-", 24),
        ("rk_live_", 8),
        ("rk_test_", 8),
        ("r8_", 24),
        ("whsec_", 8),
        ("ya29.", 16),
        ("AKIA", 16),
        ("ASIA", 16),
    ] {
        let word = |letters: usize| format!("a {prefix}{} b", "X".repeat(letters));
        assert_eq!(redacted(&word(least)), "a ***REDACTED*** b", "{prefix}");
        assert_eq!(redacted(&word(least - 1)), word(least - 1), "{prefix}");
        // Digits make no token of a word that is too short, but for those of one service, of which there are short ones.
        if !matches!(prefix, "sk-" | "AKIA" | "ASIA") {
            let digits = word(least - 1).replace('X', "7");
            assert_eq!(redacted(&digits), digits);
        }
    }
    // What begins within a word is no token of a service whose tokens are short words otherwise.
    for prefix in ["sk-", "gsk_", "hf_", "r8_", "whsec_"] {
        let within = format!("a task{prefix}{} b", "X".repeat(24));
        assert_eq!(redacted(&within), within);
        assert_eq!(redacted(&format!("a.{prefix}{} b", "X".repeat(24))), "a.***REDACTED*** b", "{prefix}");
    }
}

/// L2: what follows the name of a scheme, if it is no word of a sentence; and tokens in three parts.
#[test]
fn l2_credentials_are_told_from_words() {
    check(&[
        ("basic 123456", "basic *"),
        ("basic 12345", "basic 12345"),
        ("basic passph", "basic passph"),
        ("basic Bearer", "basic Bearer"),
        ("basic passphRase", "basic *"),
        ("basic passph=", "basic *"),
        ("Bearer({", "Bearer({"),
        ("eyJab1de.abcde", "*"),
        ("eyJab1de.a", "eyJab1de.a"),
        ("eyJ.abcde.", "eyJ.abcde."),
        ("pass\u{201d}->x", "pass\u{201d}->x"),
    ]);
}

/// L2: the coarse way misses no token that the fine way knows for being short.
#[test]
fn l2_the_coarse_way_finds_short_tokens() {
    for text in [
        "sk-live-4711",
        "a sk-012341p_0123\0b",
        "xoxb-12345678901",
        "xapp-1234abcd",
        "whsec_1234abcd",
        "eyJab1de.abcde",
    ] {
        assert_ne!(redacted(text), text, "the fine way finds it");
        assert_eq!(Redaction::COARSE.text(text, Secrets::NONE).to_string(), "***REDACTED***", "{text}");
    }
    for text in ["task-force", "2026-01-01T00:00", "192.168.100.1", "whsec is short", "eye of Jo"] {
        assert_eq!(Redaction::COARSE.text(text, Secrets::NONE).to_string(), text);
    }
}

/// L2: a name ends for the coarse way where it ends for the fine one: at separators, spaces and quotes beyond ASCII, too.
#[test]
fn l2_the_coarse_way_ends_names_where_the_fine_way_does() {
    for text in [
        "pass\u{ff1d}letmein",
        r"x\npass=letmein",
        r"x\\\\ncvc:n",
        r"\tauth: letmein",
        r"a\rpass=letmein",
        "auth\u{ff1a}letmein",
        "a \u{201c}pass\u{201d}:\u{201c}letmein\u{201d}",
        "pre\u{a0}pass\u{3000}=letmein",
    ] {
        assert_ne!(redacted(text), text, "the fine way finds it");
        assert_eq!(Redaction::COARSE.text(text, Secrets::NONE).to_string(), "***REDACTED***", "{text}");
    }
}

/// L2: a name of three words is one for the coarse way, too.
#[test]
fn l2_the_coarse_way_finds_names_of_three_words() {
    for text in
        ["pre shared key: letmein", "set one time code=letmein", "two factor code = letmein", "p rivate key=-END -"]
    {
        assert_ne!(redacted(text), text, "the fine way finds it");
        assert_eq!(Redaction::COARSE.text(text, Secrets::NONE).to_string(), "***REDACTED***", "{text}");
    }
    for text in ["a shared thing: key", "shared, by one key: letmein", "at one time the code: letmein"] {
        assert_eq!(Redaction::COARSE.text(text, Secrets::NONE).to_string(), text);
    }
}

/// Redaction is no "drop all": what is no secret stays, byte for byte.
#[test]
fn harmless_texts_stay_as_they_are() {
    for text in [
        "",
        "plain words, and more: of them",
        "max_tokens=5, total tokens: 512, tokens_used: 3",
        "author: Jane; authority=none",
        "src/auth/token.rs:12:5: expected `,`",
        "cat: /etc/passwd: No such file or directory",
        "callgate::token::parse failed at 3",
        "the password is required; token expired",
        "https://example.com:8080/path/@user?x=1&y=2#z",
        "see https://example.com/a:b@c and mail bob@example.com",
        "http://[fe80::a]:8080/x@y",
        "see //foo@bar",
        "xoxoxoxoxoxoxoxo",
        "task-force sk-learn risk-assessment-2024",
        "Bearer token is missing; Basic usage; bearer authentication",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "eyJ is how it starts. eyJabc.",
        "100% of 50%20 C:\\new\\table \\u0041 &amp; x",
        "{\"path\":\"notes.txt\",\"max\":5,\"list\":[1,2,{\"a\":null}]}",
        "Missing required scope for tool 'x'. Need one of: {a, b} \u{2014} context has: {(none)}.",
        "\u{5bc6}\u{7801} r\u{e9}sum\u{e9} \u{1f600} \u{202e}",
        "// comment: user@host and // more",
        "secretary: Bob, keyboard=us, monkey: 1",
        "\"/etc/passwd\": No such file",
        "columns: [\"password\", \"email\"], the value: 5",
    ] {
        assert_eq!(redacted(text), text);
    }
    let base64 = "QUJDREVG".repeat(40);
    let text = format!("{base64}== is harmless, {base64}: too");
    assert_eq!(redacted(&text), text);
    assert_eq!(redacted(&format!("{base64}_password=x")), format!("{base64}_password=***REDACTED***"));
}

/// The way of firmware: all or nothing.
#[test]
fn l2_the_coarse_way_keeps_plain_texts_only() {
    let coarse = |text: &str| Redaction::COARSE.text(text, Secrets::NONE).to_string();
    for text in [
        "",
        "valve 3 does not move: no pressure (0.2 bar)",
        "file notes.txt not found",
        "max_tokens is 5; the author is Jane",
        "see https://example.com/a?b=1 or mail bob@example.com",
        "5% a day is 5%a!",
        "internationalization of keyboards",
        "Internationalization of keyboards",
        "\u{5bc6}\u{7801} r\u{e9}sum\u{e9}",
    ] {
        assert_eq!(coarse(text), text);
    }
    for text in [
        "password=x",
        "the password is wrong",
        "send auth",
        "API key x",
        "got Bearer x",
        "private\nkey",
        "https://u:p@h",
        "https://ghtoken@h",
        "sk-abcdefghijk1lmno",
        "a%41b",
        "\\u0061",
        "\\x61",
        "0123456789abcdef01234567",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln",
    ] {
        assert_eq!(coarse(text), "***REDACTED***", "{text}");
    }
    // A word that is cut may be the beginning of anything.
    for (limit, expected) in [(6, "plain [cut: 11 bytes in all]"), (7, "***REDACTED***"), (11, "plain words")] {
        let cut = Redaction::COARSE.with_text_limit(limit).text("plain words", Secrets::NONE).to_string();
        assert_eq!(cut, expected);
    }
}

/// F5: honest texts stay within bounds up to the limit, and beyond them all is replaced.
#[test]
fn f5_bounds() {
    for line in [
        "the quick brown fox, jumps over: the lazy dog (or not). ",
        "{\"path\":\"notes.txt\",\"max\":5,\"list\":[1,2,{\"a\":null}],\"k\":\"a \\\"b\\\" c\"},\n",
        "2024-01-01T00:00:00Z INFO callgate::token::parse{id=5}: https://example.com:8080/a/b?x=1&y=%20z done\n",
        "\u{5bc6}\u{7801}\u{ff0c}\u{1f600} r\u{e9}sum\u{e9} ",
        "fn main() { let x = vec![\"a\", 'b', `c`]; assert!(x[0] == y && z <= 5); } // a/b\n",
        "x",
        "a://b:c/",
    ] {
        let text = line.repeat(8192 / line.len());
        assert_eq!(redacted(&text), text);
        // Nor does a long value make the search give up.
        let json = format!("{{\"max\":5,\"secret\":{text:?}}}");
        assert!(redacted(&json).starts_with("{\"max\":5,\"secret\":\"***REDACTED***"));
    }
    assert_eq!(redacted(&"x".repeat(8192)), "x".repeat(8192));
    assert_eq!(redacted(&"x ".repeat(4097)), "x ".repeat(4096) + "[cut: 8194 bytes in all]");
    let pairs = |count: usize| "pwd=x\n".repeat(count);
    assert_eq!(redacted(&pairs(32)), "pwd=***REDACTED***\n".repeat(32));
    assert_eq!(redacted(&pairs(33)), "***REDACTED***");
    let keys = "-----BEGIN PRIVATE KEY-----\n".repeat(200);
    assert_eq!(redacted(&format!("keep {keys}")), "keep ***REDACTED***");
    // A text that was built to be expensive is not given up half-way.
    let dear = "token=".repeat(1000);
    assert_eq!(redacted(&format!("keep {dear}\npassword=x")), "***REDACTED***");
}

/// S5, F5: a text that was built to be read again and again comes to an end, wherever in it the bound is met; then all is replaced.
#[test]
fn s5_a_text_that_is_read_again_and_again_comes_to_an_end() {
    let pieces = [
        "authstring=auths=",
        "auth=",
        "key: ",
        "=",
        "a.b=",
        "token\"",
        "eyJ.",
        "[{(",
        "'",
        "%3D",
        "\\\"",
        "-",
        "://",
        "Bearer ",
    ];
    let mut replaced = 0;
    for one in pieces {
        for other in pieces {
            for times in [9, 81] {
                let text = [one.repeat(times), other.repeat(times), [one, other].concat().repeat(times)].concat();
                replaced += u32::from(redacted(&text) == "***REDACTED***");
            }
        }
    }
    assert!(replaced > 50, "{replaced} texts met the bound");
}

/// F5: slashes that are searched in vain are searched again where the text is cut behind them.
#[test]
fn f5_what_is_cut_in_a_url_may_be_a_password() {
    let text = Redaction::DEFAULT.with_text_limit(12).text("https:///e(=a", Secrets::NONE).to_string();
    assert_eq!(text, "https:///***REDACTED***[cut: 13 bytes in all]");
}

/// F5: wherever a text is cut, no part of a secret is left before the cut, though its end can't be seen.
#[test]
fn f5_no_cut_shows_a_part_of_a_secret() {
    for text in [
        "x password=QQQQQ x",
        "x \"X-Api-Key: QQ QQ QQ\" x",
        "x invalid token \"QQ QQ\" x",
        "x https://user:QQQQ@h/ x",
        "x https://QQQQ@h/ x",
        "x https://h/?token=QQQQ&a=1 x",
        "x ghp_QQQQQQQQQQQQQQQQQQQQ x",
        "x sk-QQQQQQQQQQQQQQQQQQQQ x",
        "x AKIAQQQQQQQQQQQQQQQQ x",
        "x eyJQQQQQQ.QQQQQQ.QQQQ x",
        "x Bearer QQQQ x",
        "x Basic QQQQQQQQ x",
        "x -----BEGIN PRIVATE KEY-----\nQQQQ\n-----END PRIVATE KEY-----",
        "{\"token\": [\"QQ\", {\"a\": \"QQ\"}], \"max\": 5}",
        "x passphrase: QQ QQ",
        "<password>QQ QQ</password>",
        "{\"name\":\"API_KEY\",\"value\":\"QQ QQ\"}",
        "\u{e9}\u{e9} token: \u{5bc6}QQ\u{e9}Q",
    ] {
        for limit in 0..=text.len() {
            for redaction in [Redaction::DEFAULT, Redaction::COARSE] {
                let output = redaction.with_text_limit(limit as u32).text(text, Secrets::NONE).to_string();
                assert!(!output.contains('Q'), "{output} from {text} cut at {limit}");
            }
        }
    }
}

/// What a host asks about a name is what is done to its value; the rules show what they are set to and no text.
#[test]
fn l2_a_host_can_ask_what_is_sensitive() {
    let rules = Redaction::DEFAULT.with_names(&["pin"]).with_text_limit(77);
    for (name, sensitive) in [("password", true), ("PIN", true), ("path", false), ("", false)] {
        assert_eq!(rules.is_sensitive(name), sensitive, "{name}");
    }
    assert!(!Redaction::DEFAULT.is_sensitive("pin"));
    let shown = format!("{rules:?}");
    assert!(shown.contains("pin") && shown.contains("77"), "{shown}");
    let text = rules.text("password=hunter2", Secrets::NONE);
    assert_eq!(format!("{text:?}"), "RedactedText(password=***REDACTED***)");
    assert_eq!(format!("{:?}", Secrets::NONE), "Secrets(..)");
}
