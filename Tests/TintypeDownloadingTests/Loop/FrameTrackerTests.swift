// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport

@testable import TintypeDownloading

@Suite struct FrameTrackerTests {
    /// Returns the tracker's verdict on the stream of one request after the given frames.
    private static func hasEnded(
        _ frames: [UInt8],
        bodyBytes: Int,
        hasTrailers: Bool = false,
        pieceSize: Int = .max
    ) -> Bool {
        var tracker = FrameTracker()
        let id = tracker.open()
        for start in stride(from: 0, to: frames.count, by: min(pieceSize, frames.count)) {
            frames[start...].prefix(pieceSize).withUnsafeBytes { tracker.read($0) }
        }
        return tracker.hasEnded(id, bodyBytes: bodyBytes, hasTrailers: hasTrailers)
    }

    private static let start = FaultyResponse.settingsFrame + FaultyResponse.headFrame()
    private static let body = [UInt8](repeating: 7, count: 300)
    private static let trailers = FaultyResponse.frame(type: 1, flags: 5, stream: 1, [0, 1, 120, 1, 121])

    @Test(arguments: [1, 2, 7, 100, .max]) func `a stream ends with its last frame, wherever reads split it`(
        pieceSize: Int
    ) {
        let frames = Self.start + FaultyResponse.dataFrame(Self.body) + FaultyResponse.frame(type: 6, Self.body)
        let end = FaultyResponse.dataFrame([1], isLast: true)
        #expect(!Self.hasEnded(frames, bodyBytes: 300, pieceSize: pieceSize))
        #expect(Self.hasEnded(frames + end, bodyBytes: 301, pieceSize: pieceSize))
        #expect(!Self.hasEnded(frames + end, bodyBytes: 300, pieceSize: pieceSize))
    }

    @Test func `padding is no part of a body, and a frame of more padding than it has ends nothing`() {
        let padded = FaultyResponse.frame(type: 0, flags: 9, stream: 1, [3, 1, 2, 0, 0, 0])
        #expect(Self.hasEnded(Self.start + padded, bodyBytes: 2))
        let illegal =
            [FaultyResponse.frame(type: 0, flags: 9, stream: 1, [6, 1, 2, 0, 0, 0])]
            + [FaultyResponse.frame(type: 0, flags: 9, stream: 1)]
        for frame in illegal {
            for count in 0...6 { #expect(!Self.hasEnded(Self.start + frame, bodyBytes: count)) }
        }
    }

    @Test func `a reset ends a stream for good, and one after the end changes nothing`() {
        let end = FaultyResponse.dataFrame([1, 2], isLast: true)
        let reset = FaultyResponse.resetFrame(code: 0)
        #expect(!Self.hasEnded(Self.start + reset + FaultyResponse.dataFrame([], isLast: true), bodyBytes: 0))
        #expect(Self.hasEnded(Self.start + end + reset, bodyBytes: 2))
        #expect(!Self.hasEnded(Self.start + FaultyResponse.dataFrame([1, 2]) + reset, bodyBytes: 2))
    }

    @Test func `trailers end a body only if they could be read`() {
        let frames = Self.start + FaultyResponse.dataFrame(Self.body) + Self.trailers
        #expect(Self.hasEnded(frames, bodyBytes: 300, hasTrailers: true))
        #expect(!Self.hasEnded(frames, bodyBytes: 300))
        // A response to a HEAD request has no body.
        #expect(Self.hasEnded(FaultyResponse.frame(type: 1, flags: 5, stream: 1, [0x88]), bodyBytes: 0))
    }

    @Test func `each request has its own stream, and one that has left counts no more`() {
        var tracker = FrameTracker()
        let ids = (0..<3).map { _ in tracker.open() }
        #expect(ids == [1, 3, 5])
        let end = FaultyResponse.dataFrame([1, 2], stream: 5, isLast: true)
        let frames = end + FaultyResponse.dataFrame([1], stream: 3)
        frames.withUnsafeBytes { tracker.read($0) }
        #expect(ids.map { tracker.hasEnded($0, bodyBytes: 2, hasTrailers: false) } == [false, false, true])
        tracker.close(5)
        #expect(!tracker.hasEnded(5, bodyBytes: 2, hasTrailers: false))
        #expect(tracker.openCount == 2)
    }
}
