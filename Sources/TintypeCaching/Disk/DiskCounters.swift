/// How the disk tier was used, as far as its index does not know it.
struct DiskCounters: Sendable {
    var hits = 0
    var misses = 0
    var damagedEntries = 0
    var evictions = 0
    var expiredEntries = 0
    var storeErrors = 0
    var lastStoreError: CacheError?
}
