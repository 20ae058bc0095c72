//! The constructs around the sessions.

use throng_import::Fidelity::{Approximated, NotNeeded, NotSupported, Translated};

use super::constructs::{check, check_one, rows};
use super::file::{File, load};

#[test]
fn options() {
    let rows = rows! {
        "option thinktime" Translated: r#"name="thinktime" value="7""# => "wait: 7s";
        "option thinktime" Translated:
            r#"name="thinktime" min="1" max="2" random="true" override="true""# =>
            "wait: uniform(1s, 2s)";
        "option hibernate" NotNeeded: r#"name="hibernate" value="10""# => "";
        "option ports_range" NotNeeded: r#"name="ports_range" min="1025" max="65535""# => "";
        "option rate_limit" NotSupported: r#"name="rate_limit" value="10""# => "";
        "option seed" NotNeeded: r#"name="seed" value="1""# => "";
        "option connect_timeout" Translated:
            r#"name="connect_timeout" value="300""# => "connect: {timeout: 300ms}";
        "option max_retries" Approximated: r#"name="max_retries" value="1""# => "";
        "option max_retries" Translated: r#"name="max_retries" value="0""# => "";
        "option retry_timeout" Approximated: r#"name="retry_timeout" value="10""# => "";
        "option idle_timeout" Translated:
            r#"name="idle_timeout" value="30000""# => "expect: {bytes: 1, timeout: 30s}";
        "option global_ack_timeout" Translated: r#"name="global_ack_timeout" value="infinity""# =>
            "barrier: {name: global, users: 100}";
        "option global_number" Translated: r#"name="global_number" value="7""# => "users: 7}";
        "option tcp_rcv_buffer" NotNeeded: r#"name="tcp_rcv_buffer" value="7""# => "";
        "option tcp_snd_buffer" NotNeeded: r#"name="tcp_snd_buffer" value="7""# => "";
        "option udp_rcv_buffer" NotNeeded: r#"name="udp_rcv_buffer" value="7""# => "";
        "option udp_snd_buffer" NotNeeded: r#"name="udp_snd_buffer" value="7""# => "";
        "option tcp_reuseaddr" NotNeeded: r#"name="tcp_reuseaddr" value="true""# => "";
        "option tcp_reuseport" NotNeeded: r#"name="tcp_reuseport" value="true""# => "";
        "option ip_transparent" NotNeeded: r#"name="ip_transparent" value="true""# => "";
        "option ip_bind_address_no_port" NotNeeded:
            r#"name="ip_bind_address_no_port" value="true""# => "";
        "option ssl_ciphers" NotNeeded: r#"name="ssl_ciphers" value="a""# => "";
        "option ssl_versions" NotNeeded: r#"name="ssl_versions" value="a""# => "";
        "option ssl_reuse_sessions" NotNeeded: r#"name="ssl_reuse_sessions" value="false""# => "";
        "option ssl_disable_sni" NotNeeded: r#"name="ssl_disable_sni" value="true""# => "";
        "option websocket_path" NotNeeded: r#"name="websocket_path" value="/a""# => "";
        "option websocket_frame" NotNeeded: r#"name="websocket_frame" value="text""# => "";
        "option websocket_origin" NotNeeded: r#"name="websocket_origin" value="a""# => "";
        "option websocket_subprotocols" NotNeeded:
            r#"name="websocket_subprotocols" value="a""# => "";
        "option bosh_path" NotNeeded: r#"name="bosh_path" value="/""# => "";
        "option file_server" NotNeeded: r#"name="file_server" id="a" value="a.csv""# => "";
        "option local_file_server" NotNeeded: r#"name="local_file_server" value="a.csv""# => "";
        "option job_notify_port" NotNeeded: r#"name="job_notify_port" value="1""# => "";
        "option max_ssh_startup_per_core" NotNeeded:
            r#"name="max_ssh_startup_per_core" value="1""# => "";
        "option http_use_server_as_proxy" NotSupported:
            r#"name="http_use_server_as_proxy" value="true""# => "";
        "option http_use_server_as_proxy" NotNeeded:
            r#"name="http_use_server_as_proxy" value="false""# => "";
        "option userid_max" NotNeeded: r#"type="ts_jabber" name="userid_max" value="1""# => "";
        "option domain" NotNeeded: r#"type="ts_jabber" name="domain" value="a""# => "";
        "option username" NotNeeded: r#"type="ts_jabber" name="username" value="a""# => "";
        "option passwd" NotNeeded: r#"type="ts_jabber" name="passwd" value="a""# => "";
        "option muc_service" NotNeeded: r#"type="ts_jabber" name="muc_service" value="a""# => "";
        "option heartbeat" NotNeeded: r#"type="ts_amqp" name="heartbeat" value="600""# => "";
        "option user_agent" NotNeeded: r#"type="ts_http" name="user_agent""# => "";
    };
    check(rows, |xml| {
        let steps = "<request><raw ack=\"local\" data=\"a\"/></request><thinktime/>\
                     <thinktime value=\"wait_global\"/>";
        let file = File::with_session("ts_raw", steps);
        let load = load("<users arrivalrate=\"10\" unit=\"second\"/>");
        File { options: format!("<option {xml}/>"), load, ..file }
    });
}

#[test]
fn options_of_a_server_of_websockets() {
    let rows = rows! {
        "option websocket_path" Translated:
            r#"name="websocket_path" value="/a""# => "target: ws://127.0.0.1:5555/a";
        "option websocket_origin" Translated: r#"name="websocket_origin" value="http://o""# =>
            "target: ws://127.0.0.1:5555/chat load: - arrivals: {rate: 10/s, for: 10s} user: - \
             connect: {headers: {origin: http://o}, timeout: 10m} - send: hi";
        "option websocket_subprotocols" Translated:
            r#"name="websocket_subprotocols" value="x""# => "subprotocols: [x]";
        "option websocket_frame" Translated:
            r#"name="websocket_frame" value="binary""# => "send: {binary: 68 69}";
    };
    check(rows, |xml| File {
        servers: "<server host=\"127.0.0.1\" port=\"5555\" type=\"websocket\"/>".to_owned(),
        options: format!("<option {xml}/>"),
        ..File::default()
    });
}

#[test]
fn phases() {
    let rows = rows! {
        "users" Approximated:
            "<load><arrivalphase phase=\"1\" duration=\"2\" unit=\"minute\">\
             <users interarrival=\"0.02\" unit=\"second\"/></arrivalphase></load>" =>
            "- arrivals: {rate: 50/s, for: 2m}";
        "arrivalphase" Translated:
            "<load><arrivalphase phase=\"1\" duration=\"1\" unit=\"hour\">\
             <users arrivalrate=\"90\" unit=\"hour\" maxnumber=\"5\"/></arrivalphase></load>" =>
            "- arrivals: {rate: 90/h, for: 1h, most: 5}";
        "arrivalphase" Translated:
            "<load><arrivalphase phase=\"1\" duration=\"500\" unit=\"millisecond\">\
             <users interarrival=\"7\" unit=\"minute\"/></arrivalphase></load>" =>
            "- arrivals: {rate: 8.571428571/h, for: 500ms}";
        "load loop" Translated:
            "<load loop=\"2\"><arrivalphase phase=\"1\" duration=\"5\" unit=\"second\">\
             <users arrivalrate=\"2\" unit=\"second\"/></arrivalphase></load>" =>
            "- loop: {times: 3, do: [arrivals: {rate: 2/s, for: 5s}]}";
        "load duration" Translated:
            "<load duration=\"8\" unit=\"second\" loop=\"1\"><arrivalphase phase=\"1\" \
             duration=\"5\" unit=\"second\"><users arrivalrate=\"2\" unit=\"second\"/>\
             </arrivalphase></load>" =>
            "load: - arrivals: {rate: 2/s, for: 5s} - arrivals: {rate: 2/s, for: 3s} user:";
        "arrivalphase wait_all_sessions_end" Approximated:
            "<load><arrivalphase phase=\"1\" duration=\"5\" unit=\"second\" \
             wait_all_sessions_end=\"true\"><users arrivalrate=\"2\" unit=\"second\"/>\
             </arrivalphase><arrivalphase phase=\"2\" duration=\"5\" unit=\"second\">\
             <users arrivalrate=\"2\" unit=\"second\"/></arrivalphase></load>" =>
            "- arrivals: {rate: 2/s, for: 5s} # The users of this phase finish. - hold: {for: 20s} \
             - arrivals: {rate: 2/s, for: 5s} # tsung runs until the last user has finished. - \
             hold: {for: 20s, until: done}";
        "user" Approximated:
            "<load><user session=\"one\" start_time=\"2\"/><user session=\"one\" start_time=\"4\" \
             unit=\"second\"/></load>" =>
            "- arrivals: {rate: 0.5/s, for: 4s, most: 2, spacing: even}";
        "user" NotSupported:
            "<load><arrivalphase phase=\"1\" duration=\"5\" unit=\"second\"><users \
             arrivalrate=\"2\" unit=\"second\"/></arrivalphase><user session=\"one\"/></load>" =>
            "- arrivals: {rate: 2/s, for: 5s}";
        "session_setup" Translated:
            "<load><arrivalphase phase=\"1\" duration=\"5\" unit=\"second\"><session_setup \
             name=\"two\" probability=\"100\"/><session_setup name=\"one\" probability=\"0\"/>\
             <users arrivalrate=\"2\" unit=\"second\"/></arrivalphase></load>" =>
            "- wait: 20s on_error: stop";
        "session_setup" NotSupported:
            "<load><arrivalphase phase=\"1\" duration=\"5\" unit=\"second\"><session_setup \
             name=\"two\" weight=\"1\"/><users arrivalrate=\"2\" \
             unit=\"second\"/></arrivalphase><arrivalphase phase=\"2\" duration=\"5\" \
             unit=\"second\"><users arrivalrate=\"2\" unit=\"second\"/></arrivalphase></load>" =>
            "one: weight: 1";
    };
    check(rows, |xml| {
        let session = |name: &str, think: &str| {
            format!(
                "<session name=\"{name}\" probability=\"50\" type=\"ts_raw\"><request><raw \
                 ack=\"no_ack\" data=\"a\"/></request>{think}</session>"
            )
        };
        let think = "<thinktime value=\"20\"/>";
        let is_short = !xml.contains("wait_all") && !xml.contains("setup");
        let (one, two) = (session("one", ""), session("two", think));
        let sessions = match is_short {
            true => one.replace("50", "100"),
            false => one + &two,
        };
        File { load: xml.to_owned(), sessions, ..File::default() }
    });
}

#[test]
fn machines() {
    let rows = rows! {
        "client" NotNeeded: r#"<client host="a"/>"# => "";
        "client maxusers" NotNeeded: r#"<client host="a" maxusers="9"/>"# => "";
        "client cpu" NotNeeded: r#"<client host="a" cpu="4"/>"# => "";
        "client weight" NotNeeded: r#"<client host="a" weight="2"/>"# => "";
        "client use_controller_vm" NotNeeded: r#"<client use_controller_vm="true"/>"# => "";
        "client type" NotNeeded: r#"<client type="batch" batch="torque"/>"# => "";
        "client batch" NotNeeded: r#"<client type="batch" batch="torque"/>"# => "";
        "client scan_intf" NotNeeded: r#"<client scan_intf="eth0"/>"# => "";
        "ip" Approximated: r#"<client><ip value="10.0.0.1"/></client>"# => "";
        "ip scan" Approximated: r#"<client><ip scan="true" value="eth0"/></client>"# => "";
        "iprange" Approximated: r#"<client><iprange value="10.0.0.1-9"/></client>"# => "";
    };
    check(rows, |xml| File { clients: xml.to_owned(), ..File::default() });
    let rows = rows! {
        "server" Translated: r#"host="a" port="80" type="tcp""# => "target: tcp://a:80";
        "server" Translated: r#"host="::1" port="80" type="tcp6""# => "tcp://[::1]:80";
        "server" Translated: r#"host="a" port="80" type="websocket""# => "ws://a:80/chat";
        "server" Translated: r#"host="a" port="80" type="ssl""# => "target: tls://a:80";
        "server" Translated: r#"host="::1" port="80" type="ssl6""# => "verify: none";
        "ssl_reuse_sessions" Approximated: r#"host="a" port="80" type="ssl""# => "resume: 0%";
        "server type udp" NotSupported: r#"host="a" port="80" type="udp""# => "tcp://a";
        "server" Translated: r#"host="a" port="80" type="websocket_ssl""# => "wss://a:80/chat";
        "server" NotSupported:
            r#"host="a" port="80" type="tcp" weight="2"/><server host="b" port="80" type="tcp""# =>
            "tcp://a";
    };
    check(rows, |xml| File { servers: format!("<server {xml}/>"), ..File::default() });
}

#[test]
fn options_of_a_server_over_tls() {
    let rows = rows! {
        "option ssl_ciphers" Translated:
            r#"name="ssl_ciphers" value="ECDHE-RSA-AES128-GCM-SHA256""# =>
            "ciphers: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]";
        "option ssl_ciphers" Translated: r#"name="ssl_ciphers" value="negotiate""# =>
            "tls: {verify: none, resume: 0%}";
        "option ssl_ciphers" Approximated:
            r#"name="ssl_ciphers" value="ECDHE-RSA-AES128-GCM-SHA256,AES128-SHA""# =>
            "ciphers: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]";
        "option ssl_ciphers" NotSupported: r#"name="ssl_ciphers" value="EXP1024-RC4-SHA""# => "";
        "option ssl_versions" Translated: r#"name="ssl_versions" value="'tlsv1.2'""# =>
            "min: 1.2, max: 1.2";
        "option ssl_versions" NotSupported: r#"name="ssl_versions" value="tlsv1""# => "";
        "option ssl_reuse_sessions" Translated:
            r#"name="ssl_reuse_sessions" value="false""# => "resume: 0%";
        "option ssl_disable_sni" Approximated: r#"name="ssl_disable_sni" value="true""# => "";
        "option ssl_disable_sni" Translated: r#"name="ssl_disable_sni" value="false""# => "";
    };
    let servers = "<server host=\"a\" port=\"443\" type=\"ssl\"/>";
    check(rows, |xml| File {
        servers: servers.to_owned(),
        options: format!("<option {xml}/>"),
        ..File::default()
    });
}

#[test]
fn a_certificate_of_a_client() {
    let rows = rows! {
        "set_option certificate" Approximated: r#"certfile="c.pem" keyfile="k.pem""# =>
            "client: {cert: c.pem, key: k.pem}, resume: 0%";
        "set_option certificate" Approximated: r#"certfile="c.pem" cacertfile="ca.pem""# =>
            "client: {cert: c.pem}, resume: 0%";
        "set_option certificate" NotSupported: r#"certfile="c.pem" keyfile="%%_k%%""# => "";
        "set_option certificate" NotSupported: r#"certfile="%%_c%%""# => "";
        "set_option certificate" NotSupported: r#"certfile="c.pem" keypass="secret""# => "";
    };
    let servers = "<server host=\"a\" port=\"443\" type=\"ssl\"/>".to_owned();
    check(rows, |xml| {
        let steps = format!(
            "<set_option name=\"certificate\"><certificate {xml}/></set_option>\
             <request><raw ack=\"no_ack\" data=\"hi\"/></request>"
        );
        File { servers: servers.clone(), ..File::with_session("ts_raw", &steps) }
    });
}

#[test]
fn servers_that_a_scenario_cannot_load() {
    for kind in ["udp", "udp6", "erlang", "bosh", "bosh_ssl"] {
        let servers = format!("<server host=\"a\" port=\"80\" type=\"{kind}\"/>");
        let file = File { servers, ..File::default() };
        check_one(&format!("server type {kind}"), &file, "", NotSupported);
    }
}

#[test]
fn options_of_other_protocols() {
    let names = ["password", "random_from_fileid", "offline_from_fileid", "fileid_delimiter"];
    let names = names.into_iter().chain(["username", "passwd", "pubsub_service", "muc_service"]);
    for name in names {
        let options = format!("<option type=\"ts_jabber\" name=\"{name}\" value=\"a\"/>");
        let file = File { options, ..File::default() };
        check_one(&format!("option {name}"), &file, "", NotNeeded);
    }
}

#[test]
fn sessions_of_other_protocols() {
    for kind in [
        "ts_jabber",
        "ts_mqtt",
        "ts_amqp",
        "ts_pgsql",
        "ts_mysql",
        "ts_ldap",
        "ts_webdav",
        "ts_fs",
        "ts_shell",
        "ts_job",
    ] {
        let file = File::default();
        let raw = file.sessions.replace("100", "60");
        let sessions = format!("{raw}<session name=\"a\" probability=\"40\" type=\"{kind}\"/>");
        check_one(&format!("session {kind}"), &File { sessions, ..file }, "", NotSupported);
    }
}

#[test]
fn sessions() {
    let raw = "<request><raw ack=\"no_ack\" data=\"a\"/></request>";
    let session =
        |attributes: &str, steps: &str| format!("<session {attributes}>{steps}</session>");
    let rows = [
        ("sessions", session("name=\"a\" weight=\"3\" type=\"ts_raw\"", raw), "a:", Approximated),
        (
            "session ts_raw",
            session("name=\"a\" weight=\"3\" type=\"ts_raw\"", raw),
            "b: weight: 1",
            Translated,
        ),
        (
            "session ts_jabber",
            session("name=\"a\" weight=\"3\" type=\"ts_jabber\"", ""),
            "user:",
            NotSupported,
        ),
        (
            "session ts_http",
            session(
                "name=\"a\" weight=\"0.5\" type=\"ts_http\"",
                "<request><http url=\"/\"/></request>",
            ),
            "user: - connect: {timeout: 2m} - send: a",
            NotSupported,
        ),
        (
            "session bidi",
            session("name=\"a\" weight=\"3\" type=\"ts_raw\" bidi=\"true\"", raw),
            "",
            NotNeeded,
        ),
        (
            "session persistent",
            session("name=\"a\" weight=\"3\" type=\"ts_raw\" persistent=\"true\"", raw),
            "",
            NotNeeded,
        ),
        ("session", session("name=\"a\" weight=\"0\" type=\"ts_raw\"", raw), "user:", NotNeeded),
    ];
    for (construct, xml, says, fidelity) in rows {
        let other = session("name=\"b\" weight=\"1\" type=\"ts_raw\"", raw);
        let file = File { sessions: xml + &other, ..File::default() };
        super::constructs::check_one(construct, &file, says, fidelity);
    }
}

/// The note says what the written `on_error` makes a user do.
#[test]
fn what_users_do_without_a_connection() {
    let session = |name: &str, kind: &str, steps: &str| {
        format!("<session name=\"{name}\" probability=\"50\" type=\"{kind}\">{steps}</session>")
    };
    let send = "<request><raw ack=\"no_ack\" data=\"a\"/></request>";
    let keep = "<request><dyn_variable name=\"t\" re=\"(.*)\"/><raw ack=\"local\" data=\"a\"/>\
                </request>";
    let get = "<request><http url=\"/\"/></request>";
    let connect = "<request><websocket type=\"connect\" path=\"/\"/></request>";
    let (raw, http, ws) = ("ts_raw", "ts_http", "ts_websocket");
    for (sessions, notes) in [
        ([session("a", raw, send), session("b", raw, send)], &["a user stops when"][..]),
        (
            [session("a", raw, send), session("b", raw, keep)],
            &[
                "a user of `a` stops when its connect fails or its connection ends; tsung tries",
                "a user of `b` goes on with its next step when its connect fails or its \
                 connection ends, and its steps are errors until its next `connect`; tsung tries",
            ],
        ),
        (
            [session("a", http, get), session("b", http, get)],
            &["a user goes on with its next step when its connect fails or its connection ends, \
               and its next request connects anew; tsung tries"],
        ),
        (
            [session("a", http, get), session("b", ws, connect)],
            &["a user of `b` stops when", "a user of `a` goes on with its next step when"],
        ),
    ] {
        let file = File { sessions: sessions.concat(), ..File::default() };
        let import = crate::import_text(&file.text(), "tsung/rows.xml").unwrap();
        let found: Vec<_> =
            import.fidelity.entries.iter().filter(|entry| entry.construct == "sessions").collect();
        assert_eq!(found.len(), notes.len(), "{}", import.fidelity);
        for (entry, note) in found.iter().zip(notes) {
            assert!(entry.note.starts_with(note), "{note}: {}", entry.note);
        }
    }
}

#[test]
fn a_login_before_a_websocket() {
    let steps = "<request><dyn_variable name=\"t\" jsonpath=\"token\"/><http url=\"/login\" \
                 method=\"POST\" contents=\"u=1\"/></request>\
                 <change_type new_type=\"ts_websocket\" host=\"127.0.0.1\" port=\"5555\" \
                 server_type=\"tcp\" store=\"true\"/>\
                 <request subst=\"true\"><websocket type=\"connect\" path=\"/s?t=%%_t%%\"/>\
                 </request>";
    let file = File::with_session("ts_http", steps);
    let says = "user: - post: path: /login headers: {content-type: \
                application/x-www-form-urlencoded} body: u=1 expect: [2xx, 3xx, 4xx, 5xx] \
                capture: {t: /token} timeout: 10m \
                - connect: {path: \"/s?t=${raw(t)}\", timeout: 10m}";
    super::constructs::check_one("change_type", &file, says, Translated);
}

#[test]
fn what_is_beside_the_load() {
    let with = |root: &str, part: &str| {
        let text = File::default().text();
        text.replace("<tsung>", &format!("<tsung {root}>"))
            .replace("<load>", &format!("{part}<load>"))
    };
    let monitor = |kind: &str, inner: &str| {
        let monitor = format!("<monitor host=\"a\" type=\"{kind}\">{inner}</monitor>");
        with("", &format!("<monitoring>{monitor}</monitoring>"))
    };
    let oid = "<snmp version=\"v2\"><oid value=\"1.3.6\" name=\"x\" type=\"counter\"/></snmp>";
    for (construct, text) in [
        ("tsung loglevel", with("loglevel=\"debug\"", "")),
        ("tsung dumptraffic", with("dumptraffic=\"protocol\"", "")),
        ("tsung backend", with("backend=\"json\"", "")),
        ("tsung version", with("version=\"1.0\"", "")),
        ("monitor", monitor("snmp", oid)),
        ("monitor", monitor("munin", "<munin port=\"4949\"/>")),
        ("monitor", monitor("erlang", "<mysqladmin port=\"3306\" username=\"a\"/>")),
        (
            "information",
            File::default()
                .text()
                .replace("<clients>", "<information><name>the test</name></information><clients>"),
        ),
    ] {
        let import = crate::import_text(&text, "tsung/rows.xml").unwrap();
        let report = &import.fidelity;
        assert!(report.of(NotNeeded).any(|entry| entry.construct == construct), "{report}");
        if construct == "information" {
            assert!(import.scenario.contains("# the test\n"), "{}", import.scenario);
        }
    }
}
