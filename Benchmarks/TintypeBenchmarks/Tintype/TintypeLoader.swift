// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype

/// Loaders as the benchmarks need them.
enum TintypeLoader {
    /// Returns a loader with one decode lane and without a disk tier.
    static func withoutDisk() -> LoaderActor {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        configuration.laneCount = 1
        return LoaderActor(configuration: configuration)
    }

    /// A loader with one decode lane whose disk tier lies in `folder`.
    static func withDisk(in folder: URL) -> LoaderActor {
        var configuration = LoaderActor.Configuration()
        configuration.disk = DiskCache.Configuration(directory: folder)
        configuration.laneCount = 1
        return LoaderActor(configuration: configuration)
    }
}
