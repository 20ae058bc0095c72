//! Files of tsung, put together for the tests.

/// The parts of a file; those that a test does not set are the smallest ones that tsung takes.
#[derive(Clone)]
pub(super) struct File {
    pub(super) clients: String,
    pub(super) servers: String,
    pub(super) load: String,
    pub(super) options: String,
    pub(super) sessions: String,
}

impl File {
    /// Returns a file with one session of this type.
    pub(super) fn with_session(kind: &str, steps: &str) -> Self {
        let session = |steps: &str| {
            format!("<session name=\"one\" probability=\"100\" type=\"{kind}\">{steps}</session>")
        };
        Self { sessions: session(steps), ..Self::default() }
    }

    pub(super) fn text(&self) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"tsung-1.0.dtd\">\n<tsung>\n\
             <clients>{}</clients>\n<servers>{}</servers>\n{}\n<options>{}</options>\n\
             <sessions>{}</sessions>\n</tsung>\n",
            self.clients, self.servers, self.load, self.options, self.sessions
        )
    }
}

impl Default for File {
    fn default() -> Self {
        let session = "<session name=\"one\" probability=\"100\" type=\"ts_raw\">\
                       <request><raw ack=\"no_ack\" data=\"hi\"/></request></session>";
        Self {
            clients: "<client host=\"localhost\"/>".to_owned(),
            servers: "<server host=\"127.0.0.1\" port=\"5555\" type=\"tcp\"/>".to_owned(),
            load: load("<users arrivalrate=\"10\" unit=\"second\"/>"),
            options: String::new(),
            sessions: session.to_owned(),
        }
    }
}

/// Returns a load of one phase with these users, of ten seconds.
pub(super) fn load(users: &str) -> String {
    format!(
        "<load><arrivalphase phase=\"1\" duration=\"10\" unit=\"second\">{users}\
         </arrivalphase></load>"
    )
}
