// SPDX-License-Identifier: Apache-2.0

public import Tintype

/// An observer that reports loads which took long, and stores that failed.
public struct SlowLoadLog: LoadObserver {
    private let limit: Duration
    private let write: @Sendable (String) -> Void

    public init(over limit: Duration, write: @escaping @Sendable (String) -> Void) {
        self.limit = limit
        self.write = write
    }

    public func loader(didObserve activity: LoadActivity) {
        guard case .finished(let source, let metrics) = activity.kind, metrics.total > self.limit else { return }
        self.write("\(activity.product) of \(activity.request) from \(metrics.tier ?? "\(source)"): \(metrics)")
    }

    public func loader(didFailToStore error: LoadError) {
        self.write("\(error.code): \(error.message)")
    }
}
