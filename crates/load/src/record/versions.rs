//! Merges the workers' recorders by version of HTTP.

use crate::options::{HttpVersion, HttpVersions, Options};
use crate::record::recorder::Recorder;
use crate::result::{ByVersion, VersionFigures};
use crate::share::Share;

/// The merged recorders of each version; `None` without one.
pub(crate) fn merged(
    recorders: impl IntoIterator<Item = (HttpVersion, Recorder)>,
) -> ByVersion<Option<Recorder>> {
    let mut merged = ByVersion::default();
    for (version, recorder) in recorders {
        match merged.as_mut().of(version) {
            Some(all) => Recorder::merge(all, &recorder),
            none => *none = Some(recorder),
        }
    }
    merged
}

/// The figures of each version in a run with both, without rates; `None` with one.
pub(crate) fn figures(
    options: &Options,
    recorders: &ByVersion<Option<Recorder>>,
    shares: &[Share],
) -> Option<ByVersion<VersionFigures>> {
    let HttpVersions::Both(_) = options.http else { return None };
    let of_version = |version| {
        let own = || shares.iter().filter(|share| share.version == version);
        let figures = VersionFigures {
            connections: own().map(|share| share.connections).sum(),
            workers: own().count() as u32,
            ..VersionFigures::default()
        };
        match recorders.as_ref().of(version) {
            Some(recorder) => recorded(recorder, figures),
            None => figures,
        }
    };
    Some(ByVersion { http1: of_version(HttpVersion::Http1), http2: of_version(HttpVersion::Http2) })
}

fn recorded(recorder: &Recorder, figures: VersionFigures) -> VersionFigures {
    let within = recorder.within();
    VersionFigures {
        requests: within.answered,
        errors: within.errors_by_class(),
        error_ratio: within.error_ratio(),
        planned: recorder.planned,
        unsent: recorder.unsent_in_all().count,
        response: recorder.response.distribution(),
        alpn: recorder.alpn(),
        ..figures
    }
}
