//! The start of a server of any kind.

use std::sync::Arc;

use throng_driver::CoreId;

use crate::{
    AnyServer, Handler, RunningServer, ServerOptions, SharedHandler, SharedTopics, StartError,
};

/// Starts a server whose handlers use no fd that another thread opened, as is true of all kinds:
/// every core may have an fd table of its own.
pub(super) fn start_server<H: Handler>(
    options: &ServerOptions,
    make: impl Fn(CoreId) -> H + Send + Sync + 'static,
) -> Result<Arc<dyn AnyServer>, StartError>
where
    RunningServer<H>: Send + Sync,
{
    let options = ServerOptions { private_fds: true, ..options.clone() };
    RunningServer::start(options, make).map(|server| Arc::new(server) as Arc<dyn AnyServer>)
}

/// Starts a server of the same sort, whose topics may be shared with other nodes.
pub(super) fn start_shared_server<H: SharedHandler>(
    options: &ServerOptions,
    shared: Option<&SharedTopics>,
    make: impl Fn(CoreId) -> H + Send + Sync + 'static,
) -> Result<Arc<dyn AnyServer>, StartError>
where
    RunningServer<H>: Send + Sync,
{
    let Some(shared) = shared else { return start_server(options, make) };
    let options = ServerOptions { private_fds: true, ..options.clone() };
    let server = RunningServer::start_shared(options, shared.clone(), make);
    server.map(|server| Arc::new(server) as Arc<dyn AnyServer>)
}
