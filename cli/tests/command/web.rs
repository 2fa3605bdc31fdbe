//! The page of `approvals watch --web`, spoken to as browsers and others would.
#![cfg(feature = "web")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use crate::world::World;

const CONFIG: &str = "[tools.\"fs.write\"]\nconfirm = \"approver\"\napprover_scope = \"files:approve\"\n";

/// A page that is served, until it is dropped.
struct Page {
    child: Child,
    port: u16,
    code: String,
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Page {
    fn of(world: &World) -> Self {
        let args = ["approvals", "watch", "--web", "--principal", "boss", "--scope", "files:approve"];
        let mut child = world.start(&args);
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says where");
        let (address, code) = line.trim().split_once("/#").expect("an address with a code");
        let port = address.strip_prefix("http://127.0.0.1:").expect("this machine alone").parse().expect("a port");
        Self { child, port, code: code.to_owned() }
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it is served");
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        let port = self.port;
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n"))
    }

    fn post(&self, path: &str, headers: &str, form: &str) -> Answer {
        let (port, length) = (self.port, form.len());
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n{headers}\r\n{form}"
        ))
    }

    fn own(&self) -> String {
        format!("Origin: http://127.0.0.1:{}\r\nSec-Fetch-Site: same-origin\r\n", self.port)
    }

    /// Comes in, and gives the headers of a form of this page.
    fn login(&self) -> String {
        let answer = self.post("/login", &self.own(), &format!("code={}", self.code));
        assert_eq!(answer.status, 303, "{}", answer.head);
        let cookie = answer.head.split("set-cookie: ").nth(1).expect("a cookie");
        assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
        format!("{}Cookie: {}\r\n", self.own(), cookie.split(';').next().expect("a value"))
    }
}

/// The value of a field of the first form of this kind.
fn field(page: &str, form: &str, name: &str) -> String {
    let form = page.split(&format!("<form class=\"{form}\"")).nth(1).expect("a form");
    let value = form.split(&format!("name=\"{name}\" value=\"")).nth(1).expect("a field");
    value.split('"').next().expect("a value").to_owned()
}

fn ask(world: &World, arguments: &str) -> String {
    let asked = world.call(&["fs.write", arguments, "--json"]);
    assert_eq!(asked.status, 4, "{}", asked.err);
    asked.json()["data"]["confirm_token"].as_str().expect("a token").to_owned()
}

#[test]
fn a_browser_comes_in_once_and_decides() {
    let world = World::with_config(CONFIG);
    let token = ask(&world, r#"{"path":"a.txt","content":"<b>hi</b>\n\u202e"}"#);
    let page = Page::of(&world);
    let first = page.get("/", "");
    assert!(
        first.status == 200 && first.body.contains("id=\"code\"") && !first.body.contains("a.txt"),
        "{}",
        first.body
    );
    for header in ["content-security-policy: default-src 'none'", "x-frame-options: deny", "cache-control: no-store"] {
        assert!(first.head.contains(header), "{header}: {}", first.head);
    }
    assert_eq!(page.post("/login", &page.own(), "code=nix").status, 403);
    let own = page.login();
    assert_eq!(page.post("/login", &page.own(), &format!("code={}", page.code)).status, 403, "the code works once");
    let shown = page.get("/", &own).body;
    for text in ["&lt;b&gt;hi&lt;/b&gt;\\n", "\\u{202e}", "asked by", "local-shell through cli", "I have read it"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert!(!shown.contains("<b>"), "{shown}");
    let form = |verdict: &str| {
        let part = |name| field(&shown, verdict, name);
        format!("form={}&ticket={}&verdict={verdict}", part("form"), part("ticket"))
    };
    // D1: what is approved is what was shown.
    let without = page.post("/decide", &own, &form("approve"));
    assert_eq!(without.status, 303);
    assert!(page.get("/", &own).body.contains("Not approved"));
    let approve = format!("{}&digest={}", form("approve"), field(&shown, "approve", "digest"));
    assert_eq!(page.post("/decide", &own, &approve).status, 303);
    let after = page.get("/", &own).body;
    assert!(after.contains("Approved: it can run now, once.") && after.contains("Nothing waits"), "{after}");
    assert!(!page.get("/", &own).body.contains("Approved"), "said once");
    assert_eq!(page.post("/decide", &own, &form("deny")).status, 303);
    assert!(page.get("/", &own).body.contains("FORBIDDEN"), "A9: the first decision stands");
    world.call(&["fs.write", "--confirm", &token]).ok();
    let records = world.records();
    let decided: Vec<_> = records.iter().filter(|record| record["kind"] == "decision").collect();
    assert_eq!(decided[0]["principal"], "boss");
}

// T1, and what guards forms: each thing that is missing or foreign alone refuses, and nothing is decided.
#[test]
fn t1_nobody_else_decides() {
    let world = World::with_config(CONFIG);
    let token = ask(&world, r#"{"path":"a.txt","content":"hi"}"#);
    let page = Page::of(&world);
    let own = page.login();
    let shown = page.get("/", &own).body;
    let part = |name| field(&shown, "approve", name);
    let form = format!("form={}&ticket={}&verdict=approve&digest={}", part("form"), part("ticket"), part("digest"));
    let cookie = own.lines().find(|line| line.starts_with("Cookie")).expect("a cookie").to_owned();
    let port = page.port;
    let origin = format!("Origin: http://127.0.0.1:{port}");
    for headers in [
        format!("{cookie}\r\n"),
        format!("{cookie}\r\nOrigin: null\r\n"),
        format!("{cookie}\r\nOrigin: http://evil.test\r\n"),
        format!("{cookie}\r\nOrigin: http://localhost:{port}\r\n"),
        format!("{cookie}\r\n{origin}\r\nSec-Fetch-Site: cross-site\r\n"),
        format!("{origin}\r\n"),
        format!("{origin}\r\nCookie: callgate-{port}=00000000000000000000000000000000\r\n"),
    ] {
        assert_eq!(page.post("/decide", &headers, &form).status, 403, "{headers}");
    }
    let foreign_host = format!(
        "POST /decide HTTP/1.1\r\nHost: evil.test:{port}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n{cookie}\r\nOrigin: http://evil.test:{port}\r\n\r\n{form}",
        form.len()
    );
    assert_eq!(page.send(&foreign_host).status, 403, "a name that leads here is another host");
    let foreign_get = format!("GET / HTTP/1.1\r\nHost: evil.test:{port}\r\nConnection: close\r\n{cookie}\r\n\r\n");
    let answer = page.send(&foreign_get);
    assert!(answer.status == 403 && !answer.body.contains("a.txt"));
    let unforged = form.replace(&part("form"), "00000000000000000000000000000000");
    assert_eq!(page.post("/decide", &own, &unforged).status, 403);
    assert_eq!(page.get("/nix", &own).status, 404);
    assert_eq!(page.post("/decide", &own, &format!("{form}&x={}", "x".repeat(20_000))).status, 413);
    let put = format!("PUT / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    assert_eq!(page.send(&put).status, 405);
    world.call(&["fs.write", "--confirm", &token]).refused("APPROVAL_PENDING");
    assert_eq!(page.post("/decide", &own, &form).status, 303, "and with all of it, it is decided");
    world.call(&["fs.write", "--confirm", &token]).ok();
}

#[test]
fn d2_what_is_not_shown_whole_takes_its_digest_on_the_page_too() {
    let world = World::with_config(CONFIG);
    let arguments = serde_json::json!({"path": "a.txt", "content": "x".repeat(20_000)}).to_string();
    ask(&world, &arguments);
    let page = Page::of(&world);
    let own = page.login();
    let shown = page.get("/", &own).body;
    assert!(shown.contains("Not all of it can be shown") && !shown.contains("I have read it"), "{shown}");
    assert!(!shown.split("<form class=\"approve\"").nth(1).expect("a form").contains("name=\"digest\" value"));
}

#[test]
fn what_cannot_be_watched_says_why() {
    let world = World::with_config(CONFIG);
    let ran = world.run(&["approvals", "watch", "--principal", "boss", "--scope", "files:approve"]);
    assert!(ran.status == 2 && ran.err.contains("a screen needs a terminal"), "{}", ran.err);
    assert_eq!(world.run(&["approvals", "watch", "--port", "1"]).status, 2);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let ran = world.run(&["approvals", "watch", "--web", "--port", &port]);
    assert!(ran.status == 1 && ran.err.contains(&port), "{}", ran.err);
}
