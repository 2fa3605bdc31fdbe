//! The owned definition of a tool, and the borrowed description that the gate reads.

use callgate_core::clamp::Clamp;
use callgate_core::context::Scopes;
use callgate_core::tool::{ConfirmBy, FieldRule, ToolSpec};
use self_cell::self_cell;

use self::cells::{WithRules, WithSpec};

/// All texts of a definition, and what is not text. Scopes have a space between two of them.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) version: Option<String>,
    pub(super) input_schema: Option<String>,
    pub(super) output_schema: Option<String>,
    pub(super) fields: Vec<Field>,
    pub(super) scopes: String,
    pub(super) requirements: String,
    pub(super) mutating: bool,
    pub(super) read_only: bool,
    pub(super) dangerous: bool,
    pub(super) idempotent: bool,
    pub(super) confirm: Confirm,
    pub(super) approvals: u8,
    pub(super) timeout_ms: u64,
    pub(super) background_ms: Option<u64>,
    pub(super) cost: Option<u32>,
}

/// An owned [`FieldRule`].
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) path: String,
    pub(super) clamp: Option<Clamp>,
    pub(super) secret: bool,
}

impl Field {
    pub(super) fn rule(&self) -> FieldRule<'_> {
        FieldRule { path: &self.path, clamp: self.clamp, secret: self.secret }
    }
}

/// An owned [`ConfirmBy`].
#[derive(Clone, Debug)]
pub(super) enum Confirm {
    Nobody,
    Caller,
    Approver { scope: String },
}

impl Confirm {
    fn borrowed(&self) -> ConfirmBy<'_> {
        match self {
            Self::Nobody => ConfirmBy::Nobody,
            Self::Caller => ConfirmBy::Caller,
            Self::Approver { scope } => ConfirmBy::Approver { scope },
        }
    }
}

mod cells {
    #![expect(clippy::mem_forget, reason = "the macro disarms its own drop guards with it")]

    use super::{FieldRule, Texts, ToolSpec, self_cell};

    type Rules<'t> = Vec<FieldRule<'t>>;

    self_cell! {
        /// The texts and the rules that borrow their paths.
        pub(super) struct WithRules {
            owner: Texts,
            #[covariant]
            dependent: Rules,
        }
    }

    self_cell! {
        /// The texts, their rules, and the description that borrows both.
        pub(super) struct WithSpec {
            owner: WithRules,
            #[covariant]
            dependent: ToolSpec,
        }
    }
}

/// A definition that owns all that its [`ToolSpec`] borrows.
pub(super) struct Definition(WithSpec);

impl Definition {
    pub(super) fn new(texts: Texts) -> Self {
        let rules = WithRules::new(texts, |texts| texts.fields.iter().map(Field::rule).collect());
        Self(WithSpec::new(rules, |owner| spec_of(owner.borrow_owner(), owner.borrow_dependent())))
    }

    pub(super) fn spec(&self) -> &ToolSpec<'_> {
        self.0.borrow_dependent()
    }
}

fn spec_of<'t>(texts: &'t Texts, fields: &'t [FieldRule<'t>]) -> ToolSpec<'t> {
    ToolSpec {
        name: &texts.name,
        description: &texts.description,
        version: texts.version.as_deref(),
        input_schema: texts.input_schema.as_deref(),
        output_schema: texts.output_schema.as_deref(),
        fields,
        scopes: Scopes::new(&texts.scopes),
        requirements: Scopes::new(&texts.requirements),
        mutating: texts.mutating,
        read_only: texts.read_only,
        dangerous: texts.dangerous,
        idempotent: texts.idempotent,
        confirm: texts.confirm.borrowed(),
        approvals: texts.approvals,
        timeout_ms: texts.timeout_ms,
        background_ms: texts.background_ms,
        cost: texts.cost,
    }
}
