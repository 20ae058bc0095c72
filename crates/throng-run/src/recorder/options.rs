//! The options of a recorder.

use std::path::PathBuf;
use std::time::Duration;

use throng_measure::runfile::RunHeader;
use throng_report::Threshold;

/// The options of a recorder.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// The path of the run file; the recorder overwrites it. None: only the summary stays.
    pub run_file: Option<PathBuf>,
    /// The first line of the run file.
    pub header: RunHeader,
    /// The length of an interval. Default 1 s.
    pub interval: Duration,
    /// The thresholds that the run should meet.
    pub thresholds: Vec<Threshold>,
    /// The time without an answer after which a server counts as lost. A server that closes a
    /// million connections answers late. A server whose control socket is gone is lost at once.
    /// Default 3 s.
    pub server_lost_after: Duration,
    /// The time that the generator may take to ramp down after
    /// [`RecordingHandle::stop`](super::RecordingHandle::stop). Default 30 s.
    pub ramp_down_timeout: Duration,
    /// The time after which a run that is paused ends, found out at the end of an interval. Default
    /// 1 h.
    pub pause_max: Duration,
    /// The time after which a run ends if every connect was refused and none has ever succeeded,
    /// found out at the end of an interval; none if such a run goes on. Default none.
    pub refused_max: Option<Duration>,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            run_file: None,
            header: RunHeader::default(),
            interval: Duration::from_secs(1),
            thresholds: Vec::new(),
            server_lost_after: Duration::from_secs(3),
            ramp_down_timeout: Duration::from_secs(30),
            pause_max: Duration::from_secs(3_600),
            refused_max: None,
        }
    }
}
