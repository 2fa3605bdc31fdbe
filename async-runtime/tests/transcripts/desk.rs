//! What becomes of a decision whose future is dropped, or whose executor goes down (invariants X4, J2).

use callgate_core::confirm::Verdict;

use crate::world::desk::Act;
use crate::world::runtime::{Driven, Jobs, Polls};
use crate::world::script::{Step, Who, call};
use crate::world::waiting::{AFTER, BEFORE};
use crate::world::{Front, Seams, World};

const SEAMS: [Seams; 4] = [Seams::Immediate, Seams::Blocking, Seams::Waiting(BEFORE), Seams::Waiting(AFTER)];

/// A gate at which a call waits for an approver.
fn world(seams: Seams) -> World {
    let mut world = World::new(Front::Own(seams, Jobs::Later, Polls::WhenWoken));
    world.step(&call(Who::Alice, "b.approve", r#"{"n":1}"#).into());
    world
}

fn count(world: &World, is: impl Fn(&str) -> bool) -> usize {
    world.log.book().lines.iter().filter(|line| is(line)).count()
}

fn recorded(world: &World) -> usize {
    count(world, |line| line.starts_with("record ") && line.contains(r#""end":"approve""#))
}

fn decided(world: &World) -> usize {
    count(world, |line| line.starts_with("decide ") && line.ends_with("-> Ok(Approved)"))
}

#[test]
fn x4_a_decision_that_is_dropped_was_never_begun_or_is_made_and_recorded() {
    for seams in SEAMS {
        for late in [false, true] {
            for polls in 0..4 {
                let world = world(seams);
                let boss = Who::Boss.context("a decision");
                let future = world.gate().approvals().decide(world.ticket(0), Verdict::Approve, &boss);
                drop(world.own().drive_for(future, polls, late));
                world.own().run();
                let begun = usize::from(polls > 0);
                let about = format!("{seams:?}, {polls} polls, {late}");
                assert_eq!([recorded(&world), decided(&world)], [begun; 2], "{about}");
            }
        }
    }
}

#[test]
fn j2_an_executor_that_goes_down_leaves_no_decision_without_its_record() {
    for seams in SEAMS {
        for turns in 0..8 {
            let world = world(seams);
            let boss = Who::Boss.context("a decision");
            let future = world.gate().approvals().decide(world.ticket(0), Verdict::Approve, &boss);
            let Driven::Stopped(future) = world.own().drive_for(future, 1, false) else { continue };
            for _ in 0..turns {
                world.own().turn();
            }
            world.own().go_down();
            // Whoever still waits is answered.
            let answer = world.own().drive(future);
            let about = format!("{seams:?}, {turns} turns: {answer:?}");
            assert!(decided(&world) <= recorded(&world), "{about}");
            assert!(answer.is_err() || decided(&world) == 1, "{about}");
        }
    }
}

/// A2, A9, J2, J4, P5: not only alike on every front-end, but as the rules have it.
#[test]
fn the_desk_says_what_the_rules_have_it_say() {
    let mut world = world(Seams::Waiting(BEFORE));
    let acts = [
        (Act::Decide(0, Verdict::Approve), Who::Alice, "Err(Refused(Refused(OwnRequest)))"),
        (Act::Decide(0, Verdict::Approve), Who::OtherAlice, "Err(Refused(Unknown))"),
        (Act::Decide(0, Verdict::Approve), Who::Boss, "Ok(Approved)"),
        (Act::Cancel(0), Who::Boss, "Err(Cancel(Unknown))"),
        (Act::Cancel(0), Who::Alice, "Ok(())"),
        (Act::Revoke(0), Who::Boss, "Err(Refused(Unknown))"),
        (Act::Reap, Who::Boss, "Ok([])"),
        (Act::ReapOperations, Who::Boss, "Ok([])"),
    ];
    for (act, who, expected) in acts {
        world.step(&Step::Desk(act, who));
        let answer = world.log.book().answers.last().cloned().unwrap();
        assert_eq!(answer, expected, "{act:?} by {who:?}");
    }
    let refused = |line: &str| line.starts_with("record ") && line.contains(r#""kind":"decision""#);
    assert_eq!(count(&world, refused), 10, "each once before, and the four that do not count once more");
}
