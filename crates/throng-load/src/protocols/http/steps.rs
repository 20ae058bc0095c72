//! `get`, `head`, `post`, `put`, `patch`, `delete` and `options`: an HTTP request, and the wait for
//! its answer. Users of other protocols have them, too, before they connect. What happens at run
//! time is in [`exchange`](super::exchange).

mod options;

use super::request::{HttpExpectation, HttpRequest, RequestTraits};
use crate::program::LimitedAction;
use crate::steps::prelude::*;
use crate::steps::{FLOW, FLOW_OF_RULE, VALUES};

/// Steps of a user, in the order in which mistakes name them.
pub(crate) const OF_USER: &[&[StepKind]] = &[VALUES, REQUESTS, FLOW];

/// Steps of a rule of `on_message`, none of which waits.
pub(crate) const OF_RULE: &[&[StepKind]] = &[FLOW_OF_RULE];

/// Returns the kinds of these steps.
macro_rules! requests {
    ($( ($name:literal, $method:expr, $example:literal), )+) => {
        &[$( {
            let form = StepForm::Value(|reader, node| read(reader, node, ($name, $method)));
            StepKind::new($name, $example, form).measured(StepMeasure::As(Operation::Http))
        } ),+]
    };
}

/// Steps that send a request: the name, the method and an example.
pub(crate) const REQUESTS: &[StepKind] = requests![
    ("get", "GET", "get: /"),
    ("head", HEAD_METHOD, "head: /"),
    ("post", "POST", "post: {path: /login, json: {user: \"${user.id}\"}}"),
    ("put", "PUT", "put: {path: /name, body: \"${user.id}\"}"),
    ("patch", "PATCH", "patch: {path: /name, json: {name: \"${user.id}\"}}"),
    ("delete", "DELETE", "delete: /session"),
    ("options", "OPTIONS", "options: /"),
];

#[derive(Debug)]
struct Http {
    method: &'static str,
    path: Template,
    headers: Vec<(String, Template)>,
    body: Option<Template>,
    expected: HttpExpectation,
    timeout: Duration,
}

impl Action for Http {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.acts(LimitedAction::Request);
        if flow.is_connected() {
            let method = self.method.to_ascii_lowercase();
            let title = format!("`{method}` cannot stand here: the user is connected");
            let label = "a user has one connection at a time; move it before `connect`, or add \
                         `close` before it";
            flow.error(&title, label);
        }
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        compiler.limit(LimitedAction::Request);
        let target = compiler.target();
        let mut request = HttpRequest {
            method: self.method,
            host: target.host_header(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            expected: self.expected.clone(),
            timeout: self.timeout,
            traits: RequestTraits::of(&self.path, &self.headers, self.body.as_ref()),
        };
        request.add_credentials(target.credentials.as_ref());
        let bytes_max = request.bytes_max();
        let latency = Some(Operation::Http);
        let facts =
            OpFacts::of_role(OpRole::Asks { is_replaced: !compiler.protocol().opens_itself });
        compiler.protocol_op(user_op::entry(request), OpFacts { latency, bytes_max, ..facts });
    }
}

fn read(
    reader: &mut Reader<'_>,
    node: &Node,
    names: (&'static str, &'static str),
) -> Option<Box<dyn Action>> {
    Some(Box::new(options::read(reader, node, names)?))
}

/// The method whose answers have no body.
const HEAD_METHOD: &str = "HEAD";

/// Default time-out of an answer.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
