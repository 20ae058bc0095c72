//! Kinds of errors are named in one table.

use std::fs;

use throng_measure::ErrorKind;

#[test]
fn no_kind_of_error_is_named_outside_the_table() {
    // A name of one word is a word of other languages, too: `"timeout"` is a key of scenarios.
    let names = ErrorKind::all().map(ErrorKind::name).filter(|name| name.contains('_'));
    let names: Vec<_> = names.map(|name| format!("\"{name}\"")).collect();
    let mut found = Vec::new();
    for file in crate::sources() {
        if file.ends_with("throng-measure/src/error_kind.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let named = names.iter().filter(|name| text.contains(name.as_str())).cloned();
        let made = ["\"http_", "\"http_status.", "\"ws_close_"].into_iter().filter_map(|begin| {
            let behind = text.split(begin).skip(1).find(|rest| {
                let value = rest.split('"').next().unwrap_or_default();
                value.is_empty() || value.starts_with(['{', '0', '1', '2', '3', '4', '5', '6'])
            })?;
            Some(format!("{begin}{}", behind.split('"').next().unwrap_or_default()))
        });
        found.extend(named.chain(made).map(|name| format!("{}: {name}", file.display())));
    }
    assert!(found.is_empty(), "use throng_measure::ErrorKind:\n{}", found.join("\n"));
}
