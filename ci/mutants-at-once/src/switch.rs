//! Source text in which mutants can be switched on while it runs.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned as _;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, BinOp, Block, Expr, ImplItemFn, ItemConst, ItemFn, ItemStatic, Pat, PatGuard, Signature, Stmt, TraitItemFn,
    parse_quote,
};

use crate::mutant::{Genre, Mutant, Place};

/// A file with its mutants in it.
pub(crate) struct Switched {
    /// The text, which calls `crate::mutant()` for the number of the one that is on.
    pub(crate) text: String,
    /// The mutants that are in it.
    pub(crate) placed: BTreeSet<u32>,
    /// Those of them that stand in a constant, or in a function that constants may call.
    pub(crate) constant: BTreeSet<u32>,
}

/// Puts `mutants` into the text of a file, all but those `without`.
pub(crate) fn switch(text: &str, mutants: &[&Mutant], without: &BTreeSet<u32>) -> Result<Switched, syn::Error> {
    let mut file = syn::parse_file(text)?;
    let wanted = mutants.iter().filter(|mutant| !without.contains(&mutant.id));
    let mut by_place: BTreeMap<(Genre, Place), Vec<&Mutant>> = BTreeMap::new();
    let mut values = Vec::new();
    for mutant in wanted {
        match mutant.genre {
            Genre::FnValue => values.push(*mutant),
            genre => by_place.entry((genre, mutant.start)).or_default().push(mutant),
        }
    }
    let mut walk =
        Walk { by_place, values, placed: BTreeSet::new(), constant: BTreeSet::new(), constants: 0, fixed: 0 };
    walk.visit_file_mut(&mut file);
    Ok(Switched { text: prettyplease::unparse(&file), placed: walk.placed, constant: walk.constant })
}

struct Walk<'m> {
    by_place: BTreeMap<(Genre, Place), Vec<&'m Mutant>>,
    values: Vec<&'m Mutant>,
    placed: BTreeSet<u32>,
    constant: BTreeSet<u32>,
    /// How many constants and constant functions are around.
    constants: u32,
    /// How many types and patterns are around, in which no mutant can be chosen.
    fixed: u32,
}

fn place(span: Span) -> Place {
    let LineColumn { line, column } = span.start();
    Place { line, column: column + 1 }
}

fn id(mutant: &Mutant) -> syn::LitInt {
    syn::LitInt::new(&format!("{}u32", mutant.id), Span::call_site())
}

impl<'m> Walk<'m> {
    fn take(&mut self, genre: Genre, span: Span) -> Vec<&'m Mutant> {
        if self.fixed > 0 {
            return Vec::new();
        }
        let found = self.by_place.remove(&(genre, place(span))).unwrap_or_default();
        found.iter().for_each(|mutant| self.put(mutant.id));
        found
    }

    fn put(&mut self, id: u32) {
        self.placed.insert(id);
        if self.constants > 0 {
            self.constant.insert(id);
        }
    }

    fn body(&mut self, block: &mut Block, signature: &Signature) {
        let (start, end) = (place(block.span()), {
            let LineColumn { line, column } = block.brace_token.span.close().start();
            Place { line, column: column + 1 }
        });
        let constants = u32::from(signature.constness.is_some());
        self.constants += constants;
        visit_mut::visit_block_mut(self, block);
        let (inside, others): (Vec<&Mutant>, Vec<&Mutant>) = std::mem::take(&mut self.values)
            .into_iter()
            .partition(|mutant| mutant.start >= start && mutant.start <= end);
        self.values = others;
        for (at, mutant) in inside.into_iter().enumerate() {
            let Ok(value) = syn::parse_str::<Expr>(&mutant.replacement) else { continue };
            let id = id(mutant);
            let stmt: Stmt = parse_quote! { if crate::mutant() == #id { return #value; } };
            block.stmts.insert(at, stmt);
            self.put(mutant.id);
        }
        self.constants -= constants;
    }
}

/// Whether an operand belongs to a chain with `let`, which is no expression of its own.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl VisitMut for Walk<'_> {
    fn visit_item_fn_mut(&mut self, item: &mut ItemFn) {
        self.body(&mut item.block, &item.sig);
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut ImplItemFn) {
        self.body(&mut item.block, &item.sig);
    }

    fn visit_trait_item_fn_mut(&mut self, item: &mut TraitItemFn) {
        if let Some(block) = &mut item.default {
            self.body(block, &item.sig);
        }
    }

    fn visit_item_const_mut(&mut self, item: &mut ItemConst) {
        self.constants += 1;
        visit_mut::visit_item_const_mut(self, item);
        self.constants -= 1;
    }

    fn visit_item_static_mut(&mut self, item: &mut ItemStatic) {
        self.constants += 1;
        visit_mut::visit_item_static_mut(self, item);
        self.constants -= 1;
    }

    fn visit_impl_item_const_mut(&mut self, item: &mut syn::ImplItemConst) {
        self.constants += 1;
        visit_mut::visit_impl_item_const_mut(self, item);
        self.constants -= 1;
    }

    fn visit_expr_const_mut(&mut self, expr: &mut syn::ExprConst) {
        self.constants += 1;
        visit_mut::visit_expr_const_mut(self, expr);
        self.constants -= 1;
    }

    fn visit_type_mut(&mut self, ty: &mut syn::Type) {
        self.fixed += 1;
        visit_mut::visit_type_mut(self, ty);
        self.fixed -= 1;
    }

    fn visit_generic_argument_mut(&mut self, argument: &mut syn::GenericArgument) {
        self.fixed += 1;
        visit_mut::visit_generic_argument_mut(self, argument);
        self.fixed -= 1;
    }

    fn visit_expr_repeat_mut(&mut self, expr: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut expr.expr);
        self.constants += 1;
        self.visit_expr_mut(&mut expr.len);
        self.constants -= 1;
    }

    fn visit_pat_mut(&mut self, pat: &mut Pat) {
        // A guard, and nothing else of a pattern, is looked at while it runs.
        let fixed = u32::from(!matches!(pat, Pat::Guard(_)));
        self.fixed += fixed;
        visit_mut::visit_pat_mut(self, pat);
        self.fixed -= fixed;
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // What a mutant changes is the expression as it was: no two are ever on at once.
        let plain = expr.clone();
        match &plain {
            Expr::Binary(binary) if !has_let(&plain) => {
                let mutants = self.take(Genre::BinaryOperator, binary.op.span());
                visit_mut::visit_expr_mut(self, expr);
                for mutant in mutants {
                    let Ok(op) = syn::parse_str::<BinOp>(&mutant.replacement) else { continue };
                    let mut other = binary.clone();
                    other.op = op;
                    let id = id(mutant);
                    *expr = parse_quote! { (if crate::mutant() == #id { #other } else { #expr }) };
                }
            }
            Expr::Unary(unary) => {
                let mutants = self.take(Genre::UnaryOperator, unary.op.span());
                visit_mut::visit_expr_mut(self, expr);
                for mutant in mutants {
                    let (id, inner) = (id(mutant), &unary.expr);
                    *expr = parse_quote! { (if crate::mutant() == #id { #inner } else { #expr }) };
                }
            }
            Expr::Struct(whole) => {
                let mutants: Vec<_> = whole
                    .fields
                    .iter()
                    .enumerate()
                    .flat_map(|(at, field)| {
                        self.take(Genre::StructField, field.span()).into_iter().map(move |mutant| (at, mutant))
                    })
                    .collect();
                visit_mut::visit_expr_mut(self, expr);
                for (at, mutant) in mutants {
                    let mut other = whole.clone();
                    other.fields = whole
                        .fields
                        .iter()
                        .enumerate()
                        .filter(|(n, _)| *n != at)
                        .map(|(_, field)| field.clone())
                        .collect();
                    if !other.fields.is_empty() {
                        other.fields.push_punct(parse_quote! { , });
                    }
                    let id = id(mutant);
                    *expr = parse_quote! { (if crate::mutant() == #id { #other } else { #expr }) };
                }
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_pat_guard_mut(&mut self, pat: &mut PatGuard) {
        self.fixed += 1;
        self.visit_pat_mut(&mut pat.pat);
        self.fixed -= 1;
        self.visit_expr_mut(&mut pat.guard);
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        let deleted = self.take(Genre::MatchArm, arm.span());
        let guards = match &arm.pat {
            Pat::Guard(pat) if !has_let(&pat.guard) => self.take(Genre::MatchArmGuard, pat.guard.span()),
            _ => Vec::new(),
        };
        visit_mut::visit_arm_mut(self, arm);
        for mutant in guards {
            let Pat::Guard(PatGuard { guard, .. }) = &mut arm.pat else { continue };
            let Ok(value) = syn::parse_str::<Expr>(&mutant.replacement) else { continue };
            let id = id(mutant);
            **guard = parse_quote! { (if crate::mutant() == #id { #value } else { #guard }) };
        }
        for mutant in deleted {
            let id = id(mutant);
            match &mut arm.pat {
                Pat::Guard(PatGuard { guard, .. }) if has_let(guard) => {
                    **guard = parse_quote! { crate::mutant() != #id && #guard };
                }
                Pat::Guard(PatGuard { guard, .. }) => **guard = parse_quote! { crate::mutant() != #id && (#guard) },
                pat => {
                    *pat = Pat::Guard(PatGuard {
                        attrs: Vec::new(),
                        pat: Box::new(pat.clone()),
                        if_token: parse_quote! { if },
                        guard: parse_quote! { crate::mutant() != #id },
                    });
                }
            }
        }
    }
}
