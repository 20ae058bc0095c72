//! A publication: made once, shared by every core, rendered at most once in each dialect.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::Dialect;

/// A message to all members of a topic. Its body is of the publisher's own type, and is rendered to
/// bytes for the first member of each dialect.
pub struct Publication {
    topic: Arc<str>,
    body: Box<dyn Any + Send + Sync>,
    body_bytes: usize,
    frames: [OnceLock<Arc<[u8]>>; Dialect::COUNT],
}

impl Publication {
    /// Makes a publication of `body` for `topic`.
    pub fn new(topic: impl Into<Arc<str>>, body: impl Any + Send + Sync) -> Self {
        Self {
            topic: topic.into(),
            body: Box::new(body),
            body_bytes: 0,
            frames: Default::default(),
        }
    }

    /// Sets about how many bytes of memory the body owns. Queues count them.
    #[must_use]
    pub const fn with_body_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes = bytes;
        self
    }

    /// Returns the weight that queues count: the body's bytes, and 256 for the publication itself.
    pub const fn weight(&self) -> usize {
        self.body_bytes + OWN_BYTES
    }

    /// Returns the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the body, if its type is `T`.
    pub fn body<T: Any>(&self) -> Option<&T> {
        self.body.downcast_ref()
    }

    /// Returns the bytes in `dialect`. The first core that needs them calls `render`, which appends
    /// them; other cores wait for it. If `render` panics, the next core calls it again.
    pub fn frame(&self, dialect: Dialect, render: impl FnOnce(&mut Vec<u8>)) -> &Arc<[u8]> {
        self.frames[dialect.number()].get_or_init(|| {
            let mut bytes = Vec::new();
            render(&mut bytes);
            bytes.into()
        })
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// About the memory of a publication itself.
const OWN_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn a_publication_is_rendered_once_by_however_many_cores() {
        let publication = Publication::new("lobby", 7u32);
        let rendered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let frame = publication.frame(Dialect::new(3), |out| {
                        rendered.fetch_add(1, SeqCst);
                        out.extend_from_slice(b"seven");
                    });
                    assert_eq!(&frame[..], b"seven");
                });
            }
        });
        assert_eq!(rendered.load(SeqCst), 1);
        assert_eq!(&publication.frame(Dialect::new(0), |_| {})[..], b"");
    }

    #[test]
    fn it_weighs_about_what_it_takes() {
        let size = size_of::<Publication>();
        assert!((OWN_BYTES - 64..=OWN_BYTES).contains(&size), "{size}");
        assert_eq!(Publication::new("lobby", ()).with_body_bytes(100).weight(), 100 + OWN_BYTES);
    }

    #[test]
    fn a_body_is_found_by_its_type() {
        let publication = Publication::new("lobby", "hello");
        assert_eq!((publication.body::<&str>(), publication.body::<u32>()), (Some(&"hello"), None));
    }
}
