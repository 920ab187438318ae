import Tintype

extension DiskCache.Configuration {
    /// The same with a size limit that is not under what the folder holds.
    ///
    /// A server may keep a larger cache in the same folder than the command would: the command must not shrink it.
    func sparing() async -> DiskCache.Configuration {
        var copy = self
        copy.sizeLimit = .max
        let cache = DiskCache(copy)
        let statistics = await cache.statistics()
        await cache.shutdown()
        // What another process's lock hides may be any size.
        guard statistics.lockTimeouts == 0 else { return copy }
        copy.sizeLimit = max(self.sizeLimit, statistics.byteCount + statistics.overheadByteCount)
        return copy
    }
}

extension LoaderActor.Configuration {
    /// The same with a disk tier that is not made smaller.
    func sparing() async -> LoaderActor.Configuration {
        var copy = self
        copy.disk = await self.disk?.sparing()
        return copy
    }
}
