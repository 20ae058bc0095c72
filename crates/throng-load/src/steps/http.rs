//! `get`, `head`, `post`, `put`, `patch`, `delete` and `options`: an HTTP request, and the wait for
//! its answer. What happens at run time is in [`user::http`](crate::user::http).

mod options;

use super::prelude::*;
use crate::program::{HttpExpectation, HttpRequest, LimitedAction, RequestTraits};

pub(crate) const GET: StepKind = StepKind {
    name: "get",
    example: "get: /",
    form: StepForm::Value(|reader, node| read(reader, node, ("get", "GET"))),
};

pub(crate) const HEAD: StepKind = StepKind {
    name: "head",
    example: "head: /",
    form: StepForm::Value(|reader, node| read(reader, node, ("head", HEAD_METHOD))),
};

pub(crate) const POST: StepKind = StepKind {
    name: "post",
    example: "post: {path: /login, json: {user: \"${user.id}\"}}",
    form: StepForm::Value(|reader, node| read(reader, node, ("post", "POST"))),
};

pub(crate) const PUT: StepKind = StepKind {
    name: "put",
    example: "put: {path: /name, body: \"${user.id}\"}",
    form: StepForm::Value(|reader, node| read(reader, node, ("put", "PUT"))),
};

pub(crate) const PATCH: StepKind = StepKind {
    name: "patch",
    example: "patch: {path: /name, json: {name: \"${user.id}\"}}",
    form: StepForm::Value(|reader, node| read(reader, node, ("patch", "PATCH"))),
};

pub(crate) const DELETE: StepKind = StepKind {
    name: "delete",
    example: "delete: /session",
    form: StepForm::Value(|reader, node| read(reader, node, ("delete", "DELETE"))),
};

pub(crate) const OPTIONS: StepKind = StepKind {
    name: "options",
    example: "options: /",
    form: StepForm::Value(|reader, node| read(reader, node, ("options", "OPTIONS"))),
};

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
        let (request, bytes_max) = compiler.http_request(|host| HttpRequest {
            method: self.method,
            host,
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            expected: self.expected.clone(),
            timeout: self.timeout,
            traits: RequestTraits::of(&self.path, &self.headers, self.body.as_ref()),
        });
        let latency = Some(Operation::Http);
        let facts =
            OpFacts::of_role(OpRole::Asks { is_replaced: !compiler.protocol().opens_itself });
        compiler.push(Op::Http { request }, OpFacts { latency, bytes_max, ..facts });
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
