//! tsung's XML.

use crate::{import_file, import_text, show, show_mistakes};

#[test]
fn the_file_of_the_phoenix_article() {
    insta::assert_snapshot!(show(&import_file("tsung/phoenix.xml")), @"");
}

#[test]
fn the_file_of_the_haskell_article() {
    insta::assert_snapshot!(show(&import_file("tsung/haskell.xml")), @"");
}

#[test]
fn raw_sessions() {
    insta::assert_snapshot!(show(&import_file("tsung/raw.xml")), @"");
}

#[test]
fn requests_of_http() {
    insta::assert_snapshot!(show(&import_file("tsung/shop.xml")), @"");
}
