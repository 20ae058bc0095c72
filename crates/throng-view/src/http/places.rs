//! The places of all connections.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::limits::HttpLimits;
use super::place::PlaceState;

/// The places of all connections: at most [`HttpLimits::connections_max`].
#[derive(Debug)]
pub(super) struct Places {
    limits: HttpLimits,
    taken: Mutex<Vec<Arc<SharedPlace>>>,
    freed: Notify,
}

impl Places {
    pub(super) fn new(limits: HttpLimits) -> Self {
        Self { limits, taken: Mutex::default(), freed: Notify::new() }
    }

    /// Returns a place. If all are taken, the connection that must give its place is closed; if
    /// each of them waits for the server, this waits until one does not.
    pub(super) async fn take(self: &Arc<Self>) -> Place {
        while self.is_full() && !self.close_one() {
            let _ = timeout(LOOK_EVERY, self.freed.notified()).await;
        }
        let state = PlaceState::new(self.limits, Instant::now());
        let shared = Arc::new(SharedPlace { state: Mutex::new(state), closed: Notify::new() });
        lock(&self.taken).push(Arc::clone(&shared));
        Place { shared, places: Arc::clone(self) }
    }

    fn is_full(&self) -> bool {
        lock(&self.taken).len() >= self.limits.connections_max
    }

    /// Closes the connection that gives its place first, if one of them does.
    fn close_one(&self) -> bool {
        let mut taken = lock(&self.taken);
        let ranks = taken.iter().enumerate();
        let ranks = ranks.filter_map(|(at, place)| Some((lock(&place.state).rank()?, at)));
        let Some((_, at)) = ranks.min() else { return false };
        taken.swap_remove(at).closed.notify_one();
        true
    }
}

/// What a connection, its stream and its answers share.
#[derive(Debug)]
pub(super) struct SharedPlace {
    state: Mutex<PlaceState>,
    closed: Notify,
}

impl SharedPlace {
    /// Changes the state.
    pub(super) fn update(&self, change: impl FnOnce(&mut PlaceState)) {
        change(&mut lock(&self.state));
    }

    /// Waits until the connection must be closed.
    pub(super) async fn must_close(&self) {
        loop {
            let left = lock(&self.state).time_left(Instant::now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = self.closed.notified() => return,
                () = sleep(left) => {}
            }
        }
    }
}

/// The place of a connection. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) shared: Arc<SharedPlace>,
    places: Arc<Places>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.taken).retain(|place| !Arc::ptr_eq(place, &self.shared));
        self.places.freed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time between two looks for a place while every connection waits for the server.
const LOOK_EVERY: Duration = Duration::from_millis(100);
