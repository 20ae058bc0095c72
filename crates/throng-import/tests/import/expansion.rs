//! Files that are small as they are written, and large with values in the places of their names.

use throng_import::{ImportOptions, import};

/// Checks that a file is refused, at `place`, by the limit of its expansion.
fn check(name: &str, text: &str, place: &str) {
    let mistakes = import(text, name, &ImportOptions::default()).unwrap_err();
    let all: Vec<_> = mistakes.iter().collect();
    assert_eq!(all.len(), 1, "{name}: {:?}", all.iter().map(|one| &one.title).collect::<Vec<_>>());
    assert!(all[0].title.contains("too long once"), "{name}: {}", all[0].title);
    assert!(all[0].label.contains("the file"), "{name}: {}", all[0].label);
    assert_eq!(&text[all[0].span.clone()], place, "{name}");
}

#[test]
fn entities_of_tsung() {
    let text = format!(
        "<!DOCTYPE tsung [<!ENTITY b \"{}\">]>\n<tsung><x a=\"{}\"/></tsung>",
        "x".repeat(20_000),
        "&b;".repeat(20_000)
    );
    check("many.xml", &text, "&b;");
}

#[test]
fn constants_of_k6() {
    let big = "x".repeat(100_000);
    let parts = "${A}".repeat(400);
    let text = format!(
        "import http from 'k6/http';\nconst A = '{big}';\nconst B = `{parts}`;\nexport const \
         options = {{ vus: 1, duration: '1s' }};\nexport default function () {{\n  \
         http.post('http://h:1/', B);\n}}\n"
    );
    check("many.js", &text, "A");
}

#[test]
fn variables_of_artillery() {
    let head = "config:\n  target: http://h:1\n  phases: [{duration: 1, arrivalRate: 1}]\n";
    let big = "x".repeat(100_000);
    let steps = "      - post: {url: /, body: \"{{ big }}\"}\n".repeat(400);
    let text = format!("{head}  variables: {{big: {big}}}\nscenarios:\n  - flow:\n{steps}");
    check("many.yml", &text, "\"{{ big }}\"");
    let steps = "      - get: {url: /, name: x}\n".repeat(400);
    let text =
        format!("{head}  defaults: {{headers: {{x: {big}}}}}\nscenarios:\n  - flow:\n{steps}");
    check("many.yml", &text, "url");
}

#[test]
fn bindings_of_stressgrid() {
    let head = format!("# sgcli run a b.exs -t h\nget(\"/\")\na = \"{}\"\n", "x".repeat(1_000));
    check("many.exs", &format!("{head}{}", "a = a <> a\n".repeat(40)), "a");
    let lists: String = (0..40).map(|n| format!("l{} = [l{n}, l{n}]\n", n + 1)).collect();
    check("many.exs", &format!("{head}l0 = [a]\n{lists}put(\"/\", [], {{:json, l40}})\n"), "a");
}

#[test]
fn defaults_of_mzbench() {
    let big = "x".repeat(100_000);
    let steps = "    request_sync(var(\"big\"))\n".repeat(400);
    let text = format!(
        "#!benchDL\ndefaults(\"big\" = \"{big}\")\npool(size = 1, worker_type = tcp_worker):\n    \
         connect_sync(\"127.0.0.1\", 4444)\n{steps}"
    );
    check("many.bdl", &text, "var(\"big\")");
}

/// Values that stand for themselves many times are no fault.
#[test]
fn many_small_values_are_imported() {
    let steps = "  http.get(BASE + C.path);\n".repeat(2_000);
    let text = format!(
        "import http from 'k6/http';\nconst BASE = 'http://127.0.0.1:8080';\nconst C = {{ path: \
         '/a', other: '{}' }};\nexport const options = {{ vus: 1, duration: '1s' }};\nexport \
         default function () {{\n{steps}}}\n",
        "x".repeat(100_000)
    );
    let import = import(&text, "many.js", &ImportOptions::default()).unwrap();
    assert_eq!(import.scenario.matches("get: /a").count(), 2_000);
}
