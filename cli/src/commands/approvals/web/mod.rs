//! `callgate approvals watch --web`: what waits, as a page for one browser on this machine.

mod door;
mod page;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_core::code::Code;
use callgate_core::confirm::{Decided, Verdict};
use callgate_core::digest::Digest;
use callgate_std::render::approver;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::super::Setting;
use super::Desk;
use crate::command_line::WatchArgs;
use crate::exit::Exit;
use crate::interrupt;
use crate::terminal::{BOLD, Terminal};
use crate::trouble::Trouble;
use door::{Door, From};

/// The most bytes of a form.
const MAX_FORM: usize = 16 << 10;
/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most connections at once; more wait.
const CONNECTIONS: usize = 16;
/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

type Answer = Response<Full<Bytes>>;

/// What every request meets.
struct Site {
    desk: Desk,
    port: u16,
    door: Mutex<Door>,
}

pub(super) fn serve(args: &WatchArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.caller, setting)?;
    desk.pending()?;
    let (door, code) =
        Door::new().map_err(|error| Trouble::refused(Code::StoreUnavailable, format!("there is no code: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| Trouble::failed(format!("nothing can be served: {error}")))?;
    interrupt::listen();
    runtime.block_on(async {
        // This machine alone.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
        let listener = listener.and_then(|listener| listener.local_addr().map(|address| (listener, address.port())));
        let (listener, port) = listener.map_err(|error| {
            Trouble::failed(format!("the port {} can't be used: {error}", args.port)).with_help("--port 0 takes a free one")
        })?;
        let address = format!("http://127.0.0.1:{port}/#{code}");
        terminal.out.line(terminal.out.brush().paint(BOLD, &address));
        terminal.err.line("it opens once, in a browser on this machine; without scripts, go to the part before the # and enter the rest");
        terminal.err.line("Ctrl-C ends it");
        let site = Arc::new(Site { desk, port, door: Mutex::new(door) });
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            if let Some(signal) = interrupt::signal() {
                return Ok(Exit::Interrupted(signal));
            }
            let Ok(place) = tokio::time::timeout(TICK, Arc::clone(&places).acquire_owned()).await else { continue };
            let Ok(Ok((stream, _))) = tokio::time::timeout(TICK, listener.accept()).await else { continue };
            let site = Arc::clone(&site);
            drop(tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let site = Arc::clone(&site);
                    async move { Ok::<_, std::convert::Infallible>(site.answer(request).await) }
                });
                let served = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(PATIENCE)
                    .max_buf_size(MAX_FORM)
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
                if let Err(error) = served {
                    tracing::debug!(%error, "a connection broke off");
                }
                drop(place);
            }));
        }
    })
}

impl Site {
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let mut answer = self.route(request).await;
        let fixed = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::X_FRAME_OPTIONS, "DENY"),
            // A form of this page says which page sent it only if the page may say where it is.
            (header::REFERRER_POLICY, "same-origin"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ];
        let headers = answer.headers_mut();
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Ok(policy) = HeaderValue::from_str(&page::content_policy()) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        answer
    }

    async fn route(&self, request: Request<Incoming>) -> Answer {
        let text = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
        let from = From {
            host: text(header::HOST),
            origin: text(header::ORIGIN),
            site: text(HeaderName::from_static("sec-fetch-site")),
        };
        let changes = request.method() == Method::POST;
        // T1: before anything of the body is looked at.
        if !from.is_ours(self.port, changes) {
            return notice(StatusCode::FORBIDDEN, "This page answers its own browser alone.");
        }
        let cookie = self.cookie(text(header::COOKIE)).map(str::to_owned);
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => self.waiting(cookie.as_deref()),
            (&Method::POST, "/login") => match form(request).await {
                Ok(form) => self.login(&form),
                Err(status) => notice(status, "The form can't be read."),
            },
            (&Method::POST, "/decide") => match form(request).await {
                Ok(form) => self.decide(cookie.as_deref(), &form),
                Err(status) => notice(status, "The form can't be read."),
            },
            (&Method::GET | &Method::POST, _) => notice(StatusCode::NOT_FOUND, "There is no such page."),
            _ => notice(StatusCode::METHOD_NOT_ALLOWED, "Pages are looked at, and forms are sent."),
        }
    }

    /// The name of the cookie: those of all ports of a host lie together.
    fn cookie_name(&self) -> String {
        format!("callgate-{}", self.port)
    }

    fn cookie<'c>(&self, cookies: Option<&'c str>) -> Option<&'c str> {
        let name = self.cookie_name();
        cookies?.split(';').filter_map(|cookie| cookie.trim().split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    fn waiting(&self, cookie: Option<&str>) -> Answer {
        let mut door = self.door();
        let Some(session) = door.session(cookie) else { return html(StatusCode::OK, page::login(false)) };
        match self.desk.pending() {
            Ok(requests) => html(StatusCode::OK, page::waiting(&requests, session)),
            Err(_) => notice(StatusCode::SERVICE_UNAVAILABLE, "The store of what waits does not answer."),
        }
    }

    fn login(&self, form: &[(String, String)]) -> Answer {
        let code = part(form, "code").unwrap_or_default();
        match self.door().open(code) {
            Some(cookie) => {
                let mut answer = back();
                let name = self.cookie_name();
                let cookie = format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict");
                if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                    answer.headers_mut().insert(header::SET_COOKIE, cookie);
                }
                answer
            }
            None => html(StatusCode::FORBIDDEN, page::login(true)),
        }
    }

    fn decide(&self, cookie: Option<&str>, form: &[(String, String)]) -> Answer {
        let mut door = self.door();
        let Some(session) = door.session(cookie) else {
            return html(StatusCode::FORBIDDEN, page::login(false));
        };
        if !part(form, "form").is_some_and(|sent| session.sent(sent)) {
            return notice(StatusCode::FORBIDDEN, "The form is none of this page's.");
        }
        let ticket = part(form, "ticket").and_then(|ticket| ticket.parse::<Digest>().ok());
        let verdict = match part(form, "verdict") {
            Some("approve") => Verdict::Approve,
            Some("deny") => Verdict::Deny,
            _ => return notice(StatusCode::BAD_REQUEST, "The form says neither yes nor no."),
        };
        let Some(ticket) = ticket else { return notice(StatusCode::BAD_REQUEST, "The form names no request.") };
        let gate = self.desk.open.gate.approvals();
        let approver = self.desk.approver.borrow();
        if verdict == Verdict::Approve {
            // What is approved is what was on the page (invariant D1), or what its digest was given for (D2).
            let asked =
                gate.pending(&approver, super::MOST).ok().into_iter().flatten().find(|asked| asked.ticket == ticket);
            let shown = asked.and_then(|asked| approver::digest_of(&asked.summary));
            if shown.is_none() || part(form, "digest").and_then(|digest| digest.trim().parse().ok()) != shown {
                session.message =
                    Some(("Not approved: the request does not wait, or has another digest.".to_owned(), false));
                return back();
            }
        }
        session.message = Some(match gate.decide(ticket, verdict, &approver) {
            Ok(Decided::Approved) => ("Approved: it can run now, once.".to_owned(), true),
            Ok(Decided::Counted { missing }) => (format!("Approved: it waits for {missing} more."), true),
            Ok(Decided::Denied) => ("Denied: it will not run.".to_owned(), true),
            Err(fault) => (format!("{}: {fault}", fault.code()), false),
        });
        back()
    }
}

fn part<'f>(form: &'f [(String, String)], name: &str) -> Option<&'f str> {
    form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

async fn form(request: Request<Incoming>) -> Result<Vec<(String, String)>, StatusCode> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind != Some("application/x-www-form-urlencoded") {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let body = Limited::new(request.into_body(), MAX_FORM).collect();
    match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => Ok(form_urlencoded::parse(&body.to_bytes()).into_owned().collect()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

fn html(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer
}

fn notice(status: StatusCode, text: &str) -> Answer {
    html(status, page::notice(text))
}

/// Back to the page, so that sending a form again is looking at the page again.
fn back() -> Answer {
    let mut answer = html(StatusCode::SEE_OTHER, String::new());
    answer.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    answer
}
