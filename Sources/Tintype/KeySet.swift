import TintypeConcurrency

/// Names of what is under way, each at most once.
final class KeySet: Sendable {
    private let names = Locked<Set<String>>([])

    /// Adds a name, and says whether it was not there.
    func insert(_ name: String) -> Bool {
        self.names.withLock { $0.insert(name).inserted }
    }

    /// Takes a name out.
    func remove(_ name: String) {
        self.names.withLock { _ = $0.remove(name) }
    }
}
