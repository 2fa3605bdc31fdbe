//! Deliberate faults, one for each kind of incident: subjects that the suite has to find out.

macro_rules! twists {
    ($($(#[$doc:meta])* $name:ident = $text:literal breaks [$($rule:literal),+],)+) => {
        /// One thing that a subject does wrong.
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

            /// Whether it is about operations, of which the model knows nothing.
            #[must_use]
            pub const fn is_of_operations(self) -> bool {
                matches!(
                    self,
                    Self::ReplayRuns
                        | Self::ReplayUnauthorized
                        | Self::ReplayUnaudited
                        | Self::OperationOfEverybody
                        | Self::OperationArgumentsUnbound
                        | Self::OperationToolUnbound
                        | Self::OperationInDoubtRuns
                )
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
    /// A veto changes nothing.
    VetoIgnored = "veto-ignored" breaks ["E1"],
    /// An interceptor that fails lets the call pass.
    FailureOpens = "failure-opens" breaks ["E3"],
    /// Where somebody listens and breaks, nothing is asked of a caller any more.
    ListenerOpens = "listener-opens" breaks ["E4"],
    /// A token can be redeemed again.
    TokenReusable = "token-reusable" breaks ["A5"],
    /// Anybody can redeem a token.
    TokenUnbound = "token-unbound" breaks ["A4", "A6"],
    /// A token is good in every session of its principal.
    SessionUnbound = "session-unbound" breaks ["A4"],
    /// A token is good for every tool.
    ToolUnbound = "tool-unbound" breaks ["A4"],
    /// A token outlives the definition of its tool.
    DefinitionUnbound = "definition-unbound" breaks ["G4"],
    /// What was sent beside a token is what runs.
    SecondArguments = "second-arguments" breaks ["A12"],
    /// A token is good at the moment of its expiry.
    ExpiryLate = "expiry-late" breaks ["A10"],
    /// A token that somebody else presented stays good.
    MismatchKeeps = "mismatch-keeps" breaks ["A6"],
    /// Whoever presents a token that is over its time is told so.
    ExpiryTold = "expiry-told" breaks ["A6", "A10"],
    /// An argument that says so is taken for a confirmation.
    ApprovedInArguments = "approved-in-arguments" breaks ["A3"],
    /// What nobody decided in time counts as approved.
    TimeoutApproves = "timeout-approves" breaks ["F3"],
    /// A requester can approve its own request.
    OwnApproval = "own-approval" breaks ["A2"],
    /// Anybody can approve, whatever they hold.
    AnybodyApproves = "anybody-approves" breaks ["A2", "F2"],
    /// The last decision stands.
    LastDecision = "last-decision" breaks ["A9"],
    /// An approver of one tenant decides what another tenant asked.
    TenantsMixed = "tenants-mixed" breaks ["P2"],
    /// A redemption is not authorized again.
    StalePolicy = "stale-policy" breaks ["P7"],
    /// A policy that cannot be asked allows.
    PolicyFaultAllows = "policy-fault-allows" breaks ["F1"],
    /// A limiter that cannot be asked lets everything pass.
    LimiterFaultOpens = "limiter-fault-opens" breaks ["F1"],
    /// A claim whose answer was lost is taken for made.
    LostClaimRuns = "lost-claim-runs" breaks ["F1"],
    /// A permit wins over a deny.
    AllowWins = "allow-wins" breaks ["P1"],
    /// A channel that nobody registered is a plain one.
    UnknownChannelTrusted = "unknown-channel-trusted" breaks ["F2"],
    /// Names are found whatever their case, and with blanks around them.
    NamesFolded = "names-folded" breaks ["S3"],
    /// Of two members with one key the last counts.
    LastKeyWins = "last-key-wins" breaks ["S2"],
    /// Numbers are kept as floating-point numbers, rounded.
    Rounds = "rounds" breaks ["S4"],
    /// A text that looks like a number is one.
    Coerces = "coerces" breaks ["S9"],
    /// Members that a schema does not name are dropped in silence.
    UnknownDropped = "unknown-dropped" breaks ["S8"],
    /// What was judged and approved is not what the clamp made.
    ClampLate = "clamp-late" breaks ["K4", "P4"],
    /// Nobody is told that a value was clamped.
    ClampSilent = "clamp-silent" breaks ["K3"],
    /// A plan runs the tool.
    PlanExecutes = "plan-executes" breaks ["R4", "R5"],
    /// A plan is charged.
    PlanCharged = "plan-charged" breaks ["R4"],
    /// Each round trip of a confirmed action is charged.
    ChargedTwice = "charged-twice" breaks ["R7"],
    /// A call that was vetoed is charged in full.
    VetoCharged = "veto-charged" breaks ["R3"],
    /// Refused calls cost nothing.
    AttemptsFree = "attempts-free" breaks ["R3"],
    /// A batch ends with its first failure.
    BatchStops = "batch-stops" breaks ["R1"],
    /// A mutating call that failed is tried again.
    Retries = "retries" breaks ["X5"],
    /// A time-out is told as a success.
    TimeoutSucceeds = "timeout-succeeds" breaks ["X2"],
    /// A time-out is told as if nothing had happened.
    TimeoutDidNothing = "timeout-did-nothing" breaks ["X2"],
    /// A failed tool's text is told to the caller.
    FailureTold = "failure-told" breaks ["L4"],
    /// Results are not checked.
    OutputUnchecked = "output-unchecked" breaks ["O1", "E2"],
    /// A denied call leaves no record.
    DenialUnaudited = "denial-unaudited" breaks ["J1"],
    /// A call that ran leaves two records.
    DoubleAudit = "double-audit" breaks ["J1"],
    /// A mutating tool runs without a record of its intent.
    NoIntent = "no-intent" breaks ["J2"],
    /// The intent is recorded when the tool has run.
    IntentLate = "intent-late" breaks ["J2"],
    /// A call whose record could not be written is told as failed.
    LogFaultFails = "log-fault-fails" breaks ["J8"],
    /// A plan shows secrets.
    SecretsInPlans = "secrets-in-plans" breaks ["L2"],
    /// The record of a veto holds secrets.
    SecretsInVetoes = "secrets-in-vetoes" breaks ["L2"],
    /// A clock that is set back makes time pass again.
    ClockBackRevives = "clock-back-revives" breaks ["C2"],
    /// A restart forgets the questions that are open.
    RestartForgets = "restart-forgets" breaks ["J5"],
    /// A restart gives everybody a fresh budget.
    RestartRefills = "restart-refills" breaks ["R2"],
    /// A call that comes again under the id of its operation runs again.
    ReplayRuns = "replay-runs" breaks ["A5"],
    /// What was delivered once is delivered again, whatever the policy of now says.
    ReplayUnauthorized = "replay-unauthorized" breaks ["P7"],
    /// A replay leaves no record.
    ReplayUnaudited = "replay-unaudited" breaks ["J1"],
    /// The id of an operation is everybody's.
    OperationOfEverybody = "operation-of-everybody" breaks ["P2"],
    /// An id stands for whatever arguments it comes with.
    OperationArgumentsUnbound = "operation-arguments-unbound" breaks ["A4"],
    /// An id stands for whatever tool it comes with, and outlives the definition of its tool.
    OperationToolUnbound = "operation-tool-unbound" breaks ["G4"],
    /// An operation of which nobody knows what it did runs again.
    OperationInDoubtRuns = "operation-in-doubt-runs" breaks ["J4", "X5"],
}
