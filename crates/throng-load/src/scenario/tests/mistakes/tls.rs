//! Mistakes in `tls`.

use super::whole;
use crate::scenario::Scenario;

/// Returns a scenario whose block `tls` is this.
fn text(target: &str, tls: &str) -> String {
    format!(
        "target: {target}\ntls: {tls}\nload: [ramp: {{to: 1, over: 1s}}]\nuser: [connect, stay]\n"
    )
}

#[test]
fn a_plain_target_has_no_tls() {
    insta::assert_snapshot!(whole(&text("ws://h:1/", "{verify: none}")), @r#"
error: `tls` needs a target over TLS
 --> test.yaml:2:1
  |
2 | tls: {verify: none}
  | ^^^ the target is plain: over TLS it is `wss://`
"#);
}

#[test]
fn a_wrong_key_of_tls() {
    insta::assert_snapshot!(whole(&text("wss://h/", "{verfy: none}")), @r#"
error: unknown key `verfy` in `tls`
 --> test.yaml:2:7
  |
2 | tls: {verfy: none}
  |       ^^^^^ did you mean `verify`?
  |
  = help: expected one of: `ca`, `verify`, `server_name`, `min`, `max`, `ciphers`, `alpn`, `client`, `resume`, `tickets`
"#);
}

#[test]
fn a_wrong_value_of_tls_is_pointed_at() {
    for (tls, at, says) in [
        ("{min: 1.1}", "1.1", "unknown `min` `1.1`"),
        ("{max: 2}", "2", "expected one of: `1.2`, `1.3`"),
        ("{min: 1.3, max: 1.2}", "1.3", "no version of TLS is left"),
        ("{verify: never}", "never", "expected one of: `none`, `full`"),
        ("{ca: no-such.pem}", "no-such.pem", "cannot use `no-such.pem`: "),
        ("{server_name: a b}", "a b", "`a b` is neither a host name nor an address"),
        ("{resume: 120%}", "120%", "at most 100%"),
        ("{resume: yes}", "yes", "a share such as"),
        ("{alpn: h2}", "h2", "`alpn` must be a list"),
        ("{ciphers: AES}", "AES", "`ciphers` must be a list"),
        ("{ciphers: []}", "[]", "`ciphers` is empty"),
        ("{ciphers: [AES128-SHA]}", "AES128-SHA", "the cipher `AES128-SHA` is not supported"),
        ("{ciphers: [TLS13_AES_128_GCM_SHA256], max: 1.2}", "1.2", "no version of TLS is left"),
    ] {
        let shown = whole(&text("wss://h/", tls));
        assert!(shown.contains(says), "{tls}: {shown}");
        let source = format!("tls: {tls}");
        let column = source.find(at).unwrap() + 1;
        assert!(shown.contains(&format!(" --> test.yaml:2:{column}\n")), "{tls}: {shown}");
    }
}

#[test]
fn the_file_of_authorities_counts_from_the_scenario_and_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("scenario.yaml");
    let parse = |tls: &str| Scenario::parse(&text("wss://h/", tls), name.to_str().unwrap());
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    let wrong = parse("{ca: empty.pem}").unwrap_err().render(false);
    assert!(wrong.contains("empty.pem has no certificate"), "{wrong}");
    let wrong = parse("{ca: empty.pem, verify: none}").unwrap_err().render(false);
    assert!(wrong.contains("`ca` has no meaning with `verify: none`"), "{wrong}");
    let pair = throng_tls::SelfSigned::new(&["h".to_owned()]).unwrap().pair;
    std::fs::write(folder.path().join("ca.pem"), pair.chain.text()).unwrap();
    let scenario = parse("{ca: ca.pem}").unwrap();
    assert_eq!(scenario.files, [folder.path().join("ca.pem")]);
}

#[test]
fn a_certificate_that_nothing_verifies_is_warned_of() {
    let source = text("wss://h/", "{verify: none}");
    let program = crate::program::Program::compile(&Scenario::parse(&source, "t.yaml").unwrap());
    let shown = program.warnings("t.yaml", &source).render(false);
    insta::assert_snapshot!(shown, @r#"
warning: the server's certificate is not verified
 --> t.yaml:2:15
  |
2 | tls: {verify: none}
  |               ^^^^ any server is taken for the right one
  |
  = help: name its authority instead: `ca: FILE`
"#);
}

#[test]
fn ciphers_have_the_names_of_the_field() {
    let parse = |names: &str| {
        let tls = format!("{{ciphers: [{names}], verify: none}}");
        let scenario = Scenario::parse(&text("wss://h/", &tls), "t.yaml").unwrap();
        let options = scenario.tls.options(&scenario.target);
        options.ciphers.iter().map(|cipher| cipher.name).collect::<Vec<_>>()
    };
    assert_eq!(
        parse("ECDHE-RSA-AES128-GCM-SHA256, TLS13_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256"),
        ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"]
    );
}

#[test]
fn the_files_of_users_are_checked_with_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("scenario.yaml");
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
    let [one, other] = [(); 2].map(|()| throng_tls::SelfSigned::new(&["h".to_owned()]).unwrap());
    write("a.pem", &[one.pair.chain.text(), b"\n", one.pair.key.text()].concat());
    write("b.pem", other.pair.chain.text());
    write("users.csv", b"cert\na.pem\nb.pem\nc.pem\nd.pem\n");
    let parse = |users: u32| {
        let text = text("wss://h/", "{client: {cert: \"${row.cert}\"}}");
        let text = text.replace("to: 1", &format!("to: {users}"));
        Scenario::parse(&format!("data: users.csv\n{text}"), name.to_str().unwrap())
    };
    assert_eq!(parse(1).unwrap().files.len(), 2, "the files of users that never come are not read");
    let wrong = parse(9).unwrap_err().render(false);
    let wrong = wrong.replace(&format!("{}/", folder.path().display()), "");
    for says in [
        "row 2 of users.csv: ",
        "b.pem has no private key",
        "row 3 of users.csv: ",
        "c.pem cannot be read",
        "scenario.yaml:3:22",
    ] {
        assert!(wrong.contains(says), "no `{says}` in {wrong}");
    }
}

#[test]
fn a_user_shows_the_same_certificate_each_time() {
    for path in ["${random(1,9)}.pem", "${counter}.pem", "${uuid()}.pem"] {
        let shown = whole(&text("wss://h/", &format!("{{client: {{cert: \"{path}\"}}}}")));
        assert!(shown.contains("`cert` may differ for one user"), "{shown}");
    }
    let shown = whole(&text("wss://h/", "{client: {key: a.pem}}"));
    assert!(shown.contains("`client` has no `cert`"), "{shown}");
    let shown = whole(&text("wss://h/", "{tickets: all}"));
    assert!(shown.contains("expected one of: `user`, `core`"), "{shown}");
}
