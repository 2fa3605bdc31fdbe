//! The tools of a device: a table in flash.

use core::fmt;

use crate::call::Lookup;
use crate::fields::{self, FieldFault};
use crate::name::{NameError, check_tool_name, look_alike};
use crate::schema::SchemaError;
use crate::tool::Tool;

/// A table of tools that were looked at once. A look-up compares the name byte for byte (invariant S2), tool by tool.
pub struct Tools<'t, T>(&'t [T]);

/// A table of tools that cannot be used. A host refuses to start with it (invariant F7). Each names the tool by its place.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ToolsError<'t> {
    /// A name is outside its grammar.
    Name(usize, NameError),
    /// A name equals an earlier one, is equal but for case, or looks like it (invariant G3).
    Twin(usize),
    /// A field's rule can't be used.
    Field(usize, FieldFault),
    /// The schema can't be checked within its bounds.
    Schema(usize, SchemaError<'t>),
}

impl fmt::Display for ToolsError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(at, error) => write!(f, "tool {at}: {error}"),
            Self::Twin(at) => write!(f, "tool {at}: another tool has this name, or one that looks like it"),
            Self::Field(at, fault) => write!(f, "tool {at}: {fault}"),
            Self::Schema(at, error) => write!(f, "tool {at}: {error}"),
        }
    }
}

impl core::error::Error for ToolsError<'_> {}

impl<'t, T: Tool> Tools<'t, T> {
    /// The table, if every tool in it can be used.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn new(tools: &'t [T]) -> Result<Self, ToolsError<'t>> {
        for (at, tool) in tools.iter().enumerate() {
            let spec = tool.spec();
            check_tool_name(spec.name).map_err(|error| ToolsError::Name(at, error))?;
            if tools.iter().take(at).any(|earlier| look_alike(earlier.spec().name, spec.name)) {
                return Err(ToolsError::Twin(at));
            }
            fields::check(spec.fields).map_err(|(_, fault)| ToolsError::Field(at, fault))?;
            if let Some(schema) = tool.schema() {
                schema.check().map_err(|error| ToolsError::Schema(at, error))?;
            }
        }
        Ok(Self(tools))
    }

    /// Answers [`Step::Find`](crate::step::Step::Find).
    #[must_use]
    pub fn find(&self, name: &str) -> Lookup<&'t T> {
        self.0.iter().find(|tool| tool.spec().name == name).map_or(Lookup::Unknown, Lookup::Found)
    }

    /// The tools, in their order.
    pub fn iter(&self) -> core::slice::Iter<'t, T> {
        self.0.iter()
    }
}

impl<'t, T: Tool> IntoIterator for &Tools<'t, T> {
    type Item = &'t T;
    type IntoIter = core::slice::Iter<'t, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Clone for Tools<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tools<'_, T> {}

impl<T: Tool> fmt::Debug for Tools<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|tool| tool.spec().name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use crate::clamp::Clamp;
    use crate::schema::{Property, Schema};
    use crate::tool::{FieldRule, ToolSpec, Violation};
    use std::string::ToString;

    struct Bare(ToolSpec<'static>, Schema<'static>);

    impl Tool for Bare {
        type Output = ();
        type Failure = &'static str;

        fn spec(&self) -> &ToolSpec<'_> {
            &self.0
        }

        fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
            self.1.validate(args, report);
        }

        fn schema(&self) -> Option<&Schema<'_>> {
            Some(&self.1)
        }
    }

    const fn named(name: &'static str) -> Bare {
        Bare(ToolSpec::new(name, ""), Schema::object(&[]))
    }

    #[test]
    fn g3_names_that_are_wrong_or_look_like_an_earlier_one_are_refused() {
        let tools = |second| [named("Valve0.move"), named(second)];
        assert!(matches!(Tools::new(&tools("a b")), Err(ToolsError::Name(1, _))));
        for twin in ["Valve0.move", "vAlVe0.MOVE", "ValveO.move", "VaIve0.rnove"] {
            assert!(matches!(Tools::new(&tools(twin)), Err(ToolsError::Twin(1))), "{twin}");
        }
        let tools = tools("valve.move");
        let found = Tools::new(&tools).expect("they differ");
        assert!(matches!(found.find("valve.move"), Lookup::Found(tool) if tool.0.name == "valve.move"));
        assert!(matches!(found.find("Valve.move"), Lookup::Unknown));
        assert_eq!(found.into_iter().count(), 2);
    }

    #[test]
    fn f7_s6_rules_and_schemas_that_cannot_be_checked_are_refused() {
        const FIELDS: &[FieldRule<'_>] = &[FieldRule::clamp("/a", Clamp::range(2, 1))];
        let fields = [Bare(ToolSpec::new("a", "").with_fields(FIELDS), Schema::object(&[]))];
        assert!(matches!(Tools::new(&fields), Err(ToolsError::Field(0, _))));
        const TWICE: &[Property<'_>] =
            &[Property::required("a", Schema::any()), Property::required("a", Schema::any())];
        let schemas = [named("a"), Bare(ToolSpec::new("b", ""), Schema::object(TWICE))];
        let error = Tools::new(&schemas).expect_err("a property comes twice");
        assert!(matches!(error, ToolsError::Schema(1, _)) && error.to_string().starts_with("tool 1: "));
    }
}
