//! The value that a search changes: the peak of the load, or a parameter of the scenario.

use std::ffi::OsString;

use throng_base::units::nearest;
use throng_load::scenario::{
    Model, Quantity, Scenario, ScenarioLoad, evaluate, peak_arrivals, peak_users, read_params,
};

use crate::Failure;
use crate::scenario_file::{ScenarioFile, ScenarioFileError};

/// A knob: how its values are read and written.
#[derive(Debug)]
pub(super) struct Knob {
    /// `users`, `arrivals`, or the name of a parameter.
    pub(super) name: String,
    /// Unit of the values: nothing, `/s` or `s`.
    pub(super) unit: &'static str,
    /// Whether values are whole numbers.
    pub(super) is_whole: bool,
    /// The scenario's own value.
    pub(super) own: f64,
    is_parameter: bool,
}

impl Knob {
    /// Returns the knob of this name, or the one of the scenario's load.
    pub(super) fn read(
        name: Option<&str>,
        file: &ScenarioFile,
        scenario: &Scenario,
    ) -> Result<Self, Failure> {
        let params = read_params(&file.text, &file.name).map_err(ScenarioFileError::Mistakes)?;
        let by_load = match (&scenario.load, scenario.load.model()) {
            (ScenarioLoad::ByClass(_), _) => None,
            (ScenarioLoad::Shared(_), Model::Closed) => Some("users"),
            (ScenarioLoad::Shared(_), Model::Open) => Some("arrivals"),
        };
        let parameter = |name: &str| params.iter().find(|(known, _)| known == name);
        if let Some((name, value)) = name.or(by_load).and_then(parameter) {
            return Self::of_parameter(name, value);
        }
        let Some(by_load) = by_load else {
            return Err(Failure::new(format!(
                "{}: each class has a load of its own, and a search changes one value; write the \
                 value as a parameter, and name it with --knob",
                file.name
            )));
        };
        let name = name.unwrap_or(by_load);
        let phases = scenario.load.shared();
        let (users, arrivals) = (peak_users(phases), peak_arrivals(phases));
        let knob = |unit, is_whole, own| Self {
            name: name.to_owned(),
            unit,
            is_whole,
            own,
            is_parameter: false,
        };
        match name {
            "users" if users > 0 => Ok(knob("", true, users.into())),
            "arrivals" if arrivals > 0.0 => Ok(knob("/s", false, arrivals)),
            "users" => Err(Failure::new("the load has no users to change: it has arrivals")),
            "arrivals" => Err(Failure::new("the load has no arrivals by a rate: it has users")),
            _ => {
                let names = || params.iter().map(|(name, _)| name.as_str()).chain([by_load]);
                let hint = match nearest(name, names()) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!(
                        "write a value of it as $({name}), and its default under `params`; known \
                         are {}",
                        names().collect::<Vec<_>>().join(", ")
                    ),
                };
                Err(Failure::new(format!("--knob {name}: {} has none; {hint}", file.name)))
            }
        }
    }

    fn of_parameter(name: &str, value: &Quantity) -> Result<Self, Failure> {
        let (own, unit) = match value {
            Quantity::Number { value, time: 0 } => (*value, ""),
            Quantity::Number { value, time: 1 } => (*value, "s"),
            Quantity::Number { value, time: -1 } => (*value, "/s"),
            _ => return Err(Failure::new(format!("--knob {name}: its value is no quantity"))),
        };
        if own <= 0.0 {
            return Err(Failure::new(format!("--knob {name}: its value is not above 0")));
        }
        let is_whole = unit.is_empty() && own.fract() == 0.0;
        Ok(Self { name: name.to_owned(), unit, is_whole, own, is_parameter: true })
    }

    /// Parses a value with the knob's unit.
    pub(super) fn parse(&self, text: &str) -> Result<f64, String> {
        let quantity = evaluate(text, &|_| None).map_err(|error| error.problem)?;
        let time = match self.unit {
            "s" => 1,
            "/s" => -1,
            _ => 0,
        };
        match quantity {
            Quantity::Number { value, time: found } if found == time && value > 0.0 => Ok(value),
            _ => Err(match time {
                1 => format!("{} is a duration, such as 10s", self.name),
                -1 => format!("{} is a rate, such as 100/s", self.name),
                _ => format!("{} is a number above 0, such as 10k", self.name),
            }),
        }
    }

    /// Returns the flags of `throng run` for this value.
    pub(super) fn flags(&self, value: f64) -> [OsString; 2] {
        let value = match self.unit {
            "s" => Quantity::seconds(value),
            "/s" => Quantity::per_second(value),
            _ => Quantity::number(value),
        };
        if self.is_parameter {
            return ["--set".into(), format!("{}={value}", self.name).into()];
        }
        [format!("--{}", self.name).into(), value.to_string().into()]
    }
}
