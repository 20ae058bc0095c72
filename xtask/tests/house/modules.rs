//! Modules that know each other in a circle: a change in one of them may reach all of them.
//!
//! Two or three may: a module and what it is made of. A longer circle has no first module to read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// Circles that stay, with the reason. A circle may shrink; a module that joins one fails the test.
const ALLOWED: &[Circle] = &[
    Circle {
        krate: "throng-doctor",
        modules: &["plan", "plan::assumptions", "plan::costs", "plan::fleet"],
        reason: "the plan's own parts work on the plan's types",
    },
    Circle {
        krate: "throng-load",
        modules: &["program", "program::dialogue", "program::trial", "program::unread"],
        reason: "each answers one question about a whole program, as a method of it",
    },
    Circle {
        krate: "throng-server",
        modules: &[
            "channels::broadcast",
            "channels::channel",
            "channels::client",
            "channels::client_state",
            "channels::config",
            "channels::core_state",
            "channels::frame",
            "channels::longpoll::session",
            "channels::message",
            "channels::socket",
        ],
        reason: "a channel's callbacks may reach each part of its connection",
    },
    Circle {
        krate: "throng-report",
        modules: &[
            "summary",
            "summary::fold",
            "summary::fold::load",
            "summary::server",
            "threshold",
            "threshold::measurand",
            "threshold::metric",
        ],
        reason: "thresholds are judged by a summary, and a summary says where they were missed",
    },
    Circle {
        krate: "throng-sim",
        modules: &["readiness", "socket", "stream", "world"],
        reason: "sockets act on the world that holds them",
    },
];

/// Modules of one crate that know each other in a circle.
struct Circle {
    krate: &'static str,
    modules: &'static [&'static str],
    #[expect(dead_code, reason = "it is for the reader")]
    reason: &'static str,
}

#[test]
fn modules_form_no_circle_that_is_not_in_the_table() {
    let mut wrong = Vec::new();
    for (krate, modules) in crates() {
        for circle in modules.circles() {
            if !is_allowed(&krate, &circle) {
                wrong.push(format!(
                    "{krate}: {}\n{}",
                    circle.join(", "),
                    modules.edges_in(&circle)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "circles of modules:\n{}", wrong.join("\n"));
}

fn is_allowed(krate: &str, circle: &[String]) -> bool {
    ALLOWED.iter().any(|allowed| {
        allowed.krate == krate && circle.iter().all(|name| allowed.modules.contains(&name.as_str()))
    })
}

fn crates() -> Vec<(String, Modules)> {
    let folder = crate::root().join("crates");
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    all.iter().map(|path| (name(path), Modules::read(&path.join("src")))).collect()
}

/// The modules of a crate by their paths, the root's being empty.
#[derive(Default)]
struct Modules(BTreeMap<Name, Module>);

/// A module's path below the crate.
type Name = Vec<String>;

/// What a file says of others.
#[derive(Default)]
struct Module {
    /// Names of the items that it defines.
    items: BTreeSet<String>,
    /// Names that `use` brings, and the whole path of each.
    imports: BTreeMap<String, Name>,
    /// Paths that are named, by `use` or in place.
    paths: BTreeSet<Name>,
}

impl Modules {
    fn read(src: &Path) -> Self {
        let mut modules = Self::default();
        let root = ["lib.rs", "main.rs"].map(|name| src.join(name));
        let root = root.iter().find(|path| path.exists()).expect("a crate has a root");
        modules.add(root, src, Vec::new());
        modules
    }

    /// Adds the module in `file`, and those that it declares, which are below `folder`.
    fn add(&mut self, file: &Path, folder: &Path, name: Name) {
        let syntax = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
        let mut module = Module::default();
        for item in &syntax.items {
            match item {
                Item::Mod(child) if is_for_tests(&child.attrs) => {}
                Item::Mod(ItemMod { ident, content: None, .. }) => {
                    let (ident, mut child) = (ident.to_string(), name.clone());
                    child.push(ident.clone());
                    self.add(&folder.join(format!("{ident}.rs")), &folder.join(&ident), child);
                }
                other => {
                    module.items.extend(defined(other));
                    module.visit_item(other);
                }
            }
        }
        self.0.insert(name, module);
    }

    /// Groups of more than [`CIRCLE_MAX`] modules each of which leads to all others of its group.
    fn circles(&self) -> Vec<Vec<String>> {
        let reached: BTreeMap<&Name, BTreeSet<Name>> =
            self.0.keys().map(|name| (name, self.reached(name))).collect();
        let mut circles = BTreeSet::new();
        for (name, from_it) in &reached {
            let mut circle: Vec<String> =
                from_it.iter().filter(|other| reached[*other].contains(*name)).map(shown).collect();
            circle.sort();
            if circle.len() > CIRCLE_MAX {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    /// All modules to which a module leads, over any number of steps.
    fn reached(&self, name: &Name) -> BTreeSet<Name> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![name.clone()]);
        while let Some(module) = open.pop() {
            for next in self.known(&module) {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    }

    /// The modules that a module names.
    fn known(&self, name: &Name) -> BTreeSet<Name> {
        let paths = self.0[name].paths.iter();
        let mut known: BTreeSet<Name> = paths.filter_map(|path| self.home(name, path, 0)).collect();
        known.remove(name);
        known
    }

    /// The module in which the item of a path is defined, followed through re-exports.
    fn home(&self, from: &Name, path: &Name, depth: usize) -> Option<Name> {
        let (mut at, mut rest) = self.start(from, path)?;
        while let Some((first, others)) = rest.split_first() {
            let mut child = at.clone();
            child.push(first.clone());
            if !self.0.contains_key(&child) {
                break;
            }
            (at, rest) = (child, others);
        }
        let import = rest.first().and_then(|item| self.0[&at].import(item));
        match import {
            Some(path) if depth < REEXPORTS_MAX && at != *from => self.home(&at, path, depth + 1),
            _ => Some(at),
        }
    }

    /// Where a path begins, and what is left of it; `None` where it leads out of the crate.
    fn start<'p>(&self, from: &Name, path: &'p Name) -> Option<(Name, &'p [String])> {
        let (mut at, mut rest) = (from.clone(), path.as_slice());
        match rest.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {}
            first => {
                at.push(first.to_owned());
                let is_child = self.0.contains_key(&at);
                at.pop();
                return is_child.then_some((at, rest));
            }
        }
        while rest.first().is_some_and(|segment| segment == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        Some((at, rest))
    }

    /// Which module of a circle names which other, a line each.
    fn edges_in(&self, circle: &[String]) -> String {
        let is_in = |name: &Name| circle.contains(&shown(name));
        let lines = self.0.keys().filter(|name| is_in(name)).map(|name| {
            let others: Vec<_> = self.known(name).iter().filter(|o| is_in(o)).map(shown).collect();
            format!("    {} names {}", shown(name), others.join(", "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Module {
    /// Returns the path by which a name came here: its own, or that of a glob.
    fn import(&self, name: &str) -> Option<&Name> {
        let glob = || self.imports.get("*").filter(|_| !self.items.contains(name));
        self.imports.get(name).or_else(glob)
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for path in leaves(&item.tree, &[]) {
            self.paths.insert(path.1.clone());
            self.imports.insert(path.0, path.1);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.paths.insert(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    // `pub(in path)` names no module that this one needs.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The name of the type, trait, function or constant that an item defines.
fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The names that a `use` brings, each with its whole path; a glob's name is `*`.
fn leaves(tree: &UseTree, before: &[String]) -> Vec<(String, Name)> {
    let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident)),
        UseTree::Name(name) if name.ident == "self" => {
            vec![(before.last().cloned().unwrap_or_default(), before.to_vec())]
        }
        UseTree::Name(name) => vec![(name.ident.to_string(), with(&name.ident))],
        UseTree::Rename(rename) => vec![(rename.rename.to_string(), with(&rename.ident))],
        UseTree::Glob(_) => vec![("*".to_owned(), before.to_vec())],
        UseTree::Group(group) => group.items.iter().flat_map(|item| leaves(item, before)).collect(),
    }
}

/// Whether something is built for tests alone, or for loom's.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Meta>().is_ok_and(|meta| match meta {
                syn::Meta::Path(path) => path.is_ident("test") || path.is_ident("loom"),
                syn::Meta::List(list) => {
                    let words = list.tokens.into_iter().map(|token| token.to_string());
                    list.path.is_ident("all")
                        && words.into_iter().any(|w| w == "test" || w == "loom")
                }
                syn::Meta::NameValue(_) => false,
            })
    })
}

fn shown(name: &Name) -> String {
    if name.is_empty() { "(root)".to_owned() } else { name.join("::") }
}

/// Modules of a circle that needs no reason.
const CIRCLE_MAX: usize = 3;

/// Re-exports of re-exports that are followed.
const REEXPORTS_MAX: usize = 8;
