/// The caches of a group that take part in one operation, the highest first.
struct CacheGroupMembers: Sendable {
    let caches: [any ImageCache]
    let isConcurrent: Bool

    /// Chooses from `caches`, the lowest first.
    init(of caches: [any ImageCache], policy: CacheGroup.Policy) {
        self.caches =
            switch policy {
            case .serial, .concurrent: caches.reversed()
            case .highestOnly: Array(caches.suffix(1))
            case .lowestOnly: Array(caches.prefix(1))
            }
        self.isConcurrent = policy == .concurrent
    }

    /// What `operation` gives for each cache, in their order.
    func results<Value: Sendable>(
        _ operation: @escaping @Sendable (any ImageCache) async -> Value
    ) async -> [Value] {
        guard self.isConcurrent else {
            var values: [Value] = []
            for cache in self.caches { values.append(await operation(cache)) }
            return values
        }
        return await withTaskGroup(of: (index: Int, value: Value).self) { group in
            for (index, cache) in self.caches.enumerated() {
                group.addTask { (index, await operation(cache)) }
            }
            let values = await group.reduce(into: []) { $0.append($1) }
            return values.sorted { $0.index < $1.index }.map(\.value)
        }
    }

    /// How `operation` ends for each cache, in their order; a failure of one does not stop the others.
    func attempts<Value: Sendable>(
        _ operation: @escaping @Sendable (any ImageCache) async throws -> Value
    ) async -> [Result<Value, any Error>] {
        await self.results { cache in
            do { return .success(try await operation(cache)) } catch { return .failure(error) }
        }
    }
}
