//! The page and its data in one file.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD as BASE64;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::write_json;

/// Writes `template` with a page's data in it: one file that needs no network. The data are JSON,
/// packed by gzip and base64, so that no text in them can be taken for markup.
///
/// # Errors
/// The output cannot be written.
pub fn html(template: &str, page: &impl Serialize, mut output: impl Write) -> io::Result<()> {
    let (before, after) = template.split_once(PLACE).unwrap_or((template, ""));
    output.write_all(before.as_bytes())?;
    output.write_all(br#"<script id="run" type="text/plain">"#)?;
    let mut packed = GzEncoder::new(EncoderWriter::new(&mut output, &BASE64), Compression::best());
    write_json(&mut packed, page)?;
    packed.finish()?.finish()?;
    output.write_all(b"</script>")?;
    output.write_all(after.as_bytes())
}

/// Returns `template` as a page without data. It fetches them from the server that it comes from.
pub fn live_html(template: &str) -> String {
    template.replacen(PLACE, r#"<script id="live" type="text/plain"></script>"#, 1)
}

/// The place of the data in the template.
const PLACE: &str = "<!-- the data of the run -->";

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use base64::Engine as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::page::PageBuilder;
    use throng_measure::runfile::RunHeader;

    #[test]
    fn hostile_text_is_data_and_no_markup() {
        let target = "</script><script>alert(1)</script>".to_owned();
        let header = RunHeader { target: target.clone(), ..RunHeader::default() };
        let (builder, summary) = (PageBuilder::new(), json!({}));
        let mut file = Vec::new();
        let template = format!("<body>{PLACE}</body>");
        html(&template, &builder.page(&header, &summary, &[]), &mut file).unwrap();
        let file = String::from_utf8(file).unwrap();
        assert_eq!(file.matches("<script").count(), 1);
        let packed = file.split_once("plain\">").unwrap().1.split_once("</script>").unwrap().0;
        let packed = BASE64.decode(packed).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        let page: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(page["header"]["target"], target);
    }
}
