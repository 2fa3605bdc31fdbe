//! The body of a request, within its bounds.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::admission::Refusal;

/// Reads a body to its end: at most so many bytes, in at most so long.
pub(super) async fn read<B>(body: B, bytes: usize, within: Duration) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match tokio::time::timeout(within, Limited::new(body, bytes).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "the message is longer than this server takes"))
        }
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body could not be read")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time")),
    }
}
