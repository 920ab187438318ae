// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeFlights
import TintypeTestSupport

@testable import Tintype

/// A temporary disk cache with loaders that count their decodes.
struct LoaderFixture {
    let directory: TemporaryDirectory
    let decodes = DecodeCounter()
    private let origin: ScriptedOrigin?

    /// Creates a fixture whose loaders request everything from `origin`, or download if it is `nil`.
    init(origin: ScriptedOrigin? = nil) throws {
        self.directory = try TemporaryDirectory()
        self.origin = origin
    }

    /// Returns a loader on the fixture's disk cache whose coders count their decodes.
    func makeLoader(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> LoaderActor {
        var configuration = LoaderActor.Configuration()
        configuration.disk = DiskCache.Configuration(directory: self.directory.url(of: "cache"))
        // On a busy machine, a held origin may be silent for longer than the default timeout.
        configuration.downloads.timeout = .seconds(60)
        configuration.fetcher = self.origin
        configuration.coders = CoderRegistry(coders: [
            CountingCoder(WebPCoder(), self.decodes), CountingCoder(PNGCoder(), self.decodes),
            CountingCoder(JPEGCoder(), self.decodes),
        ])
        change(&configuration)
        return LoaderActor(configuration: configuration)
    }

    /// Returns a loader with the library's own coders, because the counting coders have no frames.
    func makeCodingLoader(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> LoaderActor {
        self.makeLoader { configuration in
            configuration.coders = CoderRegistry()
            change(&configuration)
        }
    }

    /// Returns a loader that takes the time from the test's clock.
    func makeLoader(
        _ policy: CachePolicy,
        by clock: TestClock,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        self.makeLoader { configuration in
            configuration.cachePolicy = policy
            configuration.now = { clock.now }
            configuration.memory.now = { clock.now }
            configuration.disk?.now = { clock.now }
            change(&configuration)
        }
    }

    /// Returns a loader with lanes for four decodes, which all wait for the latch.
    func makeLoader(
        heldBy latch: Latch,
        _ policy: CachePolicy = .neverRevalidate,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        self.makeLoader { configuration in
            configuration.cachePolicy = policy
            configuration.laneCount = 4
            configuration.coders = CoderRegistry(coders: [
                CountingCoder(PNGCoder(), self.decodes, heldBy: latch),
                CountingCoder(JPEGCoder(), self.decodes, heldBy: latch),
            ])
            change(&configuration)
        }
    }

    /// Returns the files of the disk cache, including temporary ones.
    func cacheFiles() -> [String] {
        let root = self.directory.path(of: "cache/entries")
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: root)) ?? []
        return paths.map { "\(root)/\($0)" }.filter { path in
            var isDirectory = false
            return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && !isDirectory
        }
    }
}

/// A counter of decodes.
final class DecodeCounter: Sendable {
    private let state = Locked(0)

    var count: Int { self.state.withLock { $0 } }

    func increment() {
        self.state.withLock { $0 += 1 }
    }
}

/// A coder that counts the decodes of another coder.
struct CountingCoder: ImageCoder {
    private let base: any ImageCoder
    private let counter: DecodeCounter
    /// The latch that holds every decode.
    private let latch: Latch?

    init(_ base: any ImageCoder, _ counter: DecodeCounter, heldBy latch: Latch? = nil) {
        self.base = base
        self.counter = counter
        self.latch = latch
    }

    var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
    var encodableFormats: Set<ImageFormat> { self.base.encodableFormats }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        CountingImage(base: try self.base.open(data, limits: limits), counter: self.counter, latch: self.latch)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try self.base.encode(image, as: format, options: options)
    }
}

private struct CountingImage: EncodedImage {
    let base: any EncodedImage
    let counter: DecodeCounter
    let latch: Latch?

    var header: ImageHeader { self.base.header }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        self.counter.increment()
        self.latch?.wait()
        return try self.base.decode(options: options)
    }

    func metadata(limits: DecodingLimits) throws -> ImageMetadata { try self.base.metadata(limits: limits) }
}

extension LoaderActor {
    /// The number of callers and of loads of images that wait for bytes.
    var bytesWaiterCount: Int { self.table.flights.waiterCount(of: .bytes) }

    /// The number of callers that wait for encoded images.
    var encodedWaiterCount: Int { self.table.flights.waiterCount(of: .encoded) }

    /// The number of loads of images that wait for a decode that they share.
    var decodeWaiterCount: Int { self.table.flights.waiterCount(of: .decode) }

    /// The number of sources that are being loaded, or whose images the table remembers.
    var sourceCount: Int { self.table.sourceCount }

    /// The number of waits and flights so far.
    ///
    /// Each wait enters the actor to join, and each flight, which is one task, to end.
    var stepCount: LoadTable.ID { self.table.flights.lastID }

    /// The number of loads of a source that wait until they may ask its origin.
    func queueCount(of request: ImageRequest) -> Int {
        self.table.queueCount(of: self.services.rules.resourceKey(of: request))
    }
}

/// Returns a small PNG of one gray.
func makePNG(width: Int = 8, height: Int = 6, gray: UInt8 = 128) throws -> [UInt8] {
    let layout = try PixelLayout(format: .gray8, width: width, height: height)
    let pixels = try PixelBuffer(layout) { bytes in
        for index in 0..<layout.byteCount { bytes.storeBytes(of: gray, toByteOffset: index, as: UInt8.self) }
    }
    return Array(try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions()))
}
