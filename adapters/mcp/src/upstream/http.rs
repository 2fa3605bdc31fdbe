//! Servers over streamable HTTP.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::reach::Http;

/// How long a server may take until a connection to it stands.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Why a server can't be reached as it is declared.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// A header can't be sent. Its value is a secret.
    #[error("the header {0} can't be sent: its name or its value is none")]
    Header(String),
    /// There is no client.
    #[error("there is no client for HTTP: {0}")]
    Client(#[from] reqwest::Error),
}

/// A transport to the server. Redirects are not followed: they would carry the headers, and the calls, to somebody else.
pub(super) fn transport(
    http: &Http,
    max_message: usize,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, HttpError> {
    let mut headers = HashMap::new();
    for (name, value) in &http.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        let (name, mut value) = header.ok_or_else(|| HttpError::Header(name.clone()))?;
        value.set_sensitive(true);
        drop(headers.insert(name, value));
    }
    // Without one there is no client. Whoever has chosen another before keeps it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .build()?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str()).custom_headers(headers);
    config.max_sse_event_size = max_message;
    config.max_json_response_size = max_message;
    config.max_concurrent_requests = 64;
    // A message that a server forgot is not sent again: it may have run (invariant X5).
    config.reinit_on_expired_session = false;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
