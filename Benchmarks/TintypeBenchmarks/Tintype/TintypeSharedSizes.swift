// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Tintype

/// Both sides of ``SharedSizes``: a loader without caches.
enum TintypeSharedSizes {
    /// Assigns every operation a separate address, so that operations are not cached.
    private final class Numbers: Sendable {
        private let last = Atomic<Int>(0)

        func next() -> Int { self.last.add(1, ordering: .relaxed).newValue }
    }

    /// Loads all sizes at once, from one address or from one address each.
    ///
    /// An operation is all sizes together.
    static func contestant(_ target: ColdLoads.Target, isShared: Bool) -> Contestant {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        let loader = LoaderActor(configuration: configuration)
        let numbers = Numbers()
        return Contestant(counts: 1...1_000, note: "\(target.byteCount) bytes from nginx; no caches") { count in
            try await Fetching.measure(count: count, width: 1) { _ in
                let number = numbers.next()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for side in SharedSizes.sides {
                        let name = isShared ? "\(number)" : "\(number)-\(side)"
                        guard let url = URL(string: "\(target.address)?\(name)") else {
                            throw Unavailable("bad address \(target.address)")
                        }
                        let request = ImageRequest(
                            source: .init(url: url),
                            rendering: .init(thumbnail: .fit(width: side, height: side)),
                            caching: .init(originals: .none, variants: .none)
                        )
                        group.addTask {
                            let image = try await loader.image(for: request)
                            try Check.size(image.width, image.height, is: (side, side * target.height / target.width))
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }
    }
}
