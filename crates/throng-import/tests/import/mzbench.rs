//! MZBench's scenarios.

use crate::{import_file, show};

#[test]
fn try_all() {
    for file in ["fast_connect.bdl", "all.bdl"] {
        println!("{}\n=====", show(&import_file(&format!("mzbench/{file}"))));
    }
}
