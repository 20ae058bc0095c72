//! Placement: which core takes a connection that was accepted.

use throng_driver::{CoreId, MessagePriority};

use super::registry::{Assignment, Registry};
use crate::AcceptTopology;
use crate::core_message::{CoreMessage, CoreMessageKind, RegistryMessage, ServerLink};

/// The way in which the connections that a core accepts find their core.
pub(crate) enum Placement<F> {
    /// `reuseport` and `shared`: the core that accepts a connection takes it. The two differ in
    /// their listeners alone.
    OwnCore,
    /// `dispatch`: the registry names the core.
    Dispatch {
        /// The accepted connection that waits for the registry's answer.
        waiting: Option<F>,
        /// The registry, on core 0.
        registry: Option<Registry>,
    },
}

impl<F> Placement<F> {
    pub(crate) fn new(accept: AcceptTopology) -> Self {
        match accept {
            AcceptTopology::Reuseport | AcceptTopology::Shared => Self::OwnCore,
            AcceptTopology::Dispatch => Self::Dispatch { waiting: None, registry: None },
        }
    }

    pub(crate) fn start(&mut self, core: CoreId, cores: usize, room: usize) {
        if let Self::Dispatch { registry, .. } = self
            && core == REGISTRY_CORE
        {
            *registry = Some(Registry::new(cores, room));
        }
    }

    /// Reports whether a connection waits for the registry.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Self::Dispatch { waiting: Some(_), .. })
    }

    /// Reports whether every accept waits for the registry.
    pub(crate) fn is_dispatch(&self) -> bool {
        matches!(self, Self::Dispatch { .. })
    }

    /// Returns an accepted connection that this core takes, or keeps it and asks the registry.
    pub(crate) fn accepted<M>(
        &mut self,
        link: &impl ServerLink<M>,
        core: CoreId,
        fd: F,
    ) -> Option<F> {
        let Self::Dispatch { waiting, .. } = self else { return Some(fd) };
        debug_assert!(waiting.is_none(), "one accept at a time waits");
        *waiting = Some(fd);
        let request = RegistryMessage::PlacementRequest(core);
        send(link, REGISTRY_CORE, CoreMessageKind::Registry(request));
        None
    }

    /// Takes the connection that waits for the registry.
    pub(crate) fn take_waiting(&mut self) -> Option<F> {
        match self {
            Self::OwnCore => None,
            Self::Dispatch { waiting, .. } => waiting.take(),
        }
    }

    /// Tells the registry that a connection of `core` has ended.
    pub(crate) fn connection_ended<M>(&self, link: &impl ServerLink<M>, core: CoreId) {
        if self.is_dispatch() {
            let ended = RegistryMessage::ConnectionEnded(core);
            send(link, REGISTRY_CORE, CoreMessageKind::Registry(ended));
        }
    }

    /// Passes a message to the registry, and its answer to the acceptor that waits.
    pub(crate) fn registry_message<M>(
        &mut self,
        link: &impl ServerLink<M>,
        message: RegistryMessage,
    ) {
        let Some(registry) = self.registry() else { return };
        registry.count_message(|| link.messages_waiting());
        if let Some(Assignment { acceptor, to }) = registry.handle(message) {
            send(link, acceptor, CoreMessageKind::Placement(to));
        }
    }

    /// Returns the registry, if this core has it.
    pub(crate) fn registry(&mut self) -> Option<&mut Registry> {
        match self {
            Self::OwnCore => None,
            Self::Dispatch { registry, .. } => registry.as_mut(),
        }
    }
}

fn send<M>(link: &impl ServerLink<M>, to: CoreId, kind: CoreMessageKind<M>) {
    // A control message is never refused.
    let _ = link.send_message(to, CoreMessage(kind), MessagePriority::Control);
}

/// The core of the registry of `dispatch`.
const REGISTRY_CORE: CoreId = 0;
