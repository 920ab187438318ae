// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// The heads of entries that were read and checked, so that the next look-up opens no file, and newer dates of entries.
///
/// A head is valid as long as the shared catalogue has the same record of the entry. Records count seconds, so two
/// stores in one second have the same record. So a head is remembered only when the second of its store is over, and
/// not while a file is being moved into place.
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
    /// The seconds after a store from which its head is remembered.
    private static let settlingTime = 2.0

    private let heads = Locked<[EntryName: Head]>([:])
    /// The metadata of bodies that were confirmed after their files were written.
    private let renewals = Locked<[EntryName: EntryMetadata]>([:])

    /// Returns the head of `key` if it is known and `record` has not changed.
    func head(of key: CacheKey, _ record: CatalogueRecord) -> Head? {
        guard let head = self.heads.withLock({ $0[record.name] }), head.stamp == Stamp(record), head.key == key else {
            return nil
        }
        return head
    }

    /// Returns whether a head that is read after the call may be remembered.
    static func isSettled(_ record: CatalogueRecord, in folder: CacheFolder, now: Double) -> Bool {
        guard case .shared = folder.mode, now >= Double(record.storedAt) + self.settlingTime else { return false }
        // The catalogue receives the record of a file before the file is in place.
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
        _ = self.renewals.withLock { $0.removeValue(forKey: name) }
    }

    // MARK: Renewals

    /// Keeps the response of `metadata` for an entry with the same body.
    func renew(_ name: EntryName, by metadata: EntryMetadata) {
        self.renewals.withLock { renewals in
            if renewals.count >= Self.limit { renewals.removeAll(keepingCapacity: true) }
            renewals[name] = metadata
        }
    }

    /// Returns the metadata of the file of an entry with the newest response that confirms its body.
    func renewed(_ metadata: EntryMetadata, _ name: EntryName) -> EntryMetadata {
        guard let renewal = self.renewals.withLock({ $0[name] }), renewal.bodyDigest == metadata.bodyDigest,
            let newer = renewal.response, let old = metadata.response, newer.responseDate > old.responseDate
        else { return metadata }
        var metadata = metadata
        metadata.response = newer
        metadata.responseDate = renewal.responseDate
        return metadata
    }
}
