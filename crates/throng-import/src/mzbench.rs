//! MZBench: scenarios in benchDL (`.bdl`) and in terms of Erlang, with the article's `tcp_worker`.
//!
//! Both forms become one tree of calls ([`tree`]). Pools become classes of users, `worker_start`
//! the phases of the load, and statements the steps of a class.

mod bdl;
mod context;
mod directives;
mod loops;
mod message;
mod pool;
mod rows;
mod start;
mod statement;
mod terms;
mod tree;
mod value;

use crate::draft::Draft;
use crate::importer::Importer;
use crate::source::Source;
use crate::translator::Translator;
use context::Context;
use tree::Tree;

pub(crate) const MZBENCH: Importer = Importer {
    tool: "MZBench",
    reads: "scenarios in benchDL and in Erlang terms, of the tcp_worker",
    program: None,
    recognises,
    read,
};

/// Constructs that become the same wherever they stand.
#[cfg(test)]
pub(crate) const ROWS: &[&[crate::row::Row]] =
    &[rows::DIRECTIVES, rows::LOOP_OPTIONS, rows::STATEMENTS];

fn recognises(source: &Source<'_>) -> bool {
    let text = source.text;
    let has_pool = ["{pool", "pool("].iter().any(|pool| text.contains(pool));
    text.trim_start().starts_with("#!benchDL")
        || source.extension() == "bdl"
        || has_pool && text.contains("worker_type")
}

/// Reports whether the file is benchDL rather than a term of Erlang.
fn is_bdl(source: &Source<'_>) -> bool {
    let text = source.text.trim_start();
    text.starts_with("#!benchDL")
        || source.extension() == "bdl"
        || !text.starts_with(['[', '{', '%'])
}

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let source = translator.source;
    let tree: Tree = if is_bdl(&source) {
        bdl::parse(source.text, &mut translator.mistakes)?
    } else {
        translator.accept(terms::parse(source.text))?
    };
    let mut cx = Context::new(translator, tree.comments);
    let pools = directives::read(&mut cx, &tree.statements);
    pool::translate(&mut cx, &pools)
}
