// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypePrometheus
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// The events, metrics and counters of a loader.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ActivityTests {
    /// An observer that records activities.
    final class Log: LoadObserver {
        private let state = Locked<[LoadActivity]>([])

        var activities: [LoadActivity] { self.state.withLock { $0 } }
        var words: [String] { self.activities.map { "\($0.product) \($0.kind.word)" } }

        func loader(didObserve activity: LoadActivity) {
            self.state.withLock { $0.append(activity) }
        }
    }

    let fixture: LoaderFixture
    let origin: ScriptedOrigin
    let url: URL
    let log = Log()

    init() throws {
        self.origin = ScriptedOrigin(["/a": .body(try makePNG()), "/none": .body([1], status: 404)])
        self.fixture = try LoaderFixture(origin: self.origin)
        self.url = self.origin.url("/a")
    }

    private func makeLoader(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> LoaderActor {
        self.fixture.makeLoader {
            $0.observers = [self.log]
            change(&$0)
        }
    }

    @Test func `a load that finds nothing tells of each of its steps`() async throws {
        _ = try await self.makeLoader().image(for: self.url)
        #expect(
            self.log.words == [
                "image started", "bytes started", "bytes downloadStarted", "bytes downloadFinished",
                "bytes stored disk", "bytes finished network", "image decoded 8x6", "image stored memory",
                "image finished network",
            ]
        )
        #expect(self.log.activities.allSatisfy { $0.request.url == self.url && $0.loadID > 0 })
    }

    @Test func `what is found in memory is one hit, however it is asked for`() async throws {
        let loader = self.makeLoader()
        _ = try await loader.image(for: self.url)
        let count = self.log.words.count
        _ = try await loader.image(for: self.url)
        _ = try await loader.image(for: ImageRequest(url: self.url))
        _ = try await loader.response(for: ImageRequest(url: self.url))
        #expect(self.log.words.dropFirst(count) == ["image hit memory", "image hit memory", "image hit memory"])
        #expect(self.log.activities.dropFirst(count).allSatisfy { $0.loadID == 0 && $0.request.url == self.url })
    }

    @Test func `what is found on disk is a hit of the bytes`() async throws {
        let request = ImageRequest(url: self.url, options: .waitForStore)
        _ = try await self.fixture.makeLoader().image(for: request)
        let loader = self.makeLoader()
        let response = try await loader.response(for: request)
        #expect(
            self.log.words == [
                "image started", "bytes started", "bytes hit disk", "bytes finished disk", "image decoded 8x6",
                "image stored memory", "image finished disk",
            ]
        )
        #expect(response.metrics.byteCount == response.metadata.byteCount)
        #expect(response.metrics.transfer == nil)
        #expect(response.metrics.disk > .zero)
        _ = try await loader.data(for: request)
        #expect(self.log.words.last == "bytes hit disk")
    }

    @Test func `what the program stores is told of without a load`() async throws {
        try await self.makeLoader().store(Data(makePNG()), for: ImageRequest(url: self.url))
        #expect(self.log.words == ["bytes stored disk"])
        #expect(self.log.activities.allSatisfy { $0.loadID == 0 })
    }

    @Test func `a variant on disk is a hit of the image`() async throws {
        let request = ImageRequest(
            source: .init(url: self.url),
            rendering: .init(thumbnail: .fit(width: 4, height: 4)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        let response = try await self.fixture.makeLoader().response(for: request)
        #expect(response.metrics.encode > .zero)
        #expect(response.metrics.store > .zero)
        #expect(response.metrics.transform > .zero)
        _ = try await self.makeLoader().image(for: request)
        #expect(self.log.words.contains("image hit disk"))
        #expect(!self.log.words.contains("bytes started"))
    }

    @Test func `a failure, a refusal and a cancellation are told apart`() async throws {
        let gate = Gate()
        self.origin.script("/held", .held(by: gate, body: try makePNG()))
        let loader = self.makeLoader()
        await #expect(throws: LoadError.self) { try await loader.image(for: self.origin.url("/none")) }
        #expect(self.log.words.suffix(2) == ["bytes failed badStatus", "image failed badStatus"])
        let held = ImageRequest(url: self.origin.url("/held"))
        let task = Task { try await loader.image(for: held) }
        await self.origin.waitForRequests(1, for: "/held")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await gate.open()
        await loader.shutdown()
        #expect(self.log.words.filter { $0.hasSuffix("cancelled") }.count == 2)
        let statistics = await loader.statistics()
        #expect(statistics.images.failed == ["badStatus": 1])
        #expect(statistics.images.cancelled == 1)
        #expect(statistics.images.active == 0)
    }

    @Test func `what the network policy refuses is a refusal`() async throws {
        let loader = self.makeLoader {
            $0.fetcher = nil
            $0.downloads.networkPolicy = .publicInternet
        }
        await #expect(throws: LoadError.self) { try await loader.image(for: URL(string: "http://127.0.0.1/a")!) }
        #expect(self.log.words.last == "image refused addressNotAllowed")
        let statistics = await loader.statistics()
        #expect(statistics.images.refused == 1)
        #expect(statistics.bytes.refused == 1)
        #expect(statistics.downloads.refused == 1)
    }

    @Test func `callers that join are told so, and what the load took`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG()))
        let loader = self.makeLoader()
        let request = ImageRequest(url: self.url)
        let tasks = (0..<5).map { _ in Task { try await loader.response(for: request) } }
        await until { await loader.waiterCount == 5 }
        await gate.open()
        var joined = 0
        for task in tasks {
            let metrics = try await task.value.metrics
            if metrics.isJoined { joined += 1 }
            #expect(metrics.decode > .zero)
            #expect(metrics.transfer != nil)
            #expect(metrics.total > .zero)
            #expect(metrics.byteCount == (try makePNG().count))
        }
        #expect(joined == 4)
        #expect(self.log.words.filter { $0 == "image joined" }.count == 4)
        #expect(await loader.statistics().images.joined == 4)
    }

    @Test func `sizes that share the bytes join the load of those`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try makePNG()))
        let loader = self.makeLoader()
        let url = self.url
        let tasks = (1...3).map { side in
            Task { try await loader.image(for: ImageRequest(url: url, thumbnail: .fit(width: side, height: side))) }
        }
        await until { await loader.bytesWaiterCount == 3 }
        await gate.open()
        for task in tasks { _ = try await task.value }
        #expect(self.log.words.filter { $0 == "bytes started" }.count == 1)
        #expect(self.log.words.filter { $0 == "bytes joined" }.count == 2)
        #expect(self.log.words.filter { $0 == "image started" }.count == 3)
    }

    @Test func `a thumbnail of the image in memory is found before it is stored`() async throws {
        let loader = self.makeLoader()
        _ = try await loader.image(for: self.url)
        let count = self.log.words.count
        _ = try await loader.image(for: ImageRequest(url: self.url, thumbnail: .fit(width: 4, height: 4)))
        #expect(
            self.log.words.dropFirst(count) == [
                "image started", "image hit memory", "image stored memory", "image finished memory",
            ]
        )
    }

    @Test func `what is told of one load is told in its order, though its callers run on other threads`() async throws {
        let loader = self.makeLoader()
        for index in 0..<20 { self.origin.script("/\(index)", .body(try makePNG())) }
        for index in 0..<20 {
            let request = ImageRequest(url: self.origin.url("/\(index)"))
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { _ = try? await loader.image(for: request) } }
            }
        }
        await loader.shutdown()
        let loads = Dictionary(grouping: self.log.activities.filter { $0.loadID > 0 }, by: \.loadID)
        // Each URL takes a load of the image and a load of its bytes. A late caller may begin another load, which finds
        // the image in memory.
        #expect(loads.count >= 40)
        for activities in loads.values {
            let words = activities.map { $0.kind.word }
            #expect(words.first == "started" && words.last?.hasPrefix("finished ") == true, "\(words)")
        }
        let statistics = await loader.statistics()
        // The statistics also count callers that joined too late for a report.
        #expect(statistics.images.joined >= self.log.words.filter { $0 == "image joined" }.count)
    }

    @Test func `what callers tell of a load waits for its beginning, and is told one after the other`() {
        let queue = ActivityQueue()
        let words = Locked<[String]>([])
        func add(_ kinds: LoadActivity.Kind...) {
            for kind in kinds {
                let request = ImageRequest(url: self.url)
                queue.add(LoadActivity(loadID: 1, product: .image, request: request, kind: kind))
            }
        }
        let take = { queue.takeEach { activity in words.withLock { $0.append(activity.kind.word) } } }
        add(.joined, .joined)
        take()
        #expect(words.withLock { $0 }.isEmpty)
        add(.started)
        // An activity that is added during a report is reported after it.
        queue.takeEach { activity in
            if case .started = activity.kind {
                add(.hit(.memory, tier: nil))
                take()
            }
            words.withLock { $0.append(activity.kind.word) }
        }
        #expect(words.withLock { $0 } == ["started", "joined", "joined", "hit memory"])
        add(.cancelled, .joined)
        take()
        #expect(words.withLock { $0 }.suffix(2) == ["hit memory", "cancelled"])
    }

    // MARK: Streams

    @Test func `a stream that is made while a load is under way is told of what is left of it`() async throws {
        let gate = Gate()
        self.origin.script("/slow", .held(by: gate, body: try makePNG()))
        let loader = self.fixture.makeLoader()
        let url = self.origin.url("/slow")
        let load = Task { try await loader.image(for: url) }
        await self.origin.waitForRequests(1, for: "/slow")
        let stream = loader.activity()
        await gate.open()
        _ = try await load.value
        var words: [String] = []
        for await activity in stream {
            words.append("\(activity.product) \(activity.kind.word)")
            if words.last == "image finished network" { break }
        }
        #expect(words.contains("bytes downloadFinished"))
    }

    @Test func `a stream ends with the loader, and tells what its buffer holds`() async throws {
        var loader: LoaderActor? = self.makeLoader()
        let stream = try #require(loader?.activity())
        let short = try #require(loader?.activity(bufferSize: 2))
        _ = try await loader?.image(for: self.url)
        loader = nil
        var words: [String] = []
        for await activity in stream { words.append("\(activity.product) \(activity.kind.word)") }
        #expect(words == self.log.words)
        words.removeAll()
        for await activity in short { words.append("\(activity.product) \(activity.kind.word)") }
        #expect(words == self.log.words.suffix(2))
    }

    @Test func `a stream ends with the shutdown, also one that is made after it`() async throws {
        let loader = self.makeLoader()
        let stream = loader.activity()
        await loader.shutdown()
        for await _ in stream { Issue.record("nothing happened") }
        for await _ in loader.activity() { Issue.record("nothing can happen") }
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `each load that begins ends once, whatever its callers do`(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        for index in 0..<6 {
            let headers: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"\(index)\""]
            let body = ScriptedResponse.body(try makePNG(width: 8 + index), headers: headers)
            self.origin.script("/\(index)", index == 0 ? .body([1], status: 500) : body)
        }
        let loader = self.makeLoader {
            $0.cachePolicy = seed < 3 ? .neverRevalidate : .honorFreshness
            if seed % 2 == 0 { $0.disk = nil }
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                let url = self.origin.url("/\(Int.random(in: 0..<6, using: &generator))")
                let side = Int.random(in: 1...3, using: &generator)
                var request = ImageRequest(url: url, thumbnail: .fit(width: side, height: side))
                request.cachePolicy =
                    [nil, .neverRevalidate, .reload, .revalidate].randomElement(using: &generator) ?? nil
                if Bool.random(using: &generator) { request.options = [.keepData, .finishDownload] }
                let call = Call.allCases.dropLast().randomElement(using: &generator) ?? .response
                let isCancelled = Int.random(in: 0..<3, using: &generator) == 0
                let endsAll = Int.random(in: 0..<40, using: &generator) == 0
                group.addTask { [request] in
                    let task = Task { try? await self.perform(endsAll ? .cancelAll : call, request, by: loader) }
                    if isCancelled { task.cancel() }
                    await task.value
                }
            }
        }
        await loader.shutdown()
        var open: [UInt64: Bool] = [:]
        for activity in self.log.activities where activity.loadID > 0 {
            switch activity.kind {
            case .started: #expect(open.updateValue(true, forKey: activity.loadID) == nil)
            case .failed(let error) where error.code == .refused: Issue.record("a cancellation is told as \(error)")
            case .finished, .failed, .refused, .cancelled:
                #expect(open.updateValue(false, forKey: activity.loadID) == true)
            case .joined: break
            case .hit, .downloadStarted, .downloadFinished, .decoded, .stored:
                #expect(open[activity.loadID] == true, "\(activity.product) \(activity.kind.word)")
            }
        }
        #expect(!open.values.contains(true))
        let statistics = await loader.statistics()
        for product in LoadActivity.Product.allCases {
            #expect(statistics[product].active == 0)
            #expect(statistics[product].started > 0)
        }
        #expect(statistics.imageDuration.count == statistics.images.finished.values.reduce(0) { $0 + UInt64($1) })
        #expect(statistics.downloads.bodyBytes == 0)
    }

    private enum Call: CaseIterable {
        case response, encoded, data, store, remove, forgetFailures, cancelAll
    }

    private func perform(_ call: Call, _ request: ImageRequest, by loader: LoaderActor) async throws {
        switch call {
        case .response: _ = try await loader.response(for: request)
        case .encoded: _ = try await loader.encoded(request, as: .png)
        case .data: _ = try await loader.data(for: request)
        case .store: try await loader.store(Data(try makePNG(width: 31)), for: request)
        case .remove: try await loader.remove(request)
        case .forgetFailures: loader.forgetFailures()
        case .cancelAll: await loader.cancelAll()
        }
    }

    // MARK: Figures

    @Test func `what needed no origin is what the memory counts, and the loads that end elsewhere`() async throws {
        let request = ImageRequest(url: self.url, options: .waitForStore)
        let small = ImageRequest(url: self.url, thumbnail: .fit(width: 4, height: 4))
        _ = try await self.fixture.makeLoader().image(for: request)
        let loader = self.makeLoader()
        // The loads come from disk, twice from memory, from the full size in memory, and from the network.
        for request in [request, request, request, small, ImageRequest(url: self.origin.url("/b"))] {
            self.origin.script("/b", .body(try makePNG()))
            _ = try await loader.image(for: request)
        }
        // The first call encodes the image in memory. The others find the encoded image in memory.
        for _ in 0..<3 { _ = try await loader.encoded(request, as: .png) }
        // The bytes are ready on disk.
        for _ in 0..<2 { _ = try await loader.data(for: request) }
        let statistics = await loader.statistics()
        #expect(statistics.cache.memory.hits - statistics.thumbnailsOfOriginals == 2)
        #expect(statistics.thumbnailsOfOriginals == 1)
        #expect(statistics.images.finished == [.disk: 1, .memory: 2, .network: 1])
        #expect(statistics.images.hits == [.memory: 2])
        #expect(statistics.cache.memory.encodedHits == 2)
        #expect(statistics.encoded.finished == [.memory: 1])
        #expect(statistics.bytes.hits == [.disk: 3])
        #expect(statistics.bytes.finished == [.disk: 1, .network: 1])
    }

    @Test func `metrics are described by the parts that took place`() {
        let record = LoadRecord()
        #expect("\(record.metrics)" == "0.0 ms")
        record.add(.microseconds(8_125), to: \.queue)
        record.add(.milliseconds(4), to: \.decode)
        record.note(byteCount: 48_201)
        let call = CallRecord(load: record, total: .milliseconds(13), isJoined: true)
        #expect("\(call.metrics)" == "13.0 ms (queue 8.125, decode 4.0), 48201 bytes, joined")
    }

    @Test func `a histogram counts each duration in the bucket of its bound`() {
        var histogram = LatencyHistogram()
        #expect(histogram.upperBound(ofQuantile: 0.5) == nil)
        for milliseconds in [1, 1, 2, 20, 100_000] { histogram.add(.milliseconds(milliseconds)) }
        #expect(histogram.count == 5)
        #expect(histogram.counts.reduce(0, +) == 5)
        #expect(abs(histogram.sum - 100.024) < 1e-9)
        #expect(histogram.upperBound(ofQuantile: 0.4) == 0.001)
        #expect(histogram.upperBound(ofQuantile: 0.5) == 0.002_5)
        #expect(histogram.upperBound(ofQuantile: 0.8) == 0.025)
        #expect(histogram.upperBound(ofQuantile: 1) == .infinity)
    }

    @Test func `the text for Prometheus has each figure once, and buckets that add up`() async throws {
        let loader = self.makeLoader()
        _ = try await loader.image(for: self.url)
        for _ in 0..<2 { _ = try? await loader.image(for: self.origin.url("/none")) }
        let text = await loader.statistics().prometheusText()
        var seen: Set<Substring> = []
        var types: [Substring: Substring] = [:]
        var values: [Substring: Double] = [:]
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# TYPE ") {
                let parts = line.dropFirst(7).split(separator: " ")
                #expect(parts.count == 2)
                #expect(types.updateValue(parts[1], forKey: parts[0]) == nil)
            } else if !line.hasPrefix("#") {
                let space = try #require(line.lastIndex(of: " "))
                let series = line[..<space]
                #expect(seen.insert(series).inserted)
                let value: Double = try #require(Double(line[line.index(after: space)...]))
                values[series] = value
                let name = series.prefix { $0 != "{" }
                let isPart = ["_bucket", "_sum", "_count"].contains { part in
                    name.hasSuffix(part) && types[name.dropLast(part.count)] == "histogram"
                }
                #expect(types[name] != nil || isPart, "\(name) has no type")
            }
        }
        #expect(values["tintype_loads_total{product=\"image\"}"] == 3)
        #expect(values["tintype_loads_finished_total{product=\"image\",source=\"network\"}"] == 1)
        #expect(values["tintype_loads_failed_total{product=\"bytes\",code=\"badStatus\"}"] == 2)
        #expect(values["tintype_load_duration_seconds_bucket{product=\"image\",le=\"+Inf\"}"] == 1)
        #expect(values["tintype_load_duration_seconds_count{product=\"image\"}"] == 1)
        #expect(values["tintype_memory_entries"] == 1)
        #expect(values["tintype_downloads_cancelled_total"] == 0)
        #expect(values["tintype_remembered_failures_total"] == 1)
        #expect(values.keys.contains { $0.hasPrefix("tintype_disk_entries{directory=\"") })
        #expect(values.keys.contains("tintype_tier_misses_total{tier=\"disk\"}"))
        var last = 0.0
        for bound in LatencyHistogram.bounds {
            let count = try #require(
                values["tintype_load_duration_seconds_bucket{product=\"image\",le=\"\(bound)\"}"]
            )
            #expect(count >= last)
            last = count
        }
    }
}

extension LoadActivity.Kind {
    /// The kind and its main details, in a few words.
    fileprivate var word: String {
        switch self {
        case .started: "started"
        case .joined: "joined"
        case .hit(let source, _): "hit \(source)"
        case .downloadStarted: "downloadStarted"
        case .downloadFinished: "downloadFinished"
        case .decoded(let size): "decoded \(size.width)x\(size.height)"
        case .stored(let tiers): "stored \(tiers == .disk ? "disk" : tiers == .memory ? "memory" : "both")"
        case .finished(let source, _): "finished \(source)"
        case .failed(let error): "failed \(error.code)"
        case .refused(let error): "refused \(error.code)"
        case .cancelled: "cancelled"
        }
    }
}
