//! The driver of a run: any that has sockets and a link between its cores.

use std::fmt;
use std::sync::Arc;

use throng_driver::{
    CoreLink, Cores, CoresOptions, Driver, DriverCapacity, DriverFactory, Epoll, Errno,
};
use throng_engine::{Core, CoreLimits};
use throng_proto::TransportFactory;

use crate::generator::{Generator, GeneratorConfig, GeneratorMessage};

/// Driver of a run. It makes what the cores run on, and answers for what they can hold.
#[derive(Clone)]
pub struct LoadDriver(Arc<dyn LoadCores>);

impl LoadDriver {
    /// True if there is a choice.
    pub const SEVERAL: bool = DRIVERS.len() > 1;

    /// Returns the driver with this name.
    ///
    /// # Errors
    /// No driver has this name. The text has the names of all drivers.
    pub fn named(name: &str) -> Result<Self, String> {
        let names = || DRIVERS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        let found = DRIVERS.iter().find(|row| row.name == name);
        found.map(|row| (row.make)()).ok_or_else(|| format!("`{name}` is not one of {}", names()))
    }

    /// Creates the driver whose cores run on what `factory` makes.
    pub fn new(factory: impl DriverFactory) -> Self {
        Self(Arc::new(factory))
    }

    /// Returns what the cores can hold on this machine now.
    pub(super) fn capacity(&self) -> DriverCapacity {
        self.0.capacity()
    }

    /// Starts the cores of a generator.
    pub(super) fn start(
        &self,
        options: &CoresOptions,
        config: Arc<GeneratorConfig>,
        limits: CoreLimits,
        transport: Option<TransportFactory>,
    ) -> Result<Cores<GeneratorMessage>, Errno> {
        self.0.start(options, config, limits, transport)
    }
}

impl Default for LoadDriver {
    fn default() -> Self {
        (DRIVERS[0].make)()
    }
}

impl fmt::Debug for LoadDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoadDriver").field(&self.capacity()).finish()
    }
}

/// Factory without its types. Virtual calls end where the cores begin.
trait LoadCores: Send + Sync {
    fn capacity(&self) -> DriverCapacity;

    fn start(
        &self,
        options: &CoresOptions,
        config: Arc<GeneratorConfig>,
        limits: CoreLimits,
        transport: Option<TransportFactory>,
    ) -> Result<Cores<GeneratorMessage>, Errno>;
}

impl<F: DriverFactory> LoadCores for F {
    fn capacity(&self) -> DriverCapacity {
        DriverFactory::capacity(self)
    }

    fn start(
        &self,
        options: &CoresOptions,
        config: Arc<GeneratorConfig>,
        limits: CoreLimits,
        transport: Option<TransportFactory>,
    ) -> Result<Cores<GeneratorMessage>, Errno> {
        throng_driver::spawn(options, self.clone(), move |driver| {
            let (number, cores) = (driver.link().core(), driver.link().cores());
            let generator = Generator::new(Arc::clone(&config), number, cores);
            let mut core = Core::new(driver, generator, limits);
            if let Some(transport) = &transport {
                core.set_transport(transport.make(number));
            }
            core.run();
        })
    }
}

/// Driver in the table.
struct DriverRow {
    name: &'static str,
    make: fn() -> LoadDriver,
}

/// Drivers of `throng run --driver`. The first is the default.
const DRIVERS: &[DriverRow] = &[DriverRow { name: "epoll", make: || LoadDriver::new(Epoll) }];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_found_by_name_and_the_first_is_the_default() {
        for DriverRow { name, .. } in DRIVERS {
            assert!(LoadDriver::named(name).is_ok(), "{name}");
        }
        let error = LoadDriver::named("rdma").unwrap_err();
        assert_eq!(error, "`rdma` is not one of epoll");
        let default = LoadDriver::default().capacity();
        assert_eq!(default, DriverFactory::capacity(&Epoll));
    }
}
