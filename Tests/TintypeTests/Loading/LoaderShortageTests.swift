// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// A loader in a process that lacks file descriptors or memory.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LoaderShortageTests {
    /// A PNG of one pixel.
    static let dot =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    /// A URL at a port without a listener.
    static let closedPort = "http://127.0.0.1:9/a.jpg"

    @Test func `without descriptors a loader is made, says what it lacks, and goes on once there are some`() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryDirectory(prefix: "tintype-shortage")
            let remote = try #require(URL(string: LoaderShortageTests.closedPort))
            let local = try #require(URL(string: "data:image/png;base64,\(LoaderShortageTests.dot)"))
            let loader = try await ProcessLimit.withOneDescriptor {
                var configuration = LoaderActor.Configuration()
                configuration.disk?.directory = folder.url(of: "cache")
                let loader = LoaderActor(configuration: configuration)
                for _ in 0..<2 {
                    let error = await #expect(throws: LoadError.self) { try await loader.image(for: remote) }
                    try #require(error?.code == .tooManyOpenFiles, "\(String(describing: error))")
                }
                // A load that needs no descriptor succeeds.
                try #require(try await loader.image(for: local).width == 1)
                return loader
            }
            let error = await #expect(throws: LoadError.self) { try await loader.image(for: remote) }
            try #require(error?.code == .cannotConnect, "\(String(describing: error))")
        }
    }

    @Test(.enabled(if: !ThisProcess.isSanitized))
    func `an image that would take the last memory is refused, and a small one is loaded`() async {
        await #expect(processExitsWith: .success) {
            // The header claims 10,000 by 10,000 pixels, with a correct checksum.
            var bytes = try #require(Data(base64Encoded: LoaderShortageTests.dot))
            bytes.replaceSubrange(16..<24, with: [0, 0, 0x27, 0x10, 0, 0, 0x27, 0x10])
            let checksum = ~bytes[12..<29].reduce(UInt32.max) { checksum, byte in
                (0..<8).reduce(checksum ^ UInt32(byte)) { rest, _ in rest & 1 == 0 ? rest >> 1 : 0xEDB8_8320 ^ rest >> 1
                }
            }
            bytes.replaceSubrange(29..<33, with: (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (24 - 8 * $0)) })
            let large = try #require(URL(string: "data:image/png;base64,\(bytes.base64EncodedString())"))
            let small = try #require(URL(string: "data:image/png;base64,\(LoaderShortageTests.dot)"))
            var configuration = LoaderActor.Configuration()
            configuration.disk = nil
            let loader = LoaderActor(configuration: configuration)
            try await ProcessLimit.withMemory(atMost: 300 << 20) {
                let error = await #expect(throws: LoadError.self) { try await loader.image(for: large) }
                try #require(error?.code == .outOfMemory, "\(String(describing: error))")
                try #require(try await loader.image(for: small).width == 1)
            }
        }
    }

    @Test(.enabled(if: !ThisProcess.isSanitized))
    func `an encode that would take the last memory is refused, or done with less`() async {
        await #expect(processExitsWith: .success) {
            func image(_ format: PixelFormat) throws -> Image {
                let layout = try PixelLayout(format: format, width: 3_000, height: 3_000)
                return Image(pixels: try PixelBuffer(layout) { _ in })
            }
            let (transparent, opaque) = (try image(.rgba8), try image(.rgb8))
            var configuration = LoaderActor.Configuration()
            configuration.disk = nil
            let loader = LoaderActor(configuration: configuration)
            try await ProcessLimit.withMemory(atMost: 300 << 20) {
                // 40 bytes a pixel.
                let error = await #expect(throws: LoadError.self) {
                    try await loader.encode(transparent, as: .webp, maximumSide: nil)
                }
                try #require(error?.code == .outOfMemory, "\(String(describing: error))")
                // 37 bytes a pixel, or 7 in libwebp's mode of little memory.
                let best = EncodeOptions(quality: 100)
                try #require(try await loader.encode(opaque, as: .webp, options: best).count > 0)
                try #require(try await loader.encode(opaque, as: .jpeg).count > 0)
            }
        }
    }
}
