//! What a store vouches for.

/// What a store of the gate holds to, as it says itself. Whoever needs more of a store than it says refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "a store has to answer each of these")]
pub struct Guarantee {
    /// Of all claims of one ticket at most one succeeds, among all that reach this store (invariant A5).
    pub atomic_claim: bool,
    /// What was answered is still there after the process was killed (invariant J3).
    pub survives_crash: bool,
    /// And after the machine lost its power, as far as its disk keeps what it acknowledged.
    pub survives_power_loss: bool,
    /// Several processes may use it at once and see the same.
    pub shared_between_processes: bool,
}

impl Guarantee {
    /// Nothing: what a store vouches for that does not say anything.
    pub const NONE: Self = Self {
        atomic_claim: false,
        survives_crash: false,
        survives_power_loss: false,
        shared_between_processes: false,
    };
    /// Everything.
    pub const ALL: Self =
        Self { atomic_claim: true, survives_crash: true, survives_power_loss: true, shared_between_processes: true };

    /// Whether a store of this guarantee will do where `bar` is asked for.
    #[must_use]
    pub const fn meets(self, bar: Self) -> bool {
        (self.atomic_claim || !bar.atomic_claim)
            && (self.survives_crash || !bar.survives_crash)
            && (self.survives_power_loss || !bar.survives_power_loss)
            && (self.shared_between_processes || !bar.shared_between_processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f2_a_guarantee_meets_what_it_has_each_of_and_nothing_more() {
        let all: Vec<_> = (0..16_u8)
            .map(|bits| Guarantee {
                atomic_claim: bits & 1 != 0,
                survives_crash: bits & 2 != 0,
                survives_power_loss: bits & 4 != 0,
                shared_between_processes: bits & 8 != 0,
            })
            .collect();
        for (has, one) in all.iter().enumerate() {
            for (bar, other) in all.iter().enumerate() {
                assert_eq!(one.meets(*other), has & bar == bar, "{one:?} for {other:?}");
            }
        }
        assert_eq!((all[0], all[15], Guarantee::default()), (Guarantee::NONE, Guarantee::ALL, Guarantee::NONE));
    }
}
