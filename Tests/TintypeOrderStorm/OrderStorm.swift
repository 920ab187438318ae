// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeTestSupport

/// Loads in every way while images change, are reloaded, removed and cancelled, and holds each result to the promise of
/// a reload: a load that begins after the reload was answered gets no older image, from no tier and in no form.
///
/// All requests with the same URL and header fields share one promise, whatever their policies and tiers.
package struct OrderStorm {
    /// The result of one storm, or of several.
    package struct Report: Sendable {
        package var callCount = 0
        package var requestCount = 0
        package var outcomes: [String: Int] = [:]
        package var violationCount = 0
        /// The first of them.
        package var violations: [String] = []

        static let violationLimit = 20

        package init() {}

        package mutating func add(_ other: Report) {
            self.callCount += other.callCount
            self.requestCount += other.requestCount
            self.outcomes.merge(other.outcomes, uniquingKeysWith: +)
            self.violationCount += other.violationCount
            self.violations += other.violations.prefix(max(0, Self.violationLimit - self.violations.count))
        }
    }

    private static let urlCount = 3
    private static let taskCount = 12
    private static let headers: [HeaderFields] = [
        [:], ["Accept-Language": "de"], ["Accept-Language": "en"], ["Accept-Language": "de", "Accept": "image/png"],
        ["X-User": "7", "Accept-Language": "de"],
    ]

    /// The numbers that reloads have returned, by the names of requests.
    fileprivate struct State {
        var floors: [String: Int] = [:]
        var report = Report()
    }

    let seed: UInt64
    private let origin: NumberingOrigin
    private let loader: LoaderActor
    private let folder: TemporaryDirectory
    private let setting: String
    private let state = Storage()

    fileprivate final class Storage: Sendable {
        let locked = Locked(State())
    }

    /// Prepares a storm.
    ///
    /// The seed also determines the loader's policy and the sizes of its caches.
    package init(seed: UInt64) throws {
        self.seed = seed
        self.folder = try TemporaryDirectory()
        self.origin = try NumberingOrigin(seed: seed)
        var random = SeededGenerator(seed: ~seed)
        var configuration = LoaderActor.Configuration()
        let policies: [CachePolicy] = [.neverRevalidate, .honorFreshness, .revalidate, .neverRevalidate, .reload]
        configuration.cachePolicy = policies[Int(seed % 5)]
        configuration.isSharedCache = Int.random(in: 0..<4, using: &random) == 0
        configuration.fetcher = self.origin
        configuration.laneCount = 2
        let isSmall = Int.random(in: 0..<4, using: &random) == 0
        if Int.random(in: 0..<4, using: &random) == 0 { configuration.memory.costLimit = 4_000 }
        var disks = ["near", "far"].map { [folder] in DiskCache.Configuration(directory: folder.url(of: $0)) }
        for index in disks.indices where isSmall {
            disks[index].sizeLimit = 20_000
            disks[index].pendingByteLimit = 4_000
        }
        let kind = Int.random(in: 0..<6, using: &random)
        switch kind {
        case 0: configuration.disk = nil
        case 1:
            configuration.disk = disks[0]
            configuration.tiers = [DiskCache(disks[1])]
        default: configuration.disk = disks[0]
        }
        self.setting = "seed \(seed), \(configuration.cachePolicy), disk \(kind)\(isSmall ? ", small" : "")"
        self.loader = LoaderActor(configuration: configuration)
    }

    /// Runs until `isOver` returns true.
    ///
    /// The storm calls it before each call, with the number of calls so far.
    package func run(until isOver: @escaping @Sendable (_ callCount: Int) -> Bool) async -> Report {
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<Self.taskCount {
                group.addTask {
                    var random = SeededGenerator(seed: self.seed &* 1_000 &+ UInt64(index))
                    while !isOver(self.countCall()) { await self.call(&random) }
                }
            }
        }
        await self.loader.shutdown()
        var report = self.state.locked.withLock { $0.report }
        report.requestCount = self.origin.requestCount
        return report
    }

    private func countCall() -> Int {
        self.state.locked.withLock {
            $0.report.callCount += 1
            return $0.report.callCount
        }
    }

    // MARK: Calls

    private enum Call: String, CaseIterable {
        case image, response, data, events, encoded, cachedFile, frames
    }

    private func call(_ random: inout SeededGenerator) async {
        switch Int.random(in: 0..<60, using: &random) {
        case 0: await self.removeAll(from: [.all, .disk, .memory].randomElement(using: &random) ?? .all)
        case 1: await self.remove(self.makeRequest(&random))
        case 2 where Int.random(in: 0..<10, using: &random) == 0: await self.loader.cancelAll()
        default: await self.load(&random)
        }
    }

    private func removeAll(from tiers: CacheTiers) async {
        do {
            try await self.loader.cache.removeAll(from: tiers)
            self.count("removeAll")
        } catch {
            self.count("removeAll failed")
        }
    }

    private func remove(_ request: ImageRequest) async {
        do {
            _ = try await self.loader.remove(request)
            self.count("remove")
        } catch {
            self.count("remove failed")
        }
    }

    private func load(_ random: inout SeededGenerator) async {
        let request = self.makeRequest(&random)
        let call = Call.allCases.randomElement(using: &random) ?? .data
        let caching = Self.drawUse(&random)
        let encoding = [OutputEncoding.png, .jpeg()].randomElement(using: &random) ?? .png
        let name = Self.name(of: request)
        let floor = self.state.locked.withLock { $0.floors[name, default: 0] }
        let task = Task {
            let found = try await self.perform(call, request, encoding, caching)
            self.judge(found, call, request, caching, floor: floor)
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
            for _ in 0..<Int.random(in: 0..<60, using: &random) { await Task.yield() }
            task.cancel()
        }
        let kind = request.cachePolicy == .reload ? "reload" : "load"
        switch await task.result {
        case .success: self.count(kind)
        case .failure(is CancellationError): self.count("\(kind) cancelled")
        case .failure(let error as LoadError) where error.code == .notInCache: self.count("\(kind) missed")
        case .failure(let error): self.add(violation: "\(call) of \(Self.text(of: request)) failed: \(error)")
        }
    }

    private func makeRequest(_ random: inout SeededGenerator) -> ImageRequest {
        var request = ImageRequest(
            url: NumberingOrigin.url(Int.random(in: 0..<Self.urlCount, using: &random)),
            headers: Self.headers.randomElement(using: &random) ?? [:]
        )
        switch Int.random(in: 0..<5, using: &random) {
        case 0: request.thumbnail = .stretch(width: 6, height: 4)
        case 1: request.thumbnail = .stretch(width: 4, height: 4)
        default: break
        }
        let policies: [CachePolicy?] = [
            nil, nil, nil, .reload, .reload, .neverRevalidate, .honorFreshness, .revalidate, .cacheOnly,
        ]
        request.cachePolicy = policies.randomElement(using: &random) ?? nil
        request.caching.originals = Self.drawUse(&random)
        request.caching.variants = Self.drawUse(&random)
        for option in [LoadOptions.waitForStore, .keepData, .finishDownload, .previews, .keepPreviews]
        where Int.random(in: 0..<5, using: &random) == 0 {
            request.options.insert(option)
        }
        return request
    }

    /// Half of the loads use all tiers, the others any combination.
    private static func drawUse(_ random: inout SeededGenerator) -> CacheUse {
        guard Bool.random(using: &random) else { return .all }
        let tiers = [CacheTiers.none, .memory, .disk, .all]
        return CacheUse(
            query: tiers.randomElement(using: &random) ?? .all,
            store: tiers.randomElement(using: &random) ?? .all
        )
    }

    // MARK: Results

    /// The result of a call: digests of bodies, or only colours.
    private struct Found: Sendable {
        var bodies: [UInt64?] = []
        var colours: [Int] = []
        /// The tiers that images and bytes came from, for the report.
        var sources: [LoadSource] = []
    }

    private func perform(
        _ call: Call,
        _ request: ImageRequest,
        _ encoding: OutputEncoding,
        _ caching: CacheUse
    ) async throws -> Found {
        var found = Found()
        switch call {
        case .image: found.colours = [NumberingOrigin.colour(of: try await self.loader.image(for: request))]
        case .response: self.note(try await self.loader.response(for: request), &found)
        case .data:
            let response = try await self.loader.dataResponse(for: request)
            found.bodies = [response.metadata.bodyDigest, BodyDigest.value(of: response.data)]
            found.sources = [response.source]
        case .events:
            for try await event in self.loader.events(for: request) {
                switch event {
                case .progress, .preview: break
                case .cached(let response), .finished(let response): self.note(response, &found)
                }
            }
        case .encoded:
            let response = try await self.loader.encoded(request, as: encoding, caching: caching)
            let image = try await self.loader.image(from: response.data)
            found.bodies = [response.metadata.bodyDigest]
            found.colours = [NumberingOrigin.colour(of: image)]
        case .cachedFile:
            guard let file = try await self.loader.cachedFile(for: request) else { break }
            found.bodies = [file.metadata.bodyDigest]
        case .frames:
            let frames = try await self.loader.frames(for: request)
            found.colours = [NumberingOrigin.colour(of: try await frames.frame(at: 0))]
        }
        return found
    }

    private func note(_ response: ImageResponse, _ found: inout Found) {
        found.bodies.append(response.metadata.bodyDigest)
        found.colours.append(NumberingOrigin.colour(of: response.image))
        found.sources.append(response.source)
        if let data = response.data { found.bodies.append(BodyDigest.value(of: data)) }
    }

    /// Compares the result of a load with the results of reloads that ended before it began.
    private func judge(
        _ found: Found,
        _ call: Call,
        _ request: ImageRequest,
        _ caching: CacheUse,
        floor: Int
    ) {
        func fault(_ text: String) {
            let use = call == .encoded ? ", encoded \(Self.text(of: caching))" : ""
            let sources = found.sources.map(\.rawValue).joined(separator: ", ")
            self.add(violation: "\(call) of \(Self.text(of: request))\(use): \(text), after \(floor) [\(sources)]")
        }
        var numbers: Set<Int> = []
        for body in found.bodies {
            guard let answer = body.flatMap({ self.origin.answer(of: $0) }) else { return fault("unknown bytes") }
            numbers.insert(answer.number)
            if answer.number < floor { return fault("number \(answer.number)") }
            for (name, value) in answer.selection where name != "*" && name != "Accept" {
                if request.headers[name] ?? "" != value { fault("an image for \(name) \(value)") }
            }
        }
        for colour in found.colours {
            if let number = numbers.first, numbers.count == 1, call != .events,
                number % NumberingOrigin.colourCount != colour
            {
                return fault("an image of colour \(colour) under the digest of \(number)")
            }
            // The newest number of the colour that the image may have.
            let latest = self.origin.newestNumber(of: request.url)
            let age = (latest - colour) % NumberingOrigin.colourCount
            if latest - (age < 0 ? age + NumberingOrigin.colourCount : age) < floor {
                return fault("an image of colour \(colour)")
            }
        }
        guard request.cachePolicy == .reload, call != .cachedFile else { return }
        if let number = numbers.first {
            self.state.locked.withLock { state in
                let name = Self.name(of: request)
                state.floors[name] = max(state.floors[name, default: 0], number)
            }
        }
    }

    private func count(_ outcome: String) {
        self.state.locked.withLock { $0.report.outcomes[outcome, default: 0] += 1 }
    }

    private func add(violation: String) {
        self.state.locked.withLock { state in
            state.report.violationCount += 1
            if state.report.violations.count < Report.violationLimit {
                state.report.violations.append("\(self.setting): \(violation)")
            }
        }
    }

    private static func name(of request: ImageRequest) -> String {
        request.url.absoluteString + request.headers.map { "\n\($0.name): \($0.value)" }.joined()
    }

    private static func text(of request: ImageRequest) -> String {
        "\(request), \(request.headers.map { "\($0.name): \($0.value)" }), policy "
            + "\(request.cachePolicy.map { "\($0)" } ?? "none"), originals \(self.text(of: request.caching.originals)), "
            + "variants \(self.text(of: request.caching.variants)), options \(request.options.rawValue)"
    }

    private static func text(of use: CacheUse) -> String { "\(use.query) / \(use.store)" }
}
