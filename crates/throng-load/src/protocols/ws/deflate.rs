//! `deflate` of `connect`: the offers of permessage-deflate (RFC 7692 section 7.1).

use throng_proto::websocket::{ClientWindowOffer, DeflateOffer};

use crate::scenario::node::{Kind, Node};
use crate::scenario::reader::{Fields, Reader};

/// Reads `true`, `false`, the parameters of an offer, or a list of them.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Vec<DeflateOffer>> {
    let Some(node) = fields.get("deflate") else { return Some(Vec::new()) };
    match &node.kind {
        Kind::Map(_) => Some(vec![read_offer(reader, node)?]),
        Kind::List(items) if (1..=OFFERS_MAX).contains(&items.len()) => {
            let offers: Vec<_> = items.iter().map(|item| read_offer(reader, item)).collect();
            offers.into_iter().collect()
        }
        Kind::List(items) => {
            let label = format!("{} offers; 1 to {OFFERS_MAX} are possible", items.len());
            reader.error(node.span.clone(), "`deflate` has a wrong number of offers", label);
            None
        }
        _ => {
            let is_offered = reader.flag(fields, "deflate", false)?;
            Some(if is_offered { vec![DeflateOffer::BROWSER] } else { Vec::new() })
        }
    }
}

fn read_offer(reader: &mut Reader<'_>, node: &Node) -> Option<DeflateOffer> {
    let fields = reader.fields(node, "`deflate`", &KEYS)?;
    let server = reader.flag(&fields, "server_no_context_takeover", false);
    let client = reader.flag(&fields, "client_no_context_takeover", false);
    let server_bits = reader.value_or(&fields, "server_max_window_bits", None, |reader, node| {
        read_window(reader, node, "server_max_window_bits", &[], Some)
    });
    let client_bits = match fields.get("client_max_window_bits") {
        Some(node) => {
            let words =
                [("true", ClientWindowOffer::AnyLimit), ("false", ClientWindowOffer::Nothing)];
            let bits = ClientWindowOffer::Bits;
            read_window(reader, node, "client_max_window_bits", &words, bits)
        }
        None => Some(ClientWindowOffer::AnyLimit),
    };
    Some(DeflateOffer {
        server_no_context_takeover: server?,
        client_no_context_takeover: client?,
        server_max_window_bits: server_bits?,
        client_max_window_bits: client_bits?,
    })
}

/// Reads 8 to 15, or one of the words.
fn read_window<T: Copy>(
    reader: &mut Reader<'_>,
    node: &Node,
    key: &str,
    words: &[(&str, T)],
    of_bits: fn(u8) -> T,
) -> Option<T> {
    let names: Vec<_> = words.iter().map(|(name, _)| *name).collect();
    let or = if names.is_empty() { "" } else { " or " };
    let expected = format!("{}{or}8 to 15", names.join(", "));
    let what = format!("`{key}`");
    let text = reader.text(node, &what, &expected)?;
    let word = words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    let bits = text.parse().ok().filter(|bits| (8..=15).contains(bits)).map(of_bits);
    let found = word.or(bits);
    if found.is_none() {
        let label = format!("{text} is not possible");
        reader.error(node.span.clone(), format!("{what} must be {expected}"), label);
    }
    found
}

const KEYS: [&str; 4] = [
    "server_no_context_takeover",
    "client_no_context_takeover",
    "server_max_window_bits",
    "client_max_window_bits",
];

/// Most offers of an upgrade request. Clients send one or two.
const OFFERS_MAX: usize = 4;
