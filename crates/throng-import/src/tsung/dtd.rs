//! What tsung's document type allows: the elements, where they stand, and their attributes.

use super::element::Element;
use crate::expected::near_or;
use crate::translator::Translator;

/// Reports elements and attributes that tsung does not know. The parts of unsupported protocols
/// are not looked at. Returns false if the elements are nested too deep to go through them.
pub(super) fn check(translator: &mut Translator<'_>, root: Element<'_>) -> bool {
    if let Some(deep) = root.deeper_than(DEPTH_MAX) {
        let label = format!("expected at most {DEPTH_MAX} levels");
        return translator.fail(&deep.span(), "elements are nested too deep", label);
    }
    check_element(translator, root);
    true
}

fn check_element(translator: &mut Translator<'_>, element: Element<'_>) {
    let name = element.name();
    let Some((_, children, attributes)) = row(name) else { return };
    for (attribute, span) in element.attributes() {
        if !attributes.split(' ').any(|known| known == attribute) {
            let title = format!("`{name}` has no attribute `{attribute}`");
            translator.mistake(&span, title, expected(attribute, attributes));
        }
    }
    for child in element.elements() {
        let children = match *children {
            "actions" => ACTIONS,
            children => children,
        };
        if !children.split(' ').any(|known| known == child.name()) {
            let title = format!("`{}` cannot stand in `{name}`", child.name());
            translator.mistake(&child.span(), title, expected(child.name(), children));
            continue;
        }
        check_element(translator, child);
    }
}

fn expected(name: &str, known: &str) -> String {
    if known.is_empty() {
        return "expected none".to_owned();
    }
    near_or(name, known.split(' '), format!("expected one of {}", known.replace(' ', ", ")))
}

fn row(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    ELEMENTS.iter().find(|(known, ..)| *known == name)
}

/// Deepest nesting of elements.
const DEPTH_MAX: usize = 40;

/// What may stand in a session, and in the loops and transactions in it.
const ACTIONS: &str = "request thinktime transaction setdynvars for foreach repeat if change_type \
                       set_option interaction abort while until";

macro_rules! elements {
    ($( $name:literal $children:literal $attributes:literal; )+) => {
        &[$( ($name, $children, $attributes) ),+]
    };
}

/// Name, elements in it, and attributes. An element that has no row is of an unsupported protocol.
const ELEMENTS: &[(&str, &str, &str)] = elements! {
    "tsung" "information clients servers monitoring load options sessions"
        "loglevel version dumptraffic backend";
    "information" "name description username organisation" "";
    "clients" "client" "";
    "client" "ip iprange" "host weight maxusers cpu use_controller_vm type batch scan_intf";
    "ip" "" "value scan";
    "iprange" "" "value version";
    "servers" "server" "";
    "server" "" "host port type weight";
    "load" "arrivalphase user" "duration unit loop";
    "arrivalphase" "users session_setup" "phase duration unit wait_all_sessions_end";
    "users" "" "interarrival arrivalrate unit maxnumber";
    "session_setup" "" "name probability weight";
    "user" "" "session start_time unit";
    "options" "option" "";
    "option" "user_agent" "name value type override random min max id";
    "user_agent" "" "probability";
    "sessions" "session" "";
    "session" "actions" "name type probability weight persistent bidi";
    "request" "match dyn_variable http raw websocket jabber pgsql ldap mysql fs shell job amqp mqtt"
        "subst tag";
    "thinktime" "" "value random min max";
    "transaction" "actions" "name";
    "for" "actions" "from to incr var";
    "foreach" "actions" "name in include exclude";
    "repeat" "actions" "name max_repeat";
    "while" "" "var eq neq gt gte lt lte";
    "until" "" "var eq neq gt gte lt lte";
    "if" "actions" "var eq neq gt gte lt lte";
    "change_type" "" "new_type host port server_type store restore bidi";
    "set_option" "user_agent certificate" "name value type min max id";
    "interaction" "" "action id";
    "abort" "" "type";
    "match" ""
        "do when subst name max_loop sleep_loop loop_back max_restart skip_headers \
         apply_to_content";
    "dyn_variable" "" "name re xpath jsonpath header pgsql_expr regexp decode";
    "setdynvars" "var"
        "sourcetype callback code fileid order delimiter length start end from jsonpath value host \
         port";
    "var" "" "name";
    "raw" "" "ack data datasize";
    "websocket" "http_header" "type path origin subprotocols frame ack";
    "http" "oauth www_authenticate soap http_header add_cookie"
        "url method version contents contents_from_file content_type if_modified_since";
    "http_header" "" "name value encoding";
    "add_cookie" "" "key value domain path";
    "www_authenticate" "" "userid passwd type realm nonce opaque cnonce nc qop";
    "soap" "" "action";
};
