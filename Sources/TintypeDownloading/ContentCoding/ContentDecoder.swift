// SPDX-License-Identifier: Apache-2.0

/// Undoes the content codings of a body while it arrives, and knows whether each came to its end.
///
/// libcurl undoes codings as well, but takes a coded body that breaks off for a whole one.
///
/// Not sendable: only the loop's thread touches it.
final class ContentDecoder {
    /// Why the body cannot be decoded.
    enum Failure: Error {
        case corrupt
        /// One of the codings has more bytes than a body may have.
        case tooLarge
        case outOfMemory
        /// This build lacks the trait that one of the codings needs.
        case missingTrait(String)
    }

    /// One coding, and what it gave that was not taken yet.
    private final class Stage {
        static let capacity = 64 << 10

        let codec: any ContentCodec
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: Stage.capacity, alignment: 16)
        var ready = 0..<0
        var takenCount = 0

        init(_ codec: any ContentCodec) {
            self.codec = codec
        }

        deinit {
            self.space.deallocate()
        }
    }

    /// The most codings: a server may code a body twice.
    ///
    /// Each may have a window of 16 MiB.
    private static let maximumCount = 2

    /// In the order in which they are undone.
    private let stages: [Stage]
    private let limit: Int
    /// The bytes of the next chunk that were decoded before the reader paused: libcurl hands them over again.
    private var decodedCount = 0
    private(set) var hasStarted = false

    /// Creates a decoder.
    ///
    /// - Parameters:
    ///   - codings: The codings, in the order in which they were applied.
    ///   - limit: The most bytes of the body. A coding inside another one may have hardly more.
    /// - Throws: ``Failure`` for too many codings, and without memory.
    init(_ codings: [ContentCoding], limit: Int) throws(Failure) {
        guard codings.count <= Self.maximumCount else { throw .corrupt }
        var stages: [Stage] = []
        for coding in codings.reversed() {
            if let trait = coding.missingTrait { throw .missingTrait(trait) }
            guard let codec = coding.makeCodec() else { throw .outOfMemory }
            stages.append(Stage(codec))
        }
        self.stages = stages
        // No coding makes incompressible bytes this much longer.
        let (sum, isOver) = limit.addingReportingOverflow(limit / 64 + 4_096)
        self.limit = isOver ? .max : sum
    }

    /// Whether every coding has come to its end.
    var isComplete: Bool { self.stages.allSatisfy(\.codec.isComplete) }

    /// The bytes of memory that the codings take now.
    var heldByteCount: Int { self.stages.reduce(0) { $0 + Stage.capacity + $1.codec.heldByteCount } }

    /// Decodes a chunk and hands over the result, piece by piece.
    ///
    /// - Parameters:
    ///   - chunk: The received bytes.
    ///   - mayGoOn: Receives the number of bytes between two codings, which may produce nothing; returns false to
    ///     pause.
    ///   - take: Takes a decoded piece.
    /// - Returns: The last result of `take`. After a pause the caller must pass the same bytes again.
    /// - Throws: ``Failure``.
    func decode(
        _ chunk: UnsafeRawBufferPointer,
        mayGoOn: (Int) -> Bool = { _ in true },
        _ take: (UnsafeRawBufferPointer) -> Transfer.Verdict
    ) throws(Failure) -> Transfer.Verdict {
        if !chunk.isEmpty { self.hasStarted = true }
        let skipped = min(self.decodedCount, chunk.count)
        self.decodedCount -= skipped
        var rest = UnsafeRawBufferPointer(rebasing: chunk.dropFirst(skipped))
        guard let last = self.stages.last else { return take(rest) }
        while true {
            let filling = try self.fill(self.stages.count - 1, from: &rest, mayGoOn)
            if filling == .needsBytes { return .proceed }
            let verdict = filling == .paused ? .pause : take(UnsafeRawBufferPointer(rebasing: last.space[last.ready]))
            if verdict == .pause { self.decodedCount += chunk.count - rest.count }
            guard verdict == .proceed else { return verdict }
            last.ready = 0..<0
        }
    }

    /// The result of an attempt to fill a buffer.
    private enum Filling {
        case ready
        /// It takes more of the body.
        case needsBytes
        case paused
    }

    /// Lets a stage have bytes ready.
    private func fill(
        _ index: Int,
        from rest: inout UnsafeRawBufferPointer,
        _ mayGoOn: (Int) -> Bool
    ) throws(Failure) -> Filling {
        let stage = self.stages[index]
        while stage.ready.isEmpty {
            let source = index == 0 ? nil : self.stages[index - 1]
            let input = source.map { UnsafeRawBufferPointer(rebasing: $0.space[$0.ready]) } ?? rest
            guard let progress = stage.codec.decode(input, into: stage.space) else { throw .corrupt }
            if let source {
                source.ready = (source.ready.lowerBound + progress.taken)..<source.ready.upperBound
            } else {
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(progress.taken))
            }
            stage.ready = 0..<progress.written
            stage.takenCount += progress.taken
            // Blocks of nothing have no end otherwise.
            guard stage.takenCount <= self.limit else { throw .tooLarge }
            guard progress.taken == 0, progress.written == 0 else {
                guard index == 0 || mayGoOn(progress.taken) else { return .paused }
                continue
            }
            guard input.isEmpty else { throw .corrupt }
            // It wants more: from the coding around it, or from the body.
            guard index > 0 else { return .needsBytes }
            let filling = try self.fill(index - 1, from: &rest, mayGoOn)
            guard filling == .ready else { return filling }
        }
        return .ready
    }
}
