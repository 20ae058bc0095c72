//! The tables of constructs, and the documents that list them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::Row;

/// Each document of `docs/importing`, with the tables that it lists.
const DOCUMENTS: &[(&str, &[&[Row]])] = &[
    ("artillery", crate::artillery::ROWS),
    ("k6", crate::k6::ROWS),
    ("mzbench", crate::mzbench::ROWS),
    ("stressgrid", crate::stressgrid::ROWS),
    ("tsung", crate::tsung::ROWS),
];

/// `THRONG_WRITE_DOCS=1` writes the tables into the documents instead of comparing them.
#[test]
fn documents_list_the_tables() {
    for (name, tables) in DOCUMENTS {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/importing/{name}.md"));
        let document = fs::read_to_string(&path).unwrap();
        let (head, rest) = document.split_once(BEGIN).expect("the document has a table of rows");
        let (_, tail) = rest.split_once(END).expect("the table of rows has an end");
        let now = format!("{head}{BEGIN}{}{END}{tail}", table(tables));
        if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
            fs::write(&path, now).unwrap();
        } else {
            assert_eq!(document, now, "THRONG_WRITE_DOCS=1 cargo test -p throng-import documents");
        }
    }
}

fn table(tables: &[&[Row]]) -> String {
    let row = |row: &Row| {
        let note = row.note.replace('|', "\\|");
        let source = match row.source {
            "" => String::new(),
            source => format!(" `{source}`"),
        };
        format!("| `{}` | {} | {note} |{source} |\n", row.construct, row.fidelity.name())
    };
    let rows: String = tables.iter().copied().flatten().map(row).collect();
    format!("\n| construct | | note | source |\n|---|---|---|---|\n{rows}")
}

#[test]
fn each_construct_has_one_row() {
    for rows in DOCUMENTS.iter().flat_map(|(_, tables)| *tables) {
        let names: HashSet<_> = rows.iter().map(|row| row.construct).collect();
        assert_eq!(names.len(), rows.len());
        assert!(rows.iter().all(|row| !row.note.is_empty()));
    }
}

const BEGIN: &str = "<!-- made from the table in the code -->\n";
const END: &str = "<!-- end of the table -->\n";
