//! Claim and recovery as a model: replicas redeem tokens from one store, crash, and are slower than their leases.
//!
//! The store of the good design is a table of core's own tickets, each rule one atomic step. The two others are designs that look as
//! good and are not: what the checker says of them shows that it sees what it is for.
#![forbid(unsafe_code)]

use callgate_core::code::Effect;
use callgate_core::confirm::{Binding, By, Presented, Ticket, TicketState, call_digest};
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use stateright::{Model, Property};

/// How a store lets go of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Design {
    /// Reads the ticket, and deletes it in a second step.
    GetThenDelete,
    /// Claims in one step, and puts the ticket back when the lease of its holder is over.
    Requeue,
    /// Core's rules: claims in one step; when the lease is over the ticket is in doubt, and its holder can only finish what it still
    /// holds.
    InDoubt,
}

/// How much happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many processes redeem.
    pub replicas: u8,
    /// How many tokens there are.
    pub tokens: u8,
    /// How many times a process is killed; each starts again at once.
    pub crashes: u8,
    /// How many times a lease is over before its holder, which lives, is done. That of a dead holder is over at some time.
    pub leases: u8,
}

/// Where a token stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Token {
    /// Nobody has claimed it.
    Open,
    /// This call holds it.
    Held(u8),
    /// Nobody knows what became of its call.
    InDoubt,
    /// Its call is over, or it was deleted.
    Gone,
}

/// What a process is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// It has read this token and not deleted it yet.
    Read(u8),
    /// It may run the call of this token.
    Holds(u8),
    /// It has run it.
    Ran(u8),
}

/// The whole world.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    tokens: Vec<Token>,
    replicas: Vec<Phase>,
    /// Effects under each token, as an independent ledger counts them.
    effects: Vec<u8>,
    /// Terminal records of what each token allowed.
    terminals: Vec<u8>,
    crashes: u8,
    leases: u8,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    Read(u8, u8),
    Delete(u8),
    Claim(u8, u8),
    Run(u8),
    Finish(u8),
    Crash(u8),
    Expire(u8),
}

/// A design within bounds.
#[derive(Clone, Copy, Debug)]
pub struct Redemption {
    pub design: Design,
    pub bounds: Bounds,
}

const LEASE: u64 = 1_000;
const NOW: Timestamp = Timestamp::from_unix_millis(1_000_000);

fn binding() -> Binding {
    let digest = Digest::of_bytes(b"x");
    Binding { tool: digest, arguments: digest, caller: digest, principal: digest }
}

fn call(replica: u8) -> Digest {
    call_digest(["a", "b", "c", "d", "e", "f"][usize::from(replica)])
}

/// The ticket that core's rules see.
fn ticket(token: Token) -> Ticket {
    let state = match token {
        Token::Open => TicketState::Pending,
        Token::Held(replica) => TicketState::Reserved { call: call(replica), until: NOW.saturating_add_millis(LEASE) },
        Token::InDoubt => TicketState::InDoubt,
        Token::Gone => TicketState::Done(Effect::Done),
    };
    Ticket { state, ..Ticket::issue(binding(), By::Caller, NOW, 1 << 30) }
}

/// The token that the rules left, of a ticket that this replica, if any, holds.
fn token(ticket: &Ticket, replica: Option<u8>) -> Token {
    match (ticket.state, replica) {
        (TicketState::Pending, _) => Token::Open,
        (TicketState::Reserved { .. }, Some(replica)) => Token::Held(replica),
        (TicketState::InDoubt, _) => Token::InDoubt,
        (TicketState::Done(_), _) => Token::Gone,
        (state, _) => unreachable!("{state:?}"),
    }
}

impl World {
    /// Whether the holder of a token still lives and goes on.
    fn is_alive(&self, token: u8, replica: u8) -> bool {
        let phase = self.replicas[usize::from(replica)];
        phase == Phase::Holds(token) || phase == Phase::Ran(token)
    }
}

impl Model for Redemption {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        let Bounds { replicas, tokens, .. } = self.bounds;
        vec![World {
            tokens: vec![Token::Open; usize::from(tokens)],
            replicas: vec![Phase::Idle; usize::from(replicas)],
            effects: vec![0; usize::from(tokens)],
            terminals: vec![0; usize::from(tokens)],
            crashes: 0,
            leases: 0,
        }]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        for replica in 0..self.bounds.replicas {
            match world.replicas[usize::from(replica)] {
                Phase::Idle => {
                    for token in 0..self.bounds.tokens {
                        if world.tokens[usize::from(token)] == Token::Open {
                            acts.push(match self.design {
                                Design::GetThenDelete => Act::Read(replica, token),
                                Design::Requeue | Design::InDoubt => Act::Claim(replica, token),
                            });
                        }
                    }
                    continue;
                }
                Phase::Read(_) => acts.push(Act::Delete(replica)),
                Phase::Holds(_) => acts.push(Act::Run(replica)),
                Phase::Ran(_) => acts.push(Act::Finish(replica)),
            }
            if world.crashes < self.bounds.crashes {
                acts.push(Act::Crash(replica));
            }
        }
        for token in 0..self.bounds.tokens {
            if let Token::Held(replica) = world.tokens[usize::from(token)]
                && (!world.is_alive(token, replica) || world.leases < self.bounds.leases)
            {
                acts.push(Act::Expire(token));
            }
        }
    }

    fn next_state(&self, before: &World, act: Act) -> Option<World> {
        let mut world = before.clone();
        match act {
            Act::Read(replica, at) => world.replicas[usize::from(replica)] = Phase::Read(at),
            Act::Delete(replica) => {
                let Phase::Read(at) = world.replicas[usize::from(replica)] else { return None };
                world.tokens[usize::from(at)] = Token::Gone;
                world.replicas[usize::from(replica)] = Phase::Holds(at);
            }
            Act::Claim(replica, at) => {
                let mut claimed = ticket(world.tokens[usize::from(at)]);
                let presented = Presented { binding: binding(), call: call(replica), lease_ms: LEASE };
                claimed.claim(&presented, NOW).ok()?;
                world.tokens[usize::from(at)] = token(&claimed, Some(replica));
                world.replicas[usize::from(replica)] = Phase::Holds(at);
            }
            Act::Run(replica) => {
                let Phase::Holds(at) = world.replicas[usize::from(replica)] else { return None };
                world.effects[usize::from(at)] += 1;
                world.replicas[usize::from(replica)] = Phase::Ran(at);
            }
            Act::Finish(replica) => {
                let Phase::Ran(at) = world.replicas[usize::from(replica)] else { return None };
                world.replicas[usize::from(replica)] = Phase::Idle;
                let at = usize::from(at);
                if self.design == Design::InDoubt {
                    let holder = if let Token::Held(holder) = world.tokens[at] { Some(holder) } else { None };
                    let mut finished = ticket(world.tokens[at]);
                    if finished.finish(call(replica), Effect::Done).is_err() {
                        // Too late: the reaper has written the record.
                        return Some(world);
                    }
                    world.tokens[at] = token(&finished, holder);
                } else {
                    world.tokens[at] = Token::Gone;
                }
                world.terminals[at] += 1;
            }
            Act::Crash(replica) => {
                world.replicas[usize::from(replica)] = Phase::Idle;
                world.crashes += 1;
            }
            Act::Expire(at) => {
                let Token::Held(holder) = world.tokens[usize::from(at)] else { return None };
                if world.is_alive(at, holder) {
                    world.leases += 1;
                }
                let at = usize::from(at);
                if self.design == Design::InDoubt {
                    let mut reaped = ticket(world.tokens[at]);
                    if !reaped.reap(NOW.saturating_add_millis(LEASE)) {
                        return None;
                    }
                    world.tokens[at] = token(&reaped, None);
                    world.terminals[at] += 1;
                } else {
                    world.tokens[at] = Token::Open;
                }
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("A5", |_, world: &World| world.effects.iter().all(|count| *count <= 1)),
            Property::always("J1", |_, world: &World| world.terminals.iter().all(|count| *count <= 1)),
            Property::eventually("J5", |_, world: &World| {
                world.terminals.iter().all(|count| *count > 0)
                    && world.tokens.iter().all(|token| matches!(token, Token::InDoubt | Token::Gone))
            }),
            Property::sometimes("all run", |_, world: &World| world.effects.iter().all(|count| *count == 1)),
            Property::sometimes("a doubt", |_, world: &World| world.tokens.contains(&Token::InDoubt)),
        ]
    }
}
