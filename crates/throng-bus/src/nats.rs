//! The bus between machines: core NATS, without its persistence.

use std::collections::BTreeSet;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr, ServerError};
use futures_util::{FutureExt, StreamExt};
use percent_encoding::percent_decode_str;
use tokio::runtime::{Builder, Handle};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::contract::{Bus, BusError};
use crate::denial::BusDenial;
use crate::subject;
use crate::subscription::{BusMessage, BusSubscription, Subscriber, SubscriptionId, subscription};

/// A connection to NATS. A thread of its own reads and writes it; no core does.
///
/// It dials out, and dials again whenever it has lost the server. Ends when it is dropped, after
/// its last messages are sent.
#[derive(Debug)]
pub struct NatsBus {
    client: Client,
    runtime: Handle,
    subscriptions: Mutex<Vec<NatsSubscription>>,
    denials: Arc<Denials>,
    /// Ends the thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the server has refused for want of a permission.
#[derive(Debug)]
struct Denials {
    /// The first of each needed permission, [`DENIALS_MAX`] at most.
    first: Mutex<Vec<BusDenial>>,
    /// All of them, for those who wait for an answer.
    each: broadcast::Sender<BusDenial>,
}

/// A subscription, and the tasks that hand it the messages of each of its patterns.
#[derive(Debug)]
struct NatsSubscription {
    subscriber: Subscriber,
    tasks: Tasks,
}

/// Options of a connection to NATS. A user and a password may stand in the address, a `%` before
/// the code of a character that has a meaning there.
#[derive(Clone, Default)]
pub struct NatsOptions {
    /// Address: `nats://host:4222`, or `tls://host:4222`. Several stand between commas.
    pub address: String,
    /// Name of this client, which NATS shows in its lists.
    pub name: String,
    /// File with the credentials of a user, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// File with the certificates of authorities to trust beside the system's.
    pub root_certificates: Option<PathBuf>,
    /// Files with the certificate of this client and its key, for a server that asks for them.
    pub client_certificate: Option<ClientCertificate>,
}

impl fmt::Debug for NatsOptions {
    /// Shows the address without its user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, name, credentials, root_certificates, client_certificate } = self;
        f.debug_struct("NatsOptions")
            .field("address", &without_password(address))
            .field("name", name)
            .field("credentials", credentials)
            .field("root_certificates", root_certificates)
            .field("client_certificate", client_certificate)
            .finish()
    }
}

/// The certificate by which a server knows a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// File with the certificate, as PEM.
    pub certificate: PathBuf,
    /// File with its key, as PEM.
    pub key: PathBuf,
}

impl NatsBus {
    /// Connects to a server.
    ///
    /// # Errors
    /// The address is not one, no server answers there within 5 s, or it refuses
    /// this client. The text says which.
    pub fn connect(options: &NatsOptions) -> Result<Self, BusError> {
        let (connected, outcome) = mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let options = options.clone();
        let denials = Arc::new(Denials::new());
        let refused = Arc::clone(&denials);
        let run = move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return drop(connected.send(Err(error.to_string()))),
            };
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                let client = match connect(options, refused).await {
                    Ok(client) => client,
                    Err(why) => return drop(connected.send(Err(why))),
                };
                if connected.send(Ok((client.clone(), handle))).is_ok() {
                    _ = ended.await;
                    _ = tokio::time::timeout(FLUSH_TIMEOUT, client.flush()).await;
                }
            });
        };
        let away = |why: String| BusError::Away(why);
        let thread = std::thread::Builder::new().name("bus".into()).spawn(run);
        let thread = thread.map_err(|error| away(error.to_string()))?;
        let (client, runtime) =
            outcome.recv().unwrap_or_else(|_| Err("its thread ended".into())).map_err(away)?;
        let subscriptions = Mutex::default();
        let (end, thread) = (Some(end), Some(thread));
        Ok(Self { client, runtime, subscriptions, denials, end, thread })
    }

    fn check_reachable(&self) -> Result<(), BusError> {
        if self.is_reachable() {
            Ok(())
        } else {
            Err(BusError::Away("the connection to NATS is lost; it is dialled again".into()))
        }
    }

    /// Subscribes to patterns, and waits until the server knows them.
    fn begin(&self, patterns: &[String]) -> Result<Vec<async_nats::Subscriber>, BusError> {
        let (client, denials) = (self.client.clone(), self.denials.each.subscribe());
        // A task of the runtime's thread runs in turn with the one that hands over denials, so
        // these come before what the server sent after them.
        let task = self.runtime.spawn(subscribe(client, denials, patterns.to_owned()));
        let subscribed = self.runtime.block_on(task);
        subscribed.map_err(|error| BusError::Away(error.to_string()))?
    }

    /// Returns the subscriptions that have not ended.
    fn subscriptions(&self) -> MutexGuard<'_, Vec<NatsSubscription>> {
        let lock = self.subscriptions.lock();
        let mut subscriptions = lock.unwrap_or_else(PoisonError::into_inner);
        subscriptions.retain(|subscription| !subscription.subscriber.has_ended());
        subscriptions
    }
}

impl Denials {
    fn new() -> Self {
        Self { first: Mutex::default(), each: broadcast::Sender::new(DENIALS_MAX) }
    }

    fn add(&self, denial: BusDenial) {
        let mut first = self.first();
        let needed = (denial.action, denial.needed());
        let is_new = first.iter().all(|known| (known.action, known.needed()) != needed);
        if is_new && first.len() < DENIALS_MAX {
            first.push(denial.clone());
        }
        drop(first);
        // No one may wait for one.
        _ = self.each.send(denial);
    }

    fn first(&self) -> MutexGuard<'_, Vec<BusDenial>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NatsSubscription {
    /// Begins to hand over the messages of a pattern. Of two callers that have subscribed to one
    /// pattern at the same time, the first does so: each message comes once.
    fn add(&mut self, runtime: &Handle, pattern: String, messages: async_nats::Subscriber) {
        if let Entry::Vacant(entry) = self.tasks.entry(pattern) {
            let task = runtime.spawn(forward(messages, self.subscriber.clone()));
            entry.insert(task.abort_handle());
        }
    }
}

impl Drop for NatsSubscription {
    fn drop(&mut self) {
        self.tasks.values().for_each(AbortHandle::abort);
    }
}

impl Bus for NatsBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        subject::check_subject(subject)?;
        let bytes_max = self.client.server_info().max_payload;
        if payload.len() > bytes_max {
            return Err(BusError::TooLarge { bytes: payload.len(), bytes_max });
        }
        self.check_reachable()?;
        let published = self.client.publish(subject.to_owned(), payload.to_owned().into());
        // The client takes the message into its queue at once, unless that is full.
        match published.now_or_never() {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(BusError::Away(error.to_string())),
            None => Err(BusError::Away("its queue is full".into())),
        }
    }

    fn subscribe(&self, pattern: &str) -> Result<BusSubscription, BusError> {
        subject::check_pattern(pattern)?;
        self.check_reachable()?;
        let (subscriber, subscription) = subscription();
        let mut new = NatsSubscription { subscriber, tasks: Tasks::new() };
        for messages in self.begin(&[pattern.to_owned()])? {
            new.add(&self.runtime, pattern.to_owned(), messages);
        }
        self.subscriptions().push(new);
        Ok(subscription)
    }

    fn extend(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError> {
        patterns.iter().try_for_each(|pattern| subject::check_pattern(pattern))?;
        self.check_reachable()?;
        let is_it = |known: &&mut NatsSubscription| known.subscriber.is_of(subscription);
        let known = self.subscriptions().iter_mut().find(is_it).map(|it| {
            let new = patterns.iter().filter(|pattern| !it.tasks.contains_key(*pattern));
            new.cloned().collect::<BTreeSet<_>>()
        });
        let Some(new) = known.map(Vec::from_iter) else { return Ok(()) };
        // The round trip takes a while: no lock is held meanwhile.
        let messages = self.begin(&new)?;
        if let Some(known) = self.subscriptions().iter_mut().find(is_it) {
            for (pattern, messages) in new.into_iter().zip(messages) {
                known.add(&self.runtime, pattern, messages);
            }
        }
        Ok(())
    }

    fn reduce(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError> {
        self.check_reachable()?;
        let mut subscriptions = self.subscriptions();
        let known = subscriptions.iter_mut().find(|it| it.subscriber.is_of(subscription));
        if let Some(known) = known {
            // The task owns the subscription of NATS, which ends with it.
            for task in patterns.iter().filter_map(|pattern| known.tasks.remove(pattern)) {
                task.abort();
            }
        }
        Ok(())
    }

    fn is_reachable(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    fn denials_after(&self, told: usize) -> Vec<BusDenial> {
        self.denials.first().iter().skip(told).cloned().collect()
    }
}

impl Drop for NatsBus {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

async fn connect(options: NatsOptions, denials: Arc<Denials>) -> Result<Client, String> {
    let NatsOptions { address, name, credentials, root_certificates, client_certificate } = options;
    let mut connect = ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .reconnect_delay_callback(|attempts| {
            RECONNECT_DELAY_MAX.min(RECONNECT_DELAY * attempts as u32)
        })
        .subscription_capacity(CLIENT_WAITING_MAX)
        .event_callback(move |event| {
            if let Event::ServerError(ServerError::Other(error)) = event
                && let Some(denial) = BusDenial::parse(&error)
            {
                denials.add(denial);
            }
            std::future::ready(())
        });
    if let Some(path) = root_certificates {
        connect = connect.add_root_certificates(path);
    }
    if let Some(ClientCertificate { certificate, key }) = client_certificate {
        connect = connect.add_client_certificate(certificate, key);
    }
    if let Some(path) = credentials {
        connect = connect
            .credentials_file(&path)
            .await
            .map_err(|error| format!("cannot read the credentials {}: {error}", path.display()))?;
    }
    let addresses = server_addresses(&address)?;
    if let Some((user, password)) = addresses.iter().find_map(login) {
        connect = connect.user_and_password(user, password);
    }
    let attempt = tokio::time::timeout(CONNECT_TIMEOUT, connect.connect(addresses)).await;
    let shown = without_password(&address);
    let outcome =
        attempt.map_err(|_| format!("no answer from {shown} within {CONNECT_TIMEOUT:?}"))?;
    outcome.map_err(|error| format!("{shown}: {error}"))
}

/// Subscribes, and waits until the server knows it: a server handles what one client says in order,
/// so the client's own message to itself comes after the subscriptions, and after their refusal.
async fn subscribe(
    client: Client,
    mut denials: broadcast::Receiver<BusDenial>,
    patterns: Vec<String>,
) -> Result<Vec<async_nats::Subscriber>, BusError> {
    let away = |error: String| BusError::Away(error);
    let mut messages = Vec::with_capacity(patterns.len());
    for pattern in &patterns {
        let one = client.subscribe(pattern.clone()).await;
        messages.push(one.map_err(|error| away(error.to_string()))?);
    }
    let inbox = client.new_inbox();
    let own = [&patterns[..], std::slice::from_ref(&inbox)].concat();
    let round_trip = async {
        let mut echo =
            client.subscribe(inbox.clone()).await.map_err(|error| away(error.to_string()))?;
        client.publish(inbox, "".into()).await.map_err(|error| away(error.to_string()))?;
        echo.next().await.ok_or_else(|| away("it has ended".into()))?;
        // Lets the task run that hands over what the server refused before it sent the message.
        tokio::task::yield_now().await;
        Ok(())
    };
    let seen = tokio::select! {
        biased;
        denial = denial_of(&own, &mut denials) => return Err(BusError::Denied(denial)),
        seen = tokio::time::timeout(CONNECT_TIMEOUT, round_trip) => seen,
    };
    seen.map_err(|_| away(format!("no answer within {CONNECT_TIMEOUT:?}")))??;
    match denial_of(&own, &mut denials).now_or_never() {
        Some(denial) => Err(BusError::Denied(denial)),
        None => Ok(messages),
    }
}

/// Waits for a denial of one of these subjects.
async fn denial_of(subjects: &[String], denials: &mut broadcast::Receiver<BusDenial>) -> BusDenial {
    loop {
        match denials.recv().await {
            Ok(denial) if subjects.contains(&denial.subject) => return denial,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The task of each pattern.
type Tasks = HashMap<String, AbortHandle>;

/// Hands all messages to a subscriber, until either of them has ended.
async fn forward(mut messages: async_nats::Subscriber, subscriber: Subscriber) {
    while let Some(message) = messages.next().await {
        let message =
            BusMessage { subject: message.subject.to_string(), payload: message.payload.into() };
        if !subscriber.deliver(message) {
            break;
        }
    }
}

fn server_addresses(address: &str) -> Result<Vec<ServerAddr>, String> {
    let parse = |one: &str| {
        let refuse = |error| format!("{} is no address of NATS: {error}", without_password(one));
        one.trim().parse().map_err(|error: std::io::Error| refuse(error))
    };
    address.split(',').map(parse).collect()
}

/// Returns the user and the password of an address.
fn login(address: &ServerAddr) -> Option<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decoded(address.username()?), decoded(address.password().unwrap_or_default())))
}

/// Returns the address without what stands before an `@`.
fn without_password(address: &str) -> String {
    let of_one = |one: &str| {
        let (scheme, rest) = one.split_once("://").unwrap_or(("nats", one));
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{host}")
    };
    address.split(',').map(|one| of_one(one.trim())).collect::<Vec<_>>().join(",")
}

/// Time that a server has to answer the first call, and a new subscription.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that the end of a connection waits until its last messages are sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two pings. Two without an answer mean that the server is lost.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// Time before the first further attempt to reach a lost server; it grows by itself each time.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(2);
/// Messages of one subscription that may wait within the client. It reads many messages from its
/// socket before `forward` has its turn, and what does not fit here is lost without a count. So
/// this is far more than it reads in one turn: the queue of the subscriber is the one that fills.
const CLIENT_WAITING_MAX: usize = 1 << 20;

/// Needed permissions that are kept, and denials that may wait for a reader.
const DENIALS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(
            without_password("nats://user:secret@a:4222, b:4222"),
            "nats://a:4222,nats://b:4222"
        );
        let options = NatsOptions { address: "nats://ada:secret@a:1".into(), ..Default::default() };
        let shown = format!("{options:?}");
        assert!(shown.contains("nats://a:1") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn an_address_where_nothing_listens_is_named() {
        let address = "nats://127.0.0.1:1".to_owned();
        let options = NatsOptions { address, ..NatsOptions::default() };
        let error = NatsBus::connect(&options).unwrap_err().to_string();
        assert!(error.contains("nats://127.0.0.1:1"), "{error}");
    }
}
