//! The closed vocabulary of answers: stations, codes and effects (design 4).

use core::fmt;

macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The one with this name on the wire.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|item| item.as_str() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

vocabulary! {
    /// The stations of the pipeline, in canonical order (invariant G5). The order of the variants is the order of the gate.
    #[non_exhaustive]
    Station {
        /// Name and view.
        Resolve = "resolve",
        /// Reader and schema.
        Validate = "validate",
        /// Bounds.
        Clamp = "clamp",
        /// Policy.
        Authorize = "authorize",
        /// Budget.
        RateLimit = "rate_limit",
        /// The end of a plan.
        PlanMode = "plan_mode",
        /// Ask or redeem.
        Confirm = "confirm",
        /// Interceptors, and the intent record.
        EmitExecuting = "emit_executing",
        /// The tool itself.
        Execute = "execute",
        /// What went wrong in the tool.
        ContainException = "contain_exception",
        /// The output schema.
        CheckOutput = "check_output",
        /// The terminal record.
        Audit = "audit",
    }
}

vocabulary! {
    /// Why a call did not succeed. A closed set (invariant L4); tests match codes, never prose.
    #[non_exhaustive]
    Code {
        /// No such tool, or none that this caller may know of.
        ToolNotFound = "TOOL_NOT_FOUND",
        /// The tool exists but is outside the caller's view.
        CapabilityDenied = "CAPABILITY_DENIED",
        /// The arguments do not fit.
        ValidationError = "VALIDATION_ERROR",
        /// Free for tools: what was asked for does not exist.
        NotFound = "NOT_FOUND",
        /// Free for tools and transports: the caller could not be authenticated.
        Unauthorized = "UNAUTHORIZED",
        /// Policy refused.
        Forbidden = "FORBIDDEN",
        /// Over the budget; `retry_after_seconds` says when to come back.
        RateLimited = "RATE_LIMITED",
        /// The token is not good for this call, for whatever reason (invariant A6).
        ConfirmationInvalid = "CONFIRMATION_INVALID",
        /// An approver has not decided yet.
        ApprovalPending = "APPROVAL_PENDING",
        /// An approver said no.
        ApprovalDenied = "APPROVAL_DENIED",
        /// The call needs an approver and there is none.
        NoApprover = "NO_APPROVER",
        /// An interceptor vetoed, or failed.
        Vetoed = "VETOED",
        /// The deadline passed; whether the tool took effect is not known.
        Timeout = "TIMEOUT",
        /// The caller went away.
        Cancelled = "CANCELLED",
        /// The tool failed.
        InternalError = "INTERNAL_ERROR",
        /// The tool ran and its result breaks its own schema.
        OutputInvalid = "OUTPUT_INVALID",
        /// The intent could not be recorded, so nothing ran.
        AuditUnavailable = "AUDIT_UNAVAILABLE",
        /// A store that the gate needs did not answer.
        StoreUnavailable = "STORE_UNAVAILABLE",
        /// The gate is going down and admits nothing more.
        Shutdown = "SHUTDOWN",
        /// Too many calls are in flight.
        Overloaded = "OVERLOADED",
        /// The session has made all the calls that it may make.
        MaxCallsExceeded = "MAX_CALLS_EXCEEDED",
        /// The gate has no journal, or nobody known asks: the call was not run instead of being run without one.
        OperationUnsupported = "OPERATION_UNSUPPORTED",
        /// The id of the operation is that of another call.
        OperationConflict = "OPERATION_CONFLICT",
        /// A call of the same operation is under way; the caller can come back.
        OperationInProgress = "OPERATION_IN_PROGRESS",
        /// An earlier call of the operation was lost; whether it took effect is not known, and nothing runs until somebody finds out.
        UnknownOutcome = "UNKNOWN_OUTCOME",
        /// The operation took effect before, and its result is not kept.
        ResultNotKept = "RESULT_NOT_KEPT",
    }
}

vocabulary! {
    /// What a call did to the world, as far as the gate knows.
    #[expect(clippy::exhaustive_enums, reason = "there is nothing beside no, yes and unknown")]
    Effect {
        /// The tool never started, or says itself that it failed before it changed anything.
        None = "none",
        /// The tool ran to its end.
        Done = "done",
        /// The tool started; whether it took effect is not known.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_parse_back() {
        for (at, code) in Code::ALL.iter().enumerate() {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            assert!(Code::ALL.iter().skip(at + 1).all(|other| other.as_str() != code.as_str()));
        }
        assert_eq!(Code::parse("forbidden"), None);
    }

    #[test]
    fn g5_stations_stand_in_the_order_of_the_gate() {
        assert!(Station::ALL.is_sorted());
        assert_eq!(Station::ALL.len(), 12);
    }
}
