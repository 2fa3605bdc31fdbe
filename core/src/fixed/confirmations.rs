//! Pending confirmations, in as many places as the host gives.

use core::fmt::{self, Write as _};

use super::put;
use crate::call::{Asking, Finish, IssueFault, Issued, Loaded, StoreFault};
use crate::code::Effect;
use crate::confirm::{
    Asked, Binding, By, CancelError, DecideError, Decided, FinishError, Presented, ReconcileError, Refusal, Ticket,
    TicketState, Verdict,
};
use crate::context::CallContext;
use crate::digest::Digest;
use crate::entropy::Entropy;
use crate::request::Context;
use crate::time::{Now, StoreTime, Timestamp};
use crate::tool::Tool;

/// What a ticket is issued for.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// What the ticket is good for.
    pub binding: Binding,
    /// Who has to answer.
    pub by: By,
    /// The scope that an approver needs; `None` when the caller itself answers.
    pub approver_scope: Option<&'a str>,
    /// How many distinct approvers have to say yes; says nothing when the caller itself answers.
    pub approvals: u8,
    /// Who asks.
    pub caller: CallContext<'a>,
    /// The name of the tool.
    pub tool: &'a str,
    /// The arguments' text as it was sent. Kept as it is, secrets included: the call will run on it.
    pub arguments: &'a [u8],
    /// What an approver is shown, kept only where one is asked: [`Asking::summary`].
    pub summary: &'a dyn fmt::Display,
}

impl<'a> Question<'a> {
    /// The question of a call that needs a ticket, with its [`Asking::summary`].
    pub fn of<C: Context, T: Tool>(asking: &'a Asking<C, T>, summary: &'a dyn fmt::Display) -> Self {
        Self {
            binding: asking.binding(),
            by: asking.by(),
            approver_scope: asking.approver_scope(),
            approvals: asking.approvals(),
            caller: asking.caller(),
            tool: asking.call().spec().name,
            arguments: asking.snapshot(),
            summary,
        }
    }
}

/// Tells no argument (invariant L1).
impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("tool", &self.tool).field("by", &self.by).finish_non_exhaustive()
    }
}

/// A store of at most `PLACES` tickets, each with room for `TEXT` bytes: the arguments as they were sent, the names of the tool, of
/// the scope and of who asks, and, where an approver is asked, what it is shown.
///
/// It applies [`crate::confirm`] and has no rule of its own beyond its bounds. A ticket keeps its place until it expires, also
/// when it is settled (invariant C3); then the place is given to whoever asks next. One principal can be held to
/// [a part of the places](Self::with_at_most_per_principal), so that nobody fills the store alone. What is too long for a place is not kept
/// and so not asked: nothing is cut (invariant D2). Lost with the host's memory, and with it every token.
pub struct Confirmations<const PLACES: usize, const TEXT: usize> {
    time: Option<StoreTime>,
    approvers: bool,
    per_principal: usize,
    places: [Option<Place<TEXT>>; PLACES],
}

#[derive(Clone, Copy)]
struct Place<const TEXT: usize> {
    name: Digest,
    ticket: Ticket,
    text: [u8; TEXT],
    /// How many bytes of the text each part has, in their order.
    lengths: [u16; PARTS],
    /// How many bytes after the parts tell who has approved: names, each after its length.
    approvals: u16,
    tenant: bool,
    principal: bool,
}

/// The parts of a place's text, in their order: what a settled ticket lets go of comes last.
const PARTS: usize = 8;
const TENANT: usize = 0;
const PRINCIPAL: usize = 1;
const CHANNEL: usize = 2;
const REQUEST_ID: usize = 3;
const SCOPE: usize = 4;
const TOOL: usize = 5;
const ARGUMENTS: usize = 6;
const SUMMARY: usize = 7;

impl<const TEXT: usize> Place<TEXT> {
    const fn new(name: Digest, ticket: Ticket) -> Self {
        let (text, lengths) = ([0; TEXT], [0; PARTS]);
        Self { name, ticket, text, lengths, approvals: 0, tenant: false, principal: false }
    }

    /// Puts the texts of a question into the place, if they fit. Where it lies, because a place is large for a device's stack, and what
    /// writes the summary needs the most of that.
    #[inline(never)]
    fn fill(&mut self, question: &Question<'_>) -> Option<()> {
        let Question { caller, approver_scope, tool, arguments, summary, .. } = question;
        let (tenant, principal) = (caller.tenant, caller.known_principal());
        let Self { ticket, text, lengths, .. } = self;
        let mut rest = text.as_mut_slice();
        let parts = [
            tenant.unwrap_or_default(),
            principal.unwrap_or_default(),
            caller.channel,
            caller.request_id,
            approver_scope.unwrap_or_default(),
            tool,
        ];
        let parts = parts.map(str::as_bytes).into_iter().chain([*arguments]);
        for (length, part) in lengths.iter_mut().zip(parts) {
            rest = put(part, rest)?;
            *length = u16::try_from(part.len()).ok()?;
        }
        if ticket.by == By::Approver {
            let before = rest.len();
            let mut shown = Rest(rest);
            write!(shown, "{summary}").ok()?;
            *lengths.get_mut(SUMMARY)? = u16::try_from(before.saturating_sub(shown.0.len())).ok()?;
        }
        (self.tenant, self.principal) = (tenant.is_some(), principal.is_some());
        Some(())
    }

    fn part(&self, part: usize) -> &[u8] {
        let start = self.lengths.iter().take(part).map(|length| usize::from(*length)).sum();
        let length = self.lengths.get(part).copied().unwrap_or_default();
        self.text.get(start..).and_then(|rest| rest.get(..usize::from(length))).unwrap_or_default()
    }

    fn str(&self, part: usize) -> &str {
        core::str::from_utf8(self.part(part)).unwrap_or_default()
    }

    fn tenant(&self) -> Option<&str> {
        self.tenant.then(|| self.str(TENANT))
    }

    fn asked(&self) -> Asked<'_, Names<'_>> {
        let names = self.text.get(self.parts_end()..).and_then(|rest| rest.get(..usize::from(self.approvals)));
        Asked { tenant: self.tenant(), scope: self.str(SCOPE), approved_by: Names(names.unwrap_or_default()) }
    }

    fn parts_end(&self) -> usize {
        self.lengths.iter().map(|length| usize::from(*length)).sum()
    }

    /// Takes an approver's decision to the rule. A yes that is not the last one has to be kept, or does not count.
    fn decide(&mut self, verdict: Verdict, approver: &CallContext<'_>, now: Timestamp) -> Result<Decided, DecideFault> {
        let mut ticket = self.ticket;
        let decided = ticket.decide(verdict, approver, &self.asked(), now).map_err(|error| match error {
            DecideError::OtherTenant => DecideFault::Unknown,
            error => DecideFault::Refused(error),
        })?;
        if let (Decided::Counted { .. }, Some(name)) = (decided, approver.known_principal()) {
            self.keep_name(name).ok_or(DecideFault::Full)?;
        }
        self.ticket = ticket;
        Ok(decided)
    }

    fn keep_name(&mut self, name: &str) -> Option<()> {
        let length = u8::try_from(name.len()).ok()?;
        let end = self.parts_end().checked_add(usize::from(self.approvals))?;
        let rest = put(&[length], self.text.get_mut(end..)?)?;
        put(name.as_bytes(), rest)?;
        self.approvals = self.approvals.checked_add(u16::from(length))?.checked_add(1)?;
        Some(())
    }

    fn view(&self, now: Timestamp) -> Seen<'_> {
        Seen {
            ticket: self.name,
            state: self.ticket.state,
            expired: self.ticket.is_expired(now),
            by: self.ticket.by,
            needs: self.ticket.needs,
            approvals: u8::try_from(self.asked().approved_by.count()).unwrap_or(u8::MAX),
            tool: self.str(TOOL),
            principal: self.principal.then(|| self.str(PRINCIPAL)),
            request_id: self.str(REQUEST_ID),
            issued_at: self.ticket.issued_at,
            expires_at: self.ticket.expires_at,
        }
    }

    /// Lets go of what a settled ticket no longer needs: arguments may hold secrets.
    fn settle(&mut self) {
        if self.ticket.state.is_open() {
            return;
        }
        self.approvals = 0;
        let kept = self.lengths.iter().take(ARGUMENTS).map(|length| usize::from(*length)).sum();
        self.text.iter_mut().skip(kept).for_each(|byte| *byte = 0);
        self.lengths.iter_mut().skip(ARGUMENTS).for_each(|length| *length = 0);
    }
}

/// Gives a place to a question, without its texts yet.
#[inline(never)]
fn taken<'p, const TEXT: usize>(
    free: &'p mut Option<Place<TEXT>>,
    name: Digest,
    question: &Question<'_>,
    ttl_ms: u64,
    now: Timestamp,
) -> &'p mut Place<TEXT> {
    let ticket = Ticket::issue(question.binding, question.by, now, ttl_ms).needing(question.approvals);
    free.insert(Place::new(name, ticket))
}

/// Names, each after its length.
#[derive(Clone)]
struct Names<'t>(&'t [u8]);

impl<'t> Iterator for Names<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let (length, rest) = self.0.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        self.0 = rest;
        core::str::from_utf8(name).ok()
    }
}

/// Writes into what is left of a text.
struct Rest<'t>(&'t mut [u8]);

impl fmt::Write for Rest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        match put(text.as_bytes(), core::mem::take(&mut self.0)) {
            Some(rest) => {
                self.0 = rest;
                Ok(())
            }
            None => Err(fmt::Error),
        }
    }
}

/// Why a decision was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "an approver's front-end must tell these apart")]
pub enum DecideFault {
    /// There is no such request, or it is another tenant's.
    Unknown,
    /// The rules refuse the decision.
    Refused(DecideError),
    /// There is no room to keep who said yes, so it does not count.
    Full,
}

impl fmt::Display for DecideFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such request"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::Full => f.write_str("there is no room to keep who approved"),
        }
    }
}

impl core::error::Error for DecideFault {}

/// A confirmation that waits for an approver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Pending<'a> {
    /// What to decide by: the hash of the token, which is no secret.
    pub ticket: Digest,
    /// The name of the tool.
    pub tool: &'a str,
    /// Who asked.
    pub principal: Option<&'a str>,
    /// The channel of the request.
    pub channel: &'a str,
    /// The id of the call that asked.
    pub request_id: &'a str,
    /// What would run; see [`Asking::summary`].
    pub summary: &'a str,
    /// When it was asked, by the store's clock.
    pub issued_at: Timestamp,
    /// From when on no answer counts, by the store's clock.
    pub expires_at: Timestamp,
}

/// A ticket as the store tells of it, whatever its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Seen<'a> {
    /// Its name: the hash of the token, which is no secret.
    pub ticket: Digest,
    /// Where it stands.
    pub state: TicketState,
    /// Whether its time was over before it was claimed.
    pub expired: bool,
    /// Who has to answer.
    pub by: By,
    /// How many approvers have to say yes.
    pub needs: u8,
    /// How many have, before the last one did.
    pub approvals: u8,
    /// The name of the tool.
    pub tool: &'a str,
    /// Who asked.
    pub principal: Option<&'a str>,
    /// The id of the call that asked.
    pub request_id: &'a str,
    /// When it was asked, by the store's clock.
    pub issued_at: Timestamp,
    /// From when on it cannot be claimed, by the store's clock.
    pub expires_at: Timestamp,
}

impl<const PLACES: usize, const TEXT: usize> Confirmations<PLACES, TEXT> {
    /// No tickets, and no approver to ask.
    #[must_use]
    pub const fn new() -> Self {
        Self { time: None, approvers: false, per_principal: PLACES, places: [None; PLACES] }
    }

    /// The same store with at most so many tickets of one principal.
    #[must_use]
    pub const fn with_at_most_per_principal(mut self, tickets: usize) -> Self {
        self.per_principal = tickets;
        self
    }

    /// Says whether approvers can be reached. As long as they can't, a call that needs one is refused at once.
    pub const fn attach_approvers(&mut self, attached: bool) {
        self.approvers = attached;
    }

    /// How many tickets are kept, settled and expired ones whose place was not needed yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Whether no ticket is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time by the store: it never goes back (invariant C2).
    fn at(&mut self, now: Now) -> Timestamp {
        self.time.get_or_insert(StoreTime::start(now)).advance(now)
    }

    fn get(&mut self, ticket: Digest) -> Option<&mut Place<TEXT>> {
        self.places.iter_mut().flatten().find(|place| place.name == ticket)
    }

    /// Keeps a question and gives the token for it, good for `ttl_ms` milliseconds: answers
    /// [`Step::Issue`](crate::step::Step::Issue).
    ///
    /// # Errors
    /// Nothing was issued: there is no place or not enough room in one, no approver to ask, or no randomness.
    pub fn issue<E: Entropy + ?Sized>(
        &mut self,
        question: &Question<'_>,
        ttl_ms: u64,
        entropy: &E,
        now: Now,
    ) -> Result<Issued, IssueFault> {
        if question.by == By::Approver && !self.approvers {
            return Err(IssueFault::NoApprover);
        }
        let token = entropy.token().map_err(|_| IssueFault::Store)?;
        let at = self.at(now);
        self.keep(token.hash(), question, ttl_ms, at)?;
        // Whoever reads the answer has the wall clock to compare it with.
        Ok(Issued { token, expires_at: now.wall.saturating_add_millis(ttl_ms) })
    }

    #[inline(never)]
    fn keep(&mut self, name: Digest, question: &Question<'_>, ttl_ms: u64, now: Timestamp) -> Result<(), IssueFault> {
        if self.get(name).is_some() {
            // Two tokens that are equal mean that the source of randomness is broken.
            return Err(IssueFault::Store);
        }
        let alive = |place: &Place<TEXT>| !place.ticket.is_forgettable(now);
        let own = |place: &&Place<TEXT>| alive(place) && place.ticket.binding.principal == question.binding.principal;
        if self.places.iter().flatten().filter(own).count() >= self.per_principal {
            return Err(IssueFault::Full);
        }
        let free = self.places.iter_mut().find(|place| !place.as_ref().is_some_and(alive)).ok_or(IssueFault::Full)?;
        if taken(free, name, question, ttl_ms, now).fill(question).is_none() {
            *free = None;
            return Err(IssueFault::Full);
        }
        Ok(())
    }

    /// Looks a ticket up and claims nothing: answers [`Step::Load`](crate::step::Step::Load). The arguments are copied to `room`, which
    /// lives as long as the call; `TEXT` bytes always suffice. Those of a ticket that is used up are empty.
    ///
    /// # Errors
    /// The room is too small.
    pub fn load<'r>(
        &mut self,
        ticket: Digest,
        room: &'r mut [u8],
        now: Now,
    ) -> Result<Option<Loaded<&'r [u8]>>, StoreFault> {
        let now = self.at(now);
        let Some(place) = self.get(ticket) else { return Ok(None) };
        let arguments = place.part(ARGUMENTS);
        put(arguments, room).ok_or(StoreFault)?;
        let arguments = room.get(..arguments.len()).ok_or(StoreFault)?;
        Ok(Some(Loaded { binding: place.ticket.binding, usable: place.ticket.usable(now), arguments }))
    }

    /// Claims a ticket for the call that `presented` describes: answers [`Step::Redeem`](crate::step::Step::Redeem). At most one claim of
    /// a ticket ever succeeds (invariant A5), and a presentation for anything else withdraws it (invariant A6).
    ///
    /// # Errors
    /// Says why the ticket is not accepted, for the record only.
    pub fn claim(&mut self, ticket: Digest, presented: &Presented, now: Now) -> Result<By, Refusal> {
        let now = self.at(now);
        let place = self.get(ticket).ok_or(Refusal::Unknown)?;
        let claimed = place.ticket.claim(presented, now);
        place.settle();
        claimed.map(|()| place.ticket.by)
    }

    /// Takes what became of the call that claimed a ticket: [`Settlement::finish`](crate::call::Settlement).
    ///
    /// # Errors
    /// It changes nothing (invariant J4); for the record only.
    pub fn finish(&mut self, finish: &Finish) -> Result<(), FinishError> {
        self.get(finish.ticket).ok_or(FinishError::Unknown)?.ticket.finish(finish.call, finish.effect)
    }

    /// The reaper: leaves one ticket in doubt whose call has not been heard of within its lease, and tells which; `None` when there
    /// is none (invariant J4).
    pub fn reap(&mut self, now: Now) -> Option<Seen<'_>> {
        let now = self.at(now);
        self.places
            .iter_mut()
            .flatten()
            .find_map(|place| place.ticket.reap(now).then_some(&*place))
            .map(|place| place.view(now))
    }

    /// Settles a ticket in doubt by what `by` found out, and how.
    ///
    /// # Errors
    /// Says why it stays as it is.
    pub fn reconcile(
        &mut self,
        ticket: Digest,
        effect: Effect,
        proof: &str,
        by: &CallContext<'_>,
    ) -> Result<(), ReconcileError> {
        let place = self.get(ticket).ok_or(ReconcileError::Unknown)?;
        let mut settled = place.ticket;
        settled.reconcile(effect, proof, by, place.tenant())?;
        place.ticket = settled;
        Ok(())
    }

    /// Withdraws a ticket for its requester, who no longer wants the call.
    ///
    /// # Errors
    /// It is not `requester`'s, or was settled before.
    pub fn cancel(&mut self, ticket: Digest, requester: &CallContext<'_>) -> Result<(), CancelError> {
        let place = self.get(ticket).ok_or(CancelError::Unknown)?;
        place.ticket.cancel_by(requester)?;
        place.settle();
        Ok(())
    }

    /// The tickets that `viewer` may be told of, whatever their state, in no particular order.
    pub fn tickets<'s>(&'s mut self, viewer: &'s CallContext<'s>, now: Now) -> impl Iterator<Item = Seen<'s>> {
        let now = self.at(now);
        let seen = move |place: &&Place<TEXT>| place.ticket.is_visible_to(viewer, &place.asked());
        self.places.iter().flatten().filter(seen).map(move |place| place.view(now))
    }

    /// Withdraws a ticket, unless it is settled or unknown: [`Settlement::withdraw`](crate::call::Settlement).
    pub fn withdraw(&mut self, ticket: Digest) {
        if let Some(place) = self.get(ticket) {
            place.ticket.cancel();
            place.settle();
        }
    }

    /// Takes an approver's decision. `approver` comes from a transport that authenticated it, never from arguments
    /// (invariants A2, A3). The first decision stands (invariant A9).
    ///
    /// # Errors
    /// The decision does not count.
    pub fn decide(
        &mut self,
        ticket: Digest,
        verdict: Verdict,
        approver: &CallContext<'_>,
        now: Now,
    ) -> Result<Decided, DecideFault> {
        let now = self.at(now);
        let place = self.get(ticket).ok_or(DecideFault::Unknown)?;
        let decided = place.decide(verdict, approver, now);
        place.settle();
        decided
    }

    /// What `approver` could decide now, in no particular order.
    pub fn pending<'s>(&'s mut self, approver: &'s CallContext<'s>, now: Now) -> impl Iterator<Item = Pending<'s>> {
        let now = self.at(now);
        // The rule itself says whether a decision would count.
        let open = move |place: &&Place<TEXT>| {
            let mut ticket = place.ticket;
            ticket.decide(Verdict::Approve, approver, &place.asked(), now).is_ok()
        };
        self.places.iter().flatten().filter(open).map(|place| Pending {
            ticket: place.name,
            tool: place.str(TOOL),
            principal: place.principal.then(|| place.str(PRINCIPAL)),
            channel: place.str(CHANNEL),
            request_id: place.str(REQUEST_ID),
            summary: place.str(SUMMARY),
            issued_at: place.ticket.issued_at,
            expires_at: place.ticket.expires_at,
        })
    }
}

impl<const PLACES: usize, const TEXT: usize> Default for Confirmations<PLACES, TEXT> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PLACES: usize, const TEXT: usize> fmt::Debug for Confirmations<PLACES, TEXT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confirmations").field("len", &self.len()).field("places", &PLACES).finish_non_exhaustive()
    }
}
