// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype

/// Both sides of ``IdleLanes``: a loader without caches that has a lane for each core.
enum TintypeIdleLanes {
    /// Loads the file at `path`, `loadCount` at a time.
    static func contestant(_ job: IdleLanes.Job, _ path: String, loadCount: Int, usesIdleLanes: Bool) -> Contestant {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        configuration.usesIdleLanes = usesIdleLanes
        let loader = LoaderActor(configuration: configuration)
        let thumbnail = job.side.map { Resize.fit(width: $0, height: $0) }
        return Contestant(
            counts: loadCount...100_000,
            note: "\(configuration.laneCount) decode lanes, \(loadCount) loads at a time; reading the file is included"
        ) { count in
            try await Fetching.measure(count: count, width: loadCount) { number in
                // Loads of one key would be one.
                let request = ImageRequest(
                    source: .init(url: URL(fileURLWithPath: path), cacheKey: "\(number)"),
                    rendering: .init(thumbnail: thumbnail),
                    caching: .init(originals: .none, variants: .none)
                )
                let image = try await loader.image(for: request)
                try Check.size(image.width, image.height, is: job.result)
            }
        }
    }
}
