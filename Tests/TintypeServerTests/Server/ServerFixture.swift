// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeCodingSamples
import TintypeHTTP
import TintypeTestSupport

@testable import TintypeServer

/// A running server with an origin of its own on this machine.
struct ServerFixture {
    let server: ImageServer
    let origin: FaultyOrigin
    let clock: TestClock

    /// Returns settings of a server that loads from this machine and writes no log.
    static func configuration(
        clock: TestClock = TestClock(),
        cache: TemporaryDirectory? = nil
    ) -> ImageServer.Configuration {
        var configuration = ImageServer.Configuration()
        configuration.listenAddress = "127.0.0.1:0"
        configuration.showsPage = false
        configuration.logFormat = nil
        // On a busy machine, tests wait for longer than a server does.
        configuration.load.answerTime = .seconds(60)
        configuration.load.headTime = .seconds(60)
        var networks = AllowedNetworks()
        _ = networks.insert("loopback")
        networks.open(in: &configuration.loader.downloads.networkPolicy)
        configuration.loader.downloads.connectTimeout = .seconds(30)
        configuration.loader.downloads.firstByteTimeout = .seconds(30)
        configuration.loader.downloads.totalTimeout = .seconds(60)
        configuration.loader.downloads.timeout = .seconds(60)
        configuration.loader.downloads.minimumSpeed = nil
        configuration.loader.downloads.retryPolicy = .never
        configuration.loader.now = { clock.now }
        configuration.loader.memory.now = { clock.now }
        configuration.loader.disk = cache.map { DiskCache.Configuration(directory: $0.url(of: "cache")) }
        configuration.loader.disk?.now = { clock.now }
        return configuration
    }

    /// Runs `body` with a server whose origin has these responses, and ends both.
    ///
    /// The disk cache is in a new folder unless `cache` is given.
    static func run<Result>(
        _ responses: [String: FaultyResponse] = [:],
        cache: TemporaryDirectory? = nil,
        change: (inout ImageServer.Configuration) throws -> Void = { _ in },
        _ body: (ServerFixture) async throws -> Result
    ) async throws -> Result {
        let clock = TestClock()
        let folder = try cache ?? TemporaryDirectory()
        var configuration = Self.configuration(clock: clock, cache: folder)
        try change(&configuration)
        let origin = try FaultyOrigin(responses)
        let server = try await ImageServer.start(configuration)
        let fixture = ServerFixture(server: server, origin: origin, clock: clock)
        do {
            let result = try await body(fixture)
            await server.shutdown()
            return result
        } catch {
            await server.shutdown()
            throw error
        }
    }

    /// Returns the target of an image from the origin, without a signature.
    func target(_ options: String, _ path: String, suffix: String = "") -> String {
        "/unsafe" + (options.isEmpty ? "" : "/\(options)") + "/plain/\(self.origin.url(path).absoluteString)\(suffix)"
    }

    /// Sends a request over a new connection, and returns the response.
    func response(
        to target: String,
        method: String = "GET",
        _ fields: HeaderFields = [:]
    ) async throws -> ClientResponse {
        try await ServerClient(to: self.server.address).response(to: target, method: method, fields)
    }

    /// Requests an image from the origin, and returns the response.
    func image(
        _ options: String,
        _ path: String = "/a",
        suffix: String = "",
        _ fields: HeaderFields = [:]
    ) async throws -> ClientResponse {
        try await self.response(to: self.target(options, path, suffix: suffix), fields)
    }

    /// Requests the image at `/a` with fields, and returns the response.
    func image(_ options: String, _ fields: HeaderFields) async throws -> ClientResponse {
        try await self.response(to: self.target(options, "/a"), fields)
    }

    /// Sends a POST with a body, and returns the response.
    func post(_ target: String, _ body: [UInt8], _ fields: HeaderFields = [:]) async throws -> ClientResponse {
        let client = try await ServerClient(to: self.server.address)
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        let head =
            "POST \(target) HTTP/1.1\r\nHost: \(self.server.address)\r\nContent-Length: \(body.count)\r\n\(lines)\r\n"
        await client.send(Array(head.utf8) + body)
        return try await client.receive()
    }

    /// The statistics of the loader.
    var statistics: LoaderStatistics { get async { await self.server.service.loader.statistics() } }
}

extension ClientResponse {
    /// The decoder of the image in the body.
    func decoder() throws -> ImageDecoder { try ImageDecoder(Data(self.body), registry: CoderRegistry()) }

    /// The decoded image in the body.
    func decoded() throws -> Image { try self.decoder().decode() }

    /// The size of the image in the body as text, such as `200x100`.
    func size() throws -> String {
        let header = try self.decoder().header
        return "\(header.pixelWidth)x\(header.pixelHeight)"
    }
}

/// The images of origins.
enum ServerImages {
    /// Returns an image whose red is the column, and whose green is the row.
    static func positions(_ format: PixelFormat = .rgb8, width: Int = 200, height: Int = 100) throws -> Image {
        Image(
            pixels: try PixelBuffer.make(format, width: width, height: height) { column, row, channel in
                switch channel {
                case 0: UInt8(truncatingIfNeeded: column)
                case 1: UInt8(truncatingIfNeeded: row)
                case 2: 90
                default: UInt8(255 * column / max(1, width - 1))
                }
            }
        )
    }

    /// Returns such an image in a format.
    static func encoded(
        _ format: ImageFormat,
        _ pixels: PixelFormat = .rgb8,
        width: Int = 200,
        height: Int = 100
    ) throws -> [UInt8] {
        let image = try self.positions(pixels, width: width, height: height)
        return Array(try CoderRegistry().coder(encoding: format).encode(image, as: format, options: EncodeOptions()))
    }

    /// Returns a smooth JPEG, optionally with an EXIF orientation.
    static func jpeg(width: Int = 200, height: Int = 100, orientation: Int? = nil) throws -> [UInt8] {
        let pixels = try PixelBuffer.smooth(.rgb8, width: width, height: height)
        guard let orientation else { return Array(try SampleFiles.encode(pixels, as: .jpeg, quality: 95)) }
        return Array(try SampleFiles.jpeg(pixels, orientation: orientation))
    }

    /// Returns an animation of three frames.
    static func animation(_ format: ImageFormat) throws -> [UInt8] {
        let frames = try (0..<3).map { index in
            let pixels = try PixelBuffer.make(.rgb8, width: 40, height: 20) { column, row, channel in
                UInt8(column * 4 + row * index + channel)
            }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 100 * (index + 1))
        }
        let content = AnimationContent(frames: frames, loopCount: 5)
        return Array(try CoderRegistry().coder(encoding: format).encode(content, as: format, options: EncodeOptions()))
    }
}

extension FaultyResponse {
    /// Returns a complete response with an image, which its origin lets be kept for an hour.
    static func image(_ bytes: [UInt8], _ headers: [(String, String)] = [("Cache-Control", "max-age=3600")]) -> Self {
        .body(bytes, headers: headers)
    }
}
