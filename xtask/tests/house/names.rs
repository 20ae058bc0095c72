//! Names of types: each public one stands for one thing.

use std::collections::BTreeMap;
use std::fs;

use syn::visit::{self, Visit};
use syn::{Ident, ItemMod, Visibility};

/// Words so broad that more than one type of the name sends a reader to the wrong one.
const ONCE_AT_MOST: &[&str] = &["Ask", "Conn", "Limits", "Plan", "Server", "Watch"];

/// Names that were home-made, and what is said instead.
const REPLACED: &[(&str, &str)] = &[
    ("Beat", "RecorderLoop"),
    ("Case", "RunView"),
    ("Corewide", "HandlerContext"),
    ("Desk", "CoreContext"),
    ("Doing", "UserState"),
    ("Floor", "CoreOps"),
    ("Harm", "Impact"),
    ("Hatch", "FdChannel"),
    ("Moment", "Sample"),
    ("Parcel", "CoreMessageKind"),
    ("Pens", "EncodeBuffers"),
    ("Prober", "ProbeLedger"),
    ("Shell", "CoreIo"),
    ("Slate", "CoreStats"),
    ("Spread", "Quantiles"),
    ("Standing", "ConnStatus"),
    ("Teller", "EventSink"),
];

/// Past participles say that something was done, not what there is.
const PARTICIPLES: &[&str] = &[
    "Accepted",
    "Agreed",
    "Appended",
    "Asked",
    "Awaited",
    "Bound",
    "Calibrated",
    "Compared",
    "Connected",
    "Delivered",
    "Ended",
    "Fed",
    "Felt",
    "Found",
    "Grown",
    "Heard",
    "Held",
    "Intercepted",
    "Joined",
    "Kept",
    "Left",
    "Measured",
    "Missed",
    "Moved",
    "Posted",
    "Queued",
    "Reconciled",
    "Refused",
    "Rejected",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Taken",
    "Told",
    "Unanswered",
    "Unfinished",
    "Used",
    "Watched",
];

#[test]
fn a_public_type_has_its_name_for_itself() {
    let types = types();
    let mut wrong = Vec::new();
    for (name, places) in &types {
        let public = places.iter().filter(|place| place.is_public).count();
        if public > 1 || (ONCE_AT_MOST.contains(&name.as_str()) && places.len() > 1) {
            let files: Vec<_> = places.iter().map(|place| place.file.as_str()).collect();
            wrong.push(format!("{name}: {}", files.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "names of more than one type:\n{}", wrong.join("\n"));
}

#[test]
fn no_type_has_a_name_that_was_replaced_or_says_only_that_something_was_done() {
    let types = types();
    let mut wrong = Vec::new();
    for (old, new) in REPLACED {
        let places = types.get(*old).into_iter().flatten();
        wrong.extend(places.map(|place| format!("{old} in {}: say {new}", place.file)));
    }
    for name in PARTICIPLES {
        let places = types.get(*name).into_iter().flatten();
        wrong.extend(places.map(|place| format!("{name} in {}: name the thing", place.file)));
    }
    assert!(wrong.is_empty(), "names of types:\n{}", wrong.join("\n"));
}

/// Where a type is defined.
struct Place {
    file: String,
    is_public: bool,
}

/// Every type of the crates and `xtask`, by its name, but for those that tests define.
fn types() -> BTreeMap<String, Vec<Place>> {
    let mut types: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for file in crate::sources() {
        if !file.components().any(|part| part.as_os_str() == "src") {
            continue;
        }
        let syntax = syn::parse_file(&fs::read_to_string(&file).unwrap()).unwrap();
        let mut found = Types::default();
        found.visit_file(&syntax);
        let file = file.strip_prefix(crate::root()).unwrap().display().to_string();
        let is_test = file.ends_with("tests.rs") || file.ends_with("models.rs");
        for (name, is_public) in found.0.into_iter().filter(|_| !is_test) {
            types.entry(name).or_default().push(Place { file: file.clone(), is_public });
        }
    }
    types
}

/// The types that a file defines, and whether each is public.
#[derive(Default)]
struct Types(Vec<(String, bool)>);

impl Types {
    fn add(&mut self, ident: &Ident, visibility: &Visibility) {
        self.0.push((ident.to_string(), matches!(visibility, Visibility::Public(_))));
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident, &item.vis);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident, &item.vis);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.ident, &item.vis);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !crate::modules::is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
}
