//! What a server sees of the gate: a client that offers nothing to steer it by.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callgate_std::update::Progress;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ErrorCode, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};
use tokio::sync::{Notify, mpsc};

/// How many reports of progress wait for whoever follows the call. What comes while that many wait is left out.
const PENDING_PROGRESS: usize = 16;

/// The client of one connection.
#[derive(Clone, Default)]
pub(super) struct Face {
    followers: Followers,
    changed: Arc<Notify>,
    broken: Arc<Notify>,
}

impl Face {
    /// Who follows calls.
    pub(super) const fn followers(&self) -> &Followers {
        &self.followers
    }

    /// Tells that a request could not be sent: the connection is of no use, whether its end was seen or not.
    pub(super) fn broken(&self) -> &Notify {
        &self.broken
    }

    /// Tells that the server's tools have changed.
    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }
}

/// The gate declares no capability: it does not sample, does not ask people in a server's name, and has no roots. What a server
/// asks all the same is refused.
impl ClientHandler for Face {
    fn get_info(&self) -> ClientConfig {
        let gate = Implementation::new("callgate", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), gate)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    #[expect(deprecated, reason = "servers of today ask")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "roots/list", None))
    }

    async fn create_elicitation(
        &self,
        _: rmcp::model::ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ElicitResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "elicitation/create", None))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.followers.tell(&params);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Who follows calls, by the token that their server was given.
#[derive(Clone, Default)]
pub(super) struct Followers(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>>);

impl Followers {
    /// Follows the call with this token until the guard is dropped.
    pub(super) fn follow(&self, token: ProgressToken) -> Following {
        let (sender, receiver) = mpsc::channel(PENDING_PROGRESS);
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), sender));
        Following { all: self.clone(), token, receiver }
    }

    fn tell(&self, params: &ProgressNotificationParam) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&params.progress_token).cloned();
        if let Some(sender) = sender {
            // Whoever is slow misses some; what counts is the result.
            drop(sender.try_send(progress(params)));
        }
    }
}

/// A call that is followed.
pub(super) struct Following {
    all: Followers,
    token: ProgressToken,
    receiver: mpsc::Receiver<Progress>,
}

impl Following {
    /// The next report.
    pub(super) async fn next(&mut self) -> Option<Progress> {
        self.receiver.recv().await
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token));
    }
}

/// A report, in whole numbers: where a server counts in fractions, in thousandths.
fn progress(params: &ProgressNotificationParam) -> Progress {
    let whole = |number: f64| number.fract() == 0.0;
    let scale = if whole(params.progress) && params.total.is_none_or(whole) { 1.0 } else { 1000.0 };
    // Saturates at both ends; what is no number is 0.
    let count = |number: f64| (number * scale) as u64;
    let progress = Progress::count(count(params.progress));
    let progress = params.total.map_or_else(|| progress.clone(), |total| progress.clone().of(count(total)));
    match &params.message {
        Some(message) => progress.with_message(message.as_str()),
        None => progress,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    #[test]
    fn fractions_are_told_in_thousandths() {
        let report = |done: f64, total: Option<f64>| {
            let mut params = ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(1)), done);
            params.total = total;
            progress(&params).to_string()
        };
        assert_eq!(report(3.0, Some(12.0)), "3 of 12");
        assert_eq!(report(0.25, Some(1.0)), "250 of 1000");
        assert_eq!(report(-1.0, None), "0");
        assert_eq!(report(f64::INFINITY, Some(f64::NAN)).split(' ').next_back(), Some("0"));
    }
}
