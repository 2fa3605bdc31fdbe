//! How much of a model's context the description of tools takes, and which tools fit.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::listing::write_summary;
use crate::tool::Tool;

/// The share of a model's context that descriptions of tools may take, in percent.
pub const TOOL_SHARE_PERCENT: u64 = 30;
/// The context of a model that nobody listed, in tokens: the least of those that are still in use, because tools that are
/// left out can be asked for, and a request that is too long fails.
pub const DEFAULT_CONTEXT: u64 = 8_192;

/// How many tools a [`Usage`] lists.
const REPORTED: usize = 10;
/// How many names a [`Selection`] tells in its warning.
const WARNED: usize = 5;

/// An estimate of how many tokens a text of so many bytes takes: a quarter of them, rounded up.
#[must_use]
pub const fn tokens_of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// An estimate of how many tokens a text takes; see [`tokens_of_bytes`].
#[must_use]
pub const fn tokens(text: &str) -> u64 {
    tokens_of_bytes(text.len() as u64)
}

/// An estimate of how many tokens the description of a tool takes: those of its summary as compact JSON.
#[must_use]
pub fn tokens_of_tool(tool: &Tool) -> u64 {
    let mut summary = Count(0);
    // A count takes everything.
    let _ = write_summary(tool, &mut summary);
    tokens_of_bytes(summary.0)
}

struct Count(u64);

impl fmt::Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len() as u64);
        Ok(())
    }
}

/// The contexts of models and families of models, in tokens, sorted by name. What a provider documents for the family; for
/// one whose members differ, the least of them. Letters are in lower case.
static CONTEXTS: &[(&str, u64)] = &[
    ("chatgpt-4o", 128_000),
    ("claude", 100_000),
    ("claude-2", 100_000),
    ("claude-2.1", 200_000),
    ("claude-3", 200_000),
    ("claude-haiku", 200_000),
    ("claude-opus", 200_000),
    ("claude-sonnet", 200_000),
    ("codestral", 32_000),
    ("command-a", 256_000),
    ("command-r", 128_000),
    ("deepseek", 64_000),
    ("gemini", 32_768),
    ("gemini-1.5", 1_048_576),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini-2", 1_048_576),
    ("gemini-3", 1_048_576),
    ("gemma-2", 8_192),
    ("gemma-3", 32_768),
    ("glm-4", 128_000),
    ("gpt-3.5-turbo", 4_096),
    ("gpt-3.5-turbo-0125", 16_385),
    ("gpt-3.5-turbo-1106", 16_385),
    ("gpt-3.5-turbo-16k", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-0125-preview", 128_000),
    ("gpt-4-1106-preview", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-5-chat", 128_000),
    ("gpt-oss", 131_072),
    ("grok-2", 131_072),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
    ("kimi-k2", 131_072),
    ("llama-2", 4_096),
    ("llama-3", 8_192),
    ("llama-3.1", 128_000),
    ("llama-3.2", 128_000),
    ("llama-3.3", 128_000),
    ("llama-4", 128_000),
    ("ministral", 128_000),
    ("mistral", 32_000),
    ("mistral-large", 128_000),
    ("mistral-medium", 128_000),
    ("mistral-small", 32_000),
    ("mixtral", 32_000),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("phi-3", 4_096),
    ("phi-4", 16_384),
    ("qwen2.5", 32_768),
    ("qwen3", 32_768),
];

/// How many tokens the contexts of models have: a table of known models and families, and what a host adds to it.
///
/// A model is found by its exact name, else by the longest listed name that its own begins with, up to a border: `gpt-4o` for
/// `gpt-4o-2024-05-13`, not for `gpt-4omega`. Case does not matter, and neither does what a provider puts before the name
/// (`anthropic.claude-...`, `openai/gpt-...`). A model that is not found counts as [`DEFAULT_CONTEXT`].
///
/// ```
/// use callgate_std::budget::Contexts;
/// let contexts = Contexts::default().with("house-model", 64_000);
/// assert_eq!(contexts.of("house-model-2"), 64_000);
/// assert_eq!(contexts.of("claude-sonnet-5-20260101"), 200_000);
/// assert_eq!(contexts.of("unheard-of"), 8_192);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    own: Vec<(String, u64)>,
}

impl Contexts {
    /// The same table with one model or family more; it takes the place of one that is listed.
    #[must_use]
    pub fn with(mut self, model: &str, tokens: u64) -> Self {
        self.own.push((model.to_ascii_lowercase(), tokens));
        self
    }

    /// How many tokens the context of `model` has.
    #[must_use]
    pub fn of(&self, model: &str) -> u64 {
        let model = model.to_ascii_lowercase();
        let listed = CONTEXTS.iter().copied();
        // What a host added counts more than what is listed, and what it added last the most: the last of equals is kept.
        let all = listed.chain(self.own.iter().map(|(name, tokens)| (name.as_str(), *tokens)));
        let best = all.filter(|(name, _)| is_of(&model, name)).max_by_key(|(name, _)| name.len());
        best.map_or(DEFAULT_CONTEXT, |(_, tokens)| tokens)
    }

    /// The budget for the tools of `model`.
    #[must_use]
    pub fn budget(&self, model: &str) -> Budget {
        let context = self.of(model);
        let share = u128::from(context) * u128::from(TOOL_SHARE_PERCENT) / 100;
        Budget { model: model.to_owned(), context, tokens: u64::try_from(share).unwrap_or(u64::MAX) }
    }
}

/// Whether `model`, with or without what a provider puts before it, is `name` or begins with it up to a border.
fn is_of(model: &str, name: &str) -> bool {
    let starts =
        std::iter::once(model).chain(model.match_indices(['/', '.', ':']).filter_map(|(at, _)| model.get(at + 1..)));
    starts
        .filter_map(|model| model.strip_prefix(name))
        .any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// How many tokens the descriptions of tools may take for one model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    model: String,
    context: u64,
    tokens: u64,
}

impl Budget {
    /// The name of the model.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The whole context, in tokens.
    #[must_use]
    pub const fn context(&self) -> u64 {
        self.context
    }

    /// The share of it that tools may take: [`TOOL_SHARE_PERCENT`], rounded down.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// How much these tools use of it.
    #[must_use]
    pub fn usage(&self, tools: &[Arc<Tool>]) -> Usage {
        let tools: Vec<_> = tools.iter().map(|tool| (Arc::clone(tool), tokens_of_tool(tool))).collect();
        let used = tools.iter().fold(0u64, |sum, (_, tokens)| sum.saturating_add(*tokens));
        Usage { budget: self.clone(), used, tools }
    }

    /// The tools that fit, taken in order; those of the names in `first` before the others. A tool that does not fit is left
    /// out, and a smaller one after it may still get in. Names that no tool has don't matter.
    #[must_use]
    pub fn select<N: AsRef<str>>(&self, tools: &[Arc<Tool>], first: &[N]) -> Selection {
        let is_first = |tool: &&Arc<Tool>| first.iter().any(|name| name.as_ref() == tool.name());
        let mut selection = Selection { budget: self.clone(), used: 0, selected: Vec::new(), excluded: Vec::new() };
        for tool in tools.iter().filter(is_first).chain(tools.iter().filter(|tool| !is_first(tool))) {
            let used = selection.used.saturating_add(tokens_of_tool(tool));
            if used <= self.tokens {
                selection.used = used;
                selection.selected.push(Arc::clone(tool));
            } else {
                selection.excluded.push(Arc::clone(tool));
            }
        }
        selection
    }
}

/// The tools that fit into a budget.
#[derive(Clone, Debug)]
pub struct Selection {
    budget: Budget,
    used: u64,
    selected: Vec<Arc<Tool>>,
    excluded: Vec<Arc<Tool>>,
}

impl Selection {
    /// The tools that fit, in the order in which they were taken.
    #[must_use]
    pub fn selected(&self) -> &[Arc<Tool>] {
        &self.selected
    }

    /// The others, in order.
    #[must_use]
    pub fn excluded(&self) -> &[Arc<Tool>] {
        &self.excluded
    }

    /// How many tokens the selected tools take.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// The budget.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What a host should log when tools were left out: how many, and the names of the first five.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let excluded = self.excluded.len();
        let names: Vec<_> = self.excluded.iter().take(WARNED).map(|tool| tool.name()).collect();
        let more = if excluded > WARNED { ", ..." } else { "" };
        (excluded > 0).then(|| {
            let Budget { model, tokens, .. } = &self.budget;
            let tools = if excluded == 1 { "1 tool does" } else { &format!("{excluded} tools do") };
            format!("{tools} not fit into the {tokens} tokens for {model}: {}{more}", names.join(", "))
        })
    }
}

/// How much some tools use of a budget. `Display` is a report for people, with the ten largest.
#[derive(Clone, Debug)]
pub struct Usage {
    budget: Budget,
    used: u64,
    tools: Vec<(Arc<Tool>, u64)>,
}

impl Usage {
    /// Whether the tools fit.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.used <= self.budget.tokens
    }

    /// How many tokens they take.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// By how many tokens they are over the budget.
    #[must_use]
    pub const fn overflow(&self) -> u64 {
        self.used.saturating_sub(self.budget.tokens)
    }

    /// How much of the budget they use, in percent with two decimals, rounded. A budget of nothing is used in full by
    /// anything.
    #[must_use]
    pub fn percent(&self) -> f64 {
        match (self.used, self.budget.tokens) {
            (0, _) => 0.0,
            (_, 0) => 100.0,
            (used, budget) => (used as f64 * 10_000.0 / budget as f64).round() / 100.0,
        }
    }

    /// The tools, each with its tokens.
    pub fn tools(&self) -> impl Iterator<Item = (&Tool, u64)> {
        self.tools.iter().map(|(tool, tokens)| (&**tool, *tokens))
    }

    /// The budget.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Budget { model, context, tokens } = &self.budget;
        writeln!(f, "Tokens taken by the tools")?;
        writeln!(f, "Model: {model}")?;
        writeln!(f, "Context: {context} tokens")?;
        writeln!(f, "Budget for tools ({TOOL_SHARE_PERCENT}%): {tokens} tokens")?;
        writeln!(f, "Tools: {}", self.tools.len())?;
        writeln!(f, "Used: {} tokens ({:.2}% of the budget)", self.used, self.percent())?;
        let status = match self.overflow() {
            0 => Cow::Borrowed("within the budget"),
            over => Cow::Owned(format!("over the budget by {over} tokens")),
        };
        writeln!(f, "Status: {status}")?;
        let mut largest: Vec<_> = self.tools().collect();
        largest.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
        writeln!(f, "Largest:")?;
        largest.iter().take(REPORTED).try_for_each(|(tool, tokens)| writeln!(f, "  - {}: {tokens} tokens", tool.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Reply;

    #[test]
    fn tokens_are_a_quarter_of_the_bytes_rounded_up() {
        let texts = ["", "abc", "abcd", "abcde", &"x".repeat(100)];
        assert_eq!(texts.map(tokens), [0, 1, 1, 2, 25]);
        assert_eq!(tokens_of_bytes(u64::MAX), u64::MAX / 4 + 1);
    }

    #[test]
    fn known_models_have_their_context() {
        let contexts = Contexts::default();
        for (model, context) in [
            ("gpt-3.5-turbo", 4_096),
            ("gpt-4", 8_192),
            ("gpt-4-32k", 32_768),
            ("gpt-4-turbo", 128_000),
            ("gpt-4o", 128_000),
            ("gpt-4o-2024-05-13", 128_000),
            ("claude-2", 100_000),
            ("claude-3-opus", 200_000),
            ("claude-3.5-sonnet", 200_000),
            ("claude-3-5-sonnet-20241022", 200_000),
            ("claude-sonnet", 200_000),
            ("claude-sonnet-5-20260101", 200_000),
            ("claude-haiku", 200_000),
            ("claude-opus", 200_000),
            ("us.anthropic.claude-opus-4-1-20250805-v1:0", 200_000),
            ("openai/gpt-4.1-mini", 1_047_576),
            ("GPT-5.1", 400_000),
            ("o1", 200_000),
            ("gemini-1.5-pro-002", 2_097_152),
            ("meta-llama/Llama-3.3-70B-Instruct", 128_000),
            ("unheard-of", DEFAULT_CONTEXT),
            ("gpt-4omega", DEFAULT_CONTEXT),
            ("o100", DEFAULT_CONTEXT),
            ("", DEFAULT_CONTEXT),
        ] {
            assert_eq!(contexts.of(model), context, "{model}");
        }
        assert!(CONTEXTS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(CONTEXTS.iter().all(|(name, _)| *name == name.to_ascii_lowercase()));
    }

    #[test]
    fn a_hosts_own_models_come_first() {
        let contexts = Contexts::default().with("gpt-4o", 1_000).with("House", 5).with("house", 6);
        assert_eq!((contexts.of("gpt-4o-mini"), contexts.of("house-2")), (1_000, 6));
    }

    #[test]
    fn budgets_are_30_percent_rounded_down() {
        let budget = |model| Contexts::default().budget(model).tokens();
        assert_eq!(["gpt-3.5-turbo", "gpt-4", "gpt-4o", "claude-opus"].map(budget), [1_228, 2_457, 38_400, 60_000]);
        assert_eq!(Contexts::default().with("all", u64::MAX).budget("all").tokens(), u64::MAX / 10 * 3 + 1);
    }

    #[test]
    fn a_report_lists_the_ten_largest_tools() {
        let tool = |nth: usize| {
            let tool = Tool::builder(format!("t{nth}.end")).description("x".repeat(nth * 40));
            Arc::new(tool.handler(|_| Ok(Reply::empty())).build().unwrap())
        };
        let tools: Vec<_> = (1..=25).map(tool).collect();
        let usage = Contexts::default().budget("gpt-4o").usage(&tools);
        let report = usage.to_string();
        assert_eq!(report.matches("  - ").count(), 10);
        assert!(
            report.contains("  - t25.end: ") && !report.contains("t15.end") && report.contains("within the budget")
        );
        assert!(usage.fits() && usage.overflow() == 0 && usage.percent() < 100.0);
        assert_eq!(usage.used(), usage.tools().map(|(_, tokens)| tokens).sum::<u64>());
        let none = Contexts::default().with("none", 0).budget("none").usage(&tools);
        assert_eq!((none.fits(), none.percent()), (false, 100.0));
        assert_eq!(Contexts::default().budget("gpt-4").usage(&[]).used(), 0);
    }
}
