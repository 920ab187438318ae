import FoundationEssentials
import Glibc
import Synchronization

/// The folder of a disk tier: what is written where, and what is known about it.
///
/// Every function blocks and may be called from any of the cache's threads. The caller sees to
/// it that two operations on one key never run at once, except removals, which ``withStripe``
/// keeps apart from the moves into place.
///
///     <directory>/ab/abcd...   one file an entry, called by the digest of its key
///     <directory>/tmp/...      files that are being written
final class EntryStore: Sendable {
    let directory: String
    let sizeLimit: Int
    let index = Monitor(DiskIndex())
    /// Set when the cache shuts down: long work on the folder ends early.
    let isClosing = Atomic<Bool>(false)

    private let maximumAge: Double
    private let expiry: DiskCache.Expiry
    private let clock: @Sendable () -> Date
    private let stripes = (0..<64).map { _ in Monitor(()) }
    private let temporaryPrefix = String(UInt64.random(in: .min ... .max), radix: 16)
    private let temporaryNumber = Atomic<Int>(0)

    /// How far the recorded use of an entry may lie behind its real use: a hot entry is not
    /// written to at each hit.
    let useResolution: Double

    init(_ configuration: DiskCache.Configuration) {
        var path = configuration.directory.absoluteURL.path(percentEncoded: false)
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        self.directory = path
        self.sizeLimit = max(0, configuration.sizeLimit)
        self.maximumAge = configuration.maximumAge.map(Self.seconds(of:)) ?? .infinity
        self.useResolution = min(60, self.maximumAge / 100)
        self.expiry = configuration.expiry
        self.clock = configuration.now
    }

    // MARK: Names

    /// The folder of files that are being written; beside the entries, so that a rename can
    /// move them into place.
    var temporaryFolder: String { self.directory + "/tmp" }

    /// The folders of the entries.
    var shardFolders: [String] { (UInt8.min...UInt8.max).map(self.shardFolder(_:)) }

    func path(of digest: KeyDigest) -> String {
        self.shardFolder(digest.shard) + "/" + digest.fileName
    }

    func shardFolder(_ shard: UInt8) -> String {
        self.directory + (shard < 16 ? "/0" : "/") + String(shard, radix: 16)
    }

    /// A path in the temporary folder that no other writer uses, in any process.
    func makeTemporaryPath() -> String {
        let number = self.temporaryNumber.wrappingAdd(1, ordering: .relaxed).newValue
        return "\(self.temporaryFolder)/\(self.temporaryPrefix)-\(number)"
    }

    // MARK: Age

    /// The time in seconds since 1970, as the files have it.
    var now: Double { self.clock().timeIntervalSince1970 }

    /// Whether an entry's time is over.
    func isExpired(_ header: EntryHeader, usedAt: Double, now: Double) -> Bool {
        if header.expiresAt <= now { return true }
        let start =
            switch self.expiry {
            case .access: usedAt
            case .modification: header.storedAt
            case .creation: header.createdAt
            }
        return now - start >= self.maximumAge
    }

    /// The last use before which an entry is expired, or `nil` when its last use does not decide.
    func oldestLivingUse(now: Double) -> Double? {
        self.expiry == .access && self.maximumAge < .infinity ? now - self.maximumAge : nil
    }

    /// Whether an overwrite must look up when the first body was stored.
    var keepsCreationDate: Bool { self.expiry == .creation }

    // MARK: Order

    /// Runs `body` while no one else moves a file to, or away from, the path of `digest`.
    func withStripe<Result, Failure: Error>(
        of digest: KeyDigest,
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try self.stripes[Int(digest.shard) % self.stripes.count].withLock { _ throws(Failure) in try body() }
    }

    private static func seconds(of duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}
