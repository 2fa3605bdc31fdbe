//! Pending confirmations in an array: a store needs no heap either.

use callgate_core::call::{Asking, IssueFault, Issued, Loaded, Redeeming, StoreFault};
use callgate_core::confirm::{By, Refusal, Ticket, Token};
use callgate_core::digest::Digest;
use callgate_core::request::Envelope;
use callgate_core::time::Timestamp;

use crate::valve::Valve;

const PLACES: usize = 2;
const TTL_MS: u64 = 60_000;

/// The most bytes of arguments that a ticket keeps.
pub(crate) const SNAPSHOT: usize = 128;

#[derive(Clone, Copy)]
struct Pending {
    name: Digest,
    ticket: Ticket,
    arguments: [u8; SNAPSHOT],
    len: usize,
}

pub(crate) struct Store {
    places: [Option<Pending>; PLACES],
    issued: u8,
}

impl Store {
    pub(crate) const fn new() -> Self {
        Self { places: [None; PLACES], issued: 0 }
    }

    fn get(&mut self, name: Digest) -> Option<&mut Pending> {
        self.places.iter_mut().flatten().find(|pending| pending.name == name)
    }

    pub(crate) fn issue(
        &mut self,
        asking: &Asking<Envelope<'_>, &Valve>,
        now: Timestamp,
    ) -> Result<Issued, IssueFault> {
        let place = self.places.iter_mut().find(|place| place.is_none()).ok_or(IssueFault::Full)?;
        let mut arguments = [0; SNAPSHOT];
        let len = copy(asking.snapshot(), &mut arguments).ok_or(IssueFault::Store)?;
        // A device draws these bits from its source of randomness; here both doors must draw the same.
        self.issued = self.issued.wrapping_add(1);
        let token = Token::from_random([self.issued; 16]);
        let ticket = Ticket::issue(asking.binding(), asking.by(), now, TTL_MS);
        *place = Some(Pending { name: token.hash(), ticket, arguments, len });
        Ok(Issued { token, expires_at: ticket.expires_at })
    }

    /// Looks a ticket up, claiming nothing. The arguments are copied to `room`, which lives as long as the call.
    pub(crate) fn load<'a>(
        &mut self,
        name: Option<Digest>,
        now: Timestamp,
        room: &'a mut [u8; SNAPSHOT],
    ) -> Result<Option<Loaded<&'a [u8]>>, StoreFault> {
        let Some(pending) = name.and_then(|name| self.get(name)) else { return Ok(None) };
        *room = pending.arguments;
        let arguments = room.get(..pending.len).ok_or(StoreFault)?;
        Ok(Some(Loaded { binding: pending.ticket.binding, usable: pending.ticket.usable(now), arguments }))
    }

    pub(crate) fn claim(
        &mut self,
        redeeming: &Redeeming<Envelope<'_>, &Valve>,
        now: Timestamp,
    ) -> Result<Result<By, Refusal>, StoreFault> {
        let Some(pending) = self.get(redeeming.ticket()) else { return Ok(Err(Refusal::Unknown)) };
        Ok(pending.ticket.claim(&redeeming.binding(), now).map(|()| pending.ticket.by))
    }

    pub(crate) fn withdraw(&mut self, name: Digest) {
        if let Some(pending) = self.get(name) {
            pending.ticket.cancel();
        }
    }
}

/// Copies all of `from` to the start of `to`, or nothing.
fn copy(from: &[u8], to: &mut [u8]) -> Option<usize> {
    let room = to.get_mut(..from.len())?;
    for (to, from) in room.iter_mut().zip(from) {
        *to = *from;
    }
    Some(from.len())
}
