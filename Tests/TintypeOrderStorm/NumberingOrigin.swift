// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeTestSupport

/// Serves images that change all the time, and numbers its answers: a later answer never has a lower number.
///
/// The list in `Vary` and the lifetimes change as well. Half of the conditional requests find the image unchanged.
final class NumberingOrigin: ImageFetching {
    /// The origin's record of a body that it sent.
    struct Answer: Sendable {
        let number: Int
        /// The names in `Vary`, and the values that the request had for them.
        let selection: [String: String]
    }

    private struct State {
        var random: SeededGenerator
        var numbers: [String: Int] = [:]
        var varies: [String: [String]] = [:]
        var answers: [UInt64: Answer] = [:]
        var requestCount = 0
    }

    private static let lists = [
        [], ["Accept-Language"], ["Accept", "Accept-Language"], ["Accept"], ["X-User", "Accept-Language"], ["*"],
    ]
    private static let lifetimes = [
        "max-age=600", "max-age=600", "max-age=600", "max-age=600, immutable", "max-age=0, stale-while-revalidate=600",
        "max-age=0", "no-cache", "no-store", "private, max-age=600",
    ]

    private let bodies: [Data]
    private let state: Locked<State>

    init(seed: UInt64) throws {
        self.bodies = try Self.makeBodies()
        self.state = Locked(State(random: SeededGenerator(seed: seed)))
    }

    static func url(_ number: Int) -> URL {
        URL(string: "https://numbers.example/\(number)") ?? URL(filePath: "/")
    }

    /// The requests so far.
    var requestCount: Int { self.state.withLock { $0.requestCount } }

    /// The answer whose body has this digest.
    func answer(of digest: UInt64) -> Answer? { self.state.withLock { $0.answers[digest] } }

    /// The number of the newest answer for a URL.
    func newestNumber(of url: URL) -> Int { self.state.withLock { $0.numbers[url.absoluteString, default: 0] } }

    // MARK: Bodies

    /// The number of colours: an image shows the number of its answer modulo this.
    static let colourCount = 64

    /// The number of an image's answer, modulo ``colourCount``.
    static func colour(of image: Image) -> Int {
        let channels = image.pixels.format.channelCount
        return (0..<3).reduce(0) { sum, channel in
            sum * 4 + image.pixels.sample(0, 0, channels < 3 ? 0 : channel) / 64
        }
    }

    private static func makeBodies() throws -> [Data] {
        try (0..<self.colourCount).map { colour in
            let digits = [colour / 16, colour / 4 % 4, colour % 4]
            let pixels = try PixelBuffer.make(.rgb8, width: 16, height: 12) { _, _, channel in
                UInt8(digits[channel] * 64 + 32)
            }
            return try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions())
        }
    }

    // MARK: ImageFetching

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let (number, headers, yields) = self.state.withLock { state in
            Self.settle(request, &state)
        }
        _ = observer.priority()
        for _ in 0..<yields { await Task.yield() }
        try Task.checkCancellation()
        if request.headers["If-None-Match"] == headers["ETag"], request.acceptableStatusCodes?.contains(304) ?? false {
            return DownloadResponse(body: Data(), url: request.url, status: 304, headers: headers)
        }
        // Bytes after the end of an image do not matter to its decoder.
        let body = self.bodies[number % Self.colourCount] + Data((headers["ETag"] ?? "").utf8)
        let selection = Self.selection(of: headers["Vary"], by: request.headers)
        self.state.withLock {
            $0.answers[BodyDigest.value(of: body)] = Answer(number: number, selection: selection)
        }
        observer.didReceive?(body.prefix(body.count / 2))
        for _ in 0..<yields { await Task.yield() }
        try Task.checkCancellation()
        observer.didReceive?(body.suffix(body.count - body.count / 2))
        return DownloadResponse(body: body, url: request.url, status: 200, headers: headers)
    }

    /// Draws the response to a request, with the present as its time.
    private static func settle(_ request: DownloadRequest, _ state: inout State) -> (Int, HeaderFields, yields: Int) {
        let url = request.url.absoluteString
        state.requestCount += 1
        if Bool.random(using: &state.random) { state.numbers[url, default: 0] += 1 }
        if Int.random(in: 0..<4, using: &state.random) == 0 {
            state.varies[url] = Self.lists.randomElement(using: &state.random)
        }
        let number = state.numbers[url, default: 0]
        let vary = state.varies[url, default: []].joined(separator: ", ")
        var headers: HeaderFields = ["Cache-Control": Self.lifetimes.randomElement(using: &state.random) ?? ""]
        if !vary.isEmpty { headers["Vary"] = vary }
        let selection = Self.selection(of: vary, by: request.headers)
        let text = selection.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ";")
        headers["ETag"] = "\"\(number) \(text)\""
        return (number, headers, Int.random(in: 0..<30, using: &state.random))
    }

    private static func selection(of vary: String?, by headers: HeaderFields) -> [String: String] {
        let names = (vary ?? "").split(separator: ", ").map(String.init)
        return Dictionary(uniqueKeysWithValues: names.map { ($0, headers[$0] ?? "") })
    }
}
