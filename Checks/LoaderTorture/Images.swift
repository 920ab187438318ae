// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeTestSupport

/// A thousand small images.
///
/// Each one is recognisable by its colour in any size and format.
struct Images: Sendable {
    static let count = 1_000
    /// The number of the fallback image.
    static let fallback = 1_023

    /// The origin's response for an image.
    enum Conduct: Sendable {
        case healthy, missing, broken, page, truncated, flaky
    }

    /// Each image in two versions, encoded.
    private let bodies: [[Data]]
    private let owners: [Data: Int]
    /// The fallback image, decoded.
    let fallbackImage: Image

    init() async throws {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        let maker = LoaderActor(configuration: configuration)
        var bodies: [[Data]] = []
        var owners: [Data: Int] = [:]
        for number in 0..<Self.count {
            let versions = [
                try await Self.encode(number, version: 0, with: maker),
                try await Self.encode(number, version: 1, with: maker),
            ]
            bodies.append(versions)
            for body in versions + versions.map(Self.truncated) + [Self.page(number)] { owners[body] = number }
        }
        self.bodies = bodies
        self.owners = owners
        self.fallbackImage = try Self.image(Self.fallback, version: 0)
        await maker.shutdown()
    }

    static func conduct(of number: Int) -> Conduct {
        switch number % 25 {
        case 3: .missing
        case 7: .broken
        case 11: .page
        case 15: .truncated
        case 19: .flaky
        default: .healthy
        }
    }

    func body(_ number: Int, version: Int) -> Data { self.bodies[number][version] }

    /// Returns the number of the image with these bytes.
    func number(of body: Data) -> Int? { self.owners[body] }

    /// Returns the number of the source of an image, by its colour.
    static func number(of image: Image) -> Int {
        let channels = image.pixels.format.channelCount
        func level(_ channel: Int) -> Int { image.pixels.sample(0, 0, channels < 3 ? 0 : channel) }
        return (level(0) + 8) / 16 + (level(1) + 8) / 16 * 16 + level(2) / 64 * 256
    }

    static func truncated(_ body: Data) -> Data { body.prefix(body.count * 3 / 4) }

    static func page(_ number: Int) -> Data { Data("<html><body>Image \(number) comes later.</body></html>".utf8) }

    static func size(of number: Int) -> (width: Int, height: Int) { (16 + number % 40, 16 + number / 40) }

    private static func encode(_ number: Int, version: Int, with maker: LoaderActor) async throws -> Data {
        let image = try Self.image(number, version: version)
        switch number % 4 {
        case 0: return try await maker.encode(image, as: .png)
        case 1:
            let encoding = OutputEncoding.jpeg(quality: 90, isProgressive: number.isMultiple(of: 3))
            return try await maker.encode(image, as: .jpeg, options: encoding.options)
        case 2: return try await maker.encode(image, as: .gif)
        default:
            let frames = try (0..<3).map {
                AnimationContent.Frame(image: try Self.image(number, version: version, frame: $0), milliseconds: 40)
            }
            return try await maker.encode(AnimationContent(frames: frames), as: .gif)
        }
    }

    /// Returns an image whose colour encodes its number.
    ///
    /// Versions and frames differ a little.
    static func image(_ number: Int, version: Int, frame: Int = 0) throws -> Image {
        let levels = [number % 16 * 16, number / 16 % 16 * 16, number / 256 * 64 + 16 + version * 16 + frame * 8]
        let (width, height) = Self.size(of: number)
        let pixels = try PixelBuffer.make(.rgb8, width: width, height: height) { _, _, channel in UInt8(levels[channel])
        }
        return Image(pixels: pixels)
    }
}
