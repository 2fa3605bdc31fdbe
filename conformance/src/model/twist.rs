//! Deliberate faults of the model, one for each kind of incident: subjects that the suite has to find out.

macro_rules! twists {
    ($($(#[$doc:meta])* $name:ident = $text:literal breaks [$($rule:literal),+],)+) => {
        /// One thing that a model does wrong.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Twist { $($(#[$doc])* $name,)+ }

        impl Twist {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// The rules that it breaks. A vector that finds it holds one of them.
            #[must_use]
            pub const fn breaks(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($rule),+],)+ }
            }

            /// The one of this name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|twist| twist.as_str() == text)
            }
        }
    };
}

twists! {
    /// Interceptors are asked before the policy.
    InterceptFirst = "intercept-first" breaks ["E5", "G5"],
    /// A token can be redeemed again.
    TokenReusable = "token-reusable" breaks ["A5"],
    /// Anybody can redeem a token.
    TokenUnbound = "token-unbound" breaks ["A4", "A6"],
    /// A token outlives the definition of its tool.
    DefinitionUnbound = "definition-unbound" breaks ["G4"],
    /// What was sent beside a token is what runs.
    SecondArguments = "second-arguments" breaks ["A12"],
    /// A token is good at the moment of its expiry.
    ExpiryLate = "expiry-late" breaks ["A10"],
    /// A plan runs the tool.
    PlanExecutes = "plan-executes" breaks ["R4"],
    /// A denied call leaves no record.
    DenialUnaudited = "denial-unaudited" breaks ["J1"],
    /// A call that ran leaves two records.
    DoubleAudit = "double-audit" breaks ["J1"],
    /// A veto changes nothing.
    VetoIgnored = "veto-ignored" breaks ["E1"],
    /// An interceptor that fails lets the call pass.
    FailureOpens = "failure-opens" breaks ["E3"],
    /// What was judged and approved is not what the clamp made.
    ClampLate = "clamp-late" breaks ["K4", "P4"],
    /// A redemption is not authorized again.
    StalePolicy = "stale-policy" breaks ["P7"],
    /// A policy that cannot be asked allows.
    PolicyFaultAllows = "policy-fault-allows" breaks ["F1"],
    /// Each round trip of a confirmed action is charged.
    ChargedTwice = "charged-twice" breaks ["R7"],
    /// A requester can approve its own request.
    OwnApproval = "own-approval" breaks ["A2"],
    /// The last decision stands.
    LastDecision = "last-decision" breaks ["A9"],
    /// A mutating tool runs without a record of its intent.
    NoIntent = "no-intent" breaks ["J2"],
    /// A time-out is told as a success.
    TimeoutSucceeds = "timeout-succeeds" breaks ["X2"],
    /// A failed tool's text is told to the caller.
    FailureTold = "failure-told" breaks ["L4"],
}
