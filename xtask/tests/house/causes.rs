//! The README says how many causes the diagnosis is tested with.

use std::collections::BTreeSet;
use std::fs;

#[test]
fn the_readme_counts_the_causes_of_both_matrices() {
    let read = |path: &str| fs::read_to_string(crate::root().join(path)).unwrap();
    let document = read("docs/confusion-matrix.md");
    let matrices = document.split("<!-- begin of the ").skip(1);
    let rows = matrices.flat_map(|rest| rest.split("<!-- end").next().unwrap().lines().skip(3));
    let expected = rows.filter_map(|row| row.strip_prefix('|')?.split(" | ").nth(2));
    let causes: BTreeSet<_> = expected.filter(|id| id.starts_with('`')).collect();
    let claim = format!("[{} causes](docs/confusion-matrix.md)", causes.len());
    assert!(read("README.md").contains(&claim), "README.md should say: {claim}");
}
