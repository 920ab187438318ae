import TintypeConcurrency

/// The heads of entries that were read and checked, so that the next look-up opens no file.
///
/// A head holds as long as the catalogue that all processes share has the same record of the entry. Two stores differ in
/// their second, so a head is remembered only when that of its store is over, and never while a file is on its way.
final class KnownHeads: Sendable {
    struct Head: Sendable {
        let key: CacheKey
        let header: EntryHeader
        let metadata: EntryMetadata
        fileprivate let stamp: Stamp
    }

    /// The fields of a record that a store changes.
    fileprivate struct Stamp: Hashable, Sendable {
        let byteCount: Int
        let storedAt: UInt32
        let deadline: UInt32

        init(_ record: CatalogueRecord) {
            self.byteCount = record.byteCount
            self.storedAt = record.storedAt
            self.deadline = record.deadline
        }
    }

    private static let limit = 1_024
    /// The seconds after a store from which on a head is remembered.
    private static let settlingTime = 2.0

    private let heads = Locked<[EntryName: Head]>([:])

    /// Returns the head of `key`, if it is known and `record` is still that of its entry.
    func head(of key: CacheKey, _ record: CatalogueRecord) -> Head? {
        guard let head = self.heads.withLock({ $0[record.name] }), head.stamp == Stamp(record), head.key == key else {
            return nil
        }
        return head
    }

    /// Whether the head of an entry that is read from now on may be remembered.
    static func isSettled(_ record: CatalogueRecord, in folder: CacheFolder, now: Double) -> Bool {
        guard case .shared = folder.mode, now >= Double(record.storedAt) + self.settlingTime else { return false }
        // The record of a file that is moved into its place is there before the file.
        return folder.region[.intentHigh] != record.name.high
    }

    func remember(_ header: EntryHeader, _ metadata: EntryMetadata, of key: CacheKey, _ record: CatalogueRecord) {
        let head = Head(key: key, header: header, metadata: metadata, stamp: Stamp(record))
        self.heads.withLock { heads in
            if heads.count >= Self.limit { heads.removeAll(keepingCapacity: true) }
            heads[record.name] = head
        }
    }

    func forget(_ name: EntryName) {
        _ = self.heads.withLock { $0.removeValue(forKey: name) }
    }
}
