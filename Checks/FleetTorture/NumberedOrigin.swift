// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TintypeCoding
import TintypeImage
import TintypeTestSupport

/// An origin with any number of images, each of which has its own noise and never changes.
final class NumberedOrigin: Sendable {
    /// The requests for each image.
    private final class Counts: Sendable {
        let counts = Mutex<[Int: Int]>([:])
    }

    private let counts = Counts()
    private let origin: FaultyOrigin

    init(address: String) throws {
        let counts = self.counts
        self.origin = try FaultyOrigin(
            [
                "/image": FaultyResponse([
                    .answer { head in
                        let number = Self.number(in: head)
                        counts.counts.withLock { $0[number, default: 0] += 1 }
                        return Self.response(number, head)
                    }
                ]),
                "/reference": FaultyResponse([.answer { head in Self.response(Self.number(in: head), head) }]),
            ],
            address: address
        )
    }

    /// The URL of an image; with `counts: false`, requests for it are not counted.
    func url(_ number: Int, counts: Bool = true) -> String {
        "\(self.origin.url(counts ? "/image" : "/reference").absoluteString)?n=\(number)"
    }

    /// The requests for images with numbers in a range.
    func requestCount(_ numbers: Range<Int> = 0..<Int.max) -> Int {
        self.counts.counts.withLock { $0.reduce(0) { $0 + (numbers.contains($1.key) ? $1.value : 0) } }
    }

    func stop() {
        self.origin.stop()
    }

    // MARK: Images

    /// Whether an image is missing, which is remembered for all servers.
    static func isMissing(_ number: Int) -> Bool { number % 10 == 9 }

    /// Whether an image becomes outdated within seconds, so that it is served while the origin is asked.
    private static func isShortLived(_ number: Int) -> Bool { number % 5 == 2 }

    /// Returns an image of 58 kB.
    static func png(_ number: Int) throws -> [UInt8] {
        var generator = SeededGenerator(seed: UInt64(number))
        let pixels = try PixelBuffer.make(.rgb8, width: 160, height: 120) { _, _, _ in
            UInt8.random(in: 0...255, using: &generator)
        }
        return Array(try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions()))
    }

    private static func number(in head: [UInt8]) -> Int {
        let line = String(decoding: head.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        let digits = line.split(separator: "?n=").last?.prefix(while: \.isNumber) ?? ""
        return Int(digits) ?? -1
    }

    private static func response(_ number: Int, _ head: [UInt8]) -> FaultyResponse {
        guard !self.isMissing(number), let png = try? self.png(number) else { return .body([], status: 404) }
        let age = self.isShortLived(number) ? "max-age=2, stale-while-revalidate=3" : "max-age=86400"
        let headers = [("ETag", "\"\(number)\""), ("Cache-Control", age)]
        if String(decoding: head, as: UTF8.self).lowercased().contains("if-none-match: \"\(number)\"") {
            return FaultyResponse([FaultyResponse.head(304, headers)])
        }
        return .body(png, headers: headers + [("Content-Type", "image/png")])
    }
}
