// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeTargets
import TintypeTestSupport

/// One task that calls the loader again and again, and leaves a third of its calls before they end.
struct Caller: Sendable {
    private enum Call: String, CaseIterable {
        case image, response, data, events, firstEvent, encoded, frames, header, fromData
        case store, storeImage, remove, contains, cachedFile, prefetch, target, forgetFailures, cancelAll
    }

    /// A call, and what it may give.
    private struct Job: Sendable {
        let call: Call
        let number: Int
        let request: ImageRequest
        let encoding: OutputEncoding
        /// The images that it may give.
        let answers: Set<Int>
        /// Whether an error is an answer.
        let mayFail: Bool
    }

    let loader: LoaderActor
    let images: Images
    let ledger: Ledger
    let seed: UInt64

    func run() async {
        var random = SeededGenerator(seed: self.seed)
        while !self.ledger.isEnding {
            let job = self.makeJob(&random)
            let cancellations = self.ledger.cancellationCount
            let task = Task { try await self.perform(job) }
            let leaves = Int.random(in: 0..<3, using: &random) == 0
            if leaves {
                for _ in 0..<Int.random(in: 0..<60, using: &random) { await Task.yield() }
                if Bool.random(using: &random) {
                    try? await Task.sleep(for: .milliseconds(Int.random(in: 0..<20, using: &random)))
                }
                task.cancel()
            }
            let result = await task.result
            let isCancelled = leaves || self.ledger.cancellationCount != cancellations
            self.judge(result, of: job, hasLeft: isCancelled)
            await Task.yield()
        }
    }

    private func judge(_ result: Result<Void, any Error>, of job: Job, hasLeft: Bool) {
        switch result {
        case .success: self.ledger.note(job.call.rawValue, "answered")
        case .failure(is CancellationError):
            self.ledger.note(job.call.rawValue, "cancelled")
            if !hasLeft, !self.ledger.isEnding { self.fault("was cancelled by nothing", job) }
        case .failure(let error as LoadError):
            self.ledger.note(job.call.rawValue, "failed")
            let mayFail = job.mayFail || (error.code == .shutDown && self.ledger.isEnding)
            if !mayFail { self.fault("failed: \(error)", job) }
        // Frames are decoded by the coders themselves.
        case .failure(is CodingError) where job.call == .frames && job.mayFail:
            self.ledger.note(job.call.rawValue, "failed")
        case .failure(let error):
            self.ledger.note(job.call.rawValue, "failed")
            self.fault("failed with \(type(of: error)): \(error)", job)
        }
    }

    // MARK: Calls

    private func makeJob(_ random: inout SeededGenerator) -> Job {
        let number = self.drawNumber(&random)
        var answers: Set<Int> = [number]
        var request = ImageRequest(url: MemoryOrigin.url(number))
        if Bool.random(using: &random) {
            let mode = Resize.Mode.allCases.randomElement(using: &random) ?? .fit
            request.thumbnail = Resize(width: Bool.random(using: &random) ? 6 : 12, height: 9, mode: mode)
        }
        request.priority = DownloadPriority.allCases.randomElement(using: &random) ?? .normal
        for option in Self.options where Int.random(in: 0..<5, using: &random) == 0 { request.options.insert(option) }
        // Loads share what they have in common only under equal terms.
        if Bool.random(using: &random) { self.vary(&request, &random) }
        if Int.random(in: 0..<4, using: &random) == 0 {
            let other = self.drawNumber(&random)
            answers.insert(other)
            request.alternatives = [ImageRequest(url: MemoryOrigin.url(other), thumbnail: request.thumbnail)]
        }
        if Int.random(in: 0..<8, using: &random) == 0 {
            answers.insert(Images.fallback)
            request.fallback = self.images.fallbackImage
        }
        let call = Call.allCases.randomElement(using: &random) ?? .image
        // Else hardly any load would end.
        let isTooMuch = call == .cancelAll && Int.random(in: 0..<100, using: &random) > 0
        return Job(
            call: isTooMuch ? .forgetFailures : call,
            number: number,
            request: request,
            encoding: Self.encodings[number % Self.encodings.count],
            answers: answers,
            mayFail: Images.conduct(of: number) != .healthy || request.cachePolicy == .cacheOnly
        )
    }

    private static let encodings: [OutputEncoding] = [.jpeg(), .webp(quality: 75), .png, .gif]
    private static let options: [LoadOptions] = [
        .previews, .keepPreviews, .keepData, .waitForStore, .firstFrameOnly, .preloadAllFrames, .retryFailed,
        .finishDownload, .allowTruncated, .keepColorProfile,
    ]

    private func vary(_ request: inout ImageRequest, _ random: inout SeededGenerator) {
        let policies: [CachePolicy?] = [
            nil, nil, .neverRevalidate, .honorFreshness, .revalidate, .reload, .cacheOnly,
        ]
        request.cachePolicy = policies.randomElement(using: &random) ?? nil
        let uses = [CacheUse.all, .all, .memory, .disk, .none]
        request.caching.originals = uses.randomElement(using: &random) ?? .all
        request.caching.variants = uses.randomElement(using: &random) ?? .all
        if Int.random(in: 0..<4, using: &random) == 0 { request.caching.lifetime = .milliseconds(300) }
        if Int.random(in: 0..<4, using: &random) == 0 { request.headers["Accept-Language"] = "de" }
    }

    /// Half of the calls are for a dozen images, so that loads meet.
    private func drawNumber(_ random: inout SeededGenerator) -> Int {
        Int.random(in: 0..<(Bool.random(using: &random) ? 12 : Images.count), using: &random)
    }

    private func perform(_ job: Job) async throws {
        let (loader, request) = (self.loader, job.request)
        switch job.call {
        case .image: self.check(try await loader.image(for: request), job)
        case .response:
            let response = try await loader.response(for: request)
            self.check(response.image, job)
            if let data = response.data { self.check(data, job) }
        case .data: self.check(try await loader.data(for: request), job)
        case .events:
            for try await event in loader.events(for: request) { self.check(event, job) }
        case .firstEvent:
            for try await event in loader.events(for: request) {
                self.check(event, job)
                break
            }
        case .encoded: try await self.encode(job)
        case .frames: try await self.readFrames(job)
        case .header: _ = try await loader.header(for: request)
        case .fromData:
            let body = self.images.body(job.number, version: 0)
            self.check(try await loader.image(from: body, thumbnail: request.thumbnail), job)
        case .store:
            let body = self.ledger.heldBytes.lend(self.images.body(job.number, version: 1))
            try await loader.store(body, for: ImageRequest(url: request.url), headers: ["Cache-Control": "max-age=1"])
        case .storeImage:
            let image = try Images.image(job.number, version: 1)
            try await loader.store(image, for: ImageRequest(url: request.url))
        case .remove: try await loader.remove(request)
        case .contains: _ = await loader.contains(request)
        case .cachedFile:
            if let file = try await loader.cachedFile(for: request) { self.ledger.watch(file, "cached file") }
        case .prefetch: await self.prefetch(job)
        case .target: try await self.show(job)
        case .forgetFailures: loader.forgetFailures()
        case .cancelAll:
            self.ledger.noteCancellation()
            await loader.cancelAll()
        }
    }

    /// Loads into a target in place of a load that has just begun.
    private func show(_ job: Job) async throws {
        let target = Screen()
        let other = ImageRequest(url: MemoryOrigin.url((job.number + 1) % Images.count))
        self.loader.load(other, into: target)
        let response = try await self.loader.load(job.request, into: target).response
        self.check(response.image, job)
        if let shown = await target.shown { self.check(shown, job) }
    }

    private func encode(_ job: Job) async throws {
        let response = try await self.loader.encoded(job.request, as: job.encoding)
        let image = try await self.loader.image(from: response.data)
        self.check(image, job)
        if image.sourceFormat != job.encoding.format { self.fault("gave \(response.mediaType)", job) }
    }

    private func readFrames(_ job: Job) async throws {
        let frames = try await self.loader.frames(for: job.request)
        self.ledger.watch(frames, "frame source")
        for index in 0..<frames.frameCount { self.check(try await frames.frame(at: index), job) }
    }

    private func prefetch(_ job: Job) async {
        let prefetcher = Prefetcher(loader: self.loader, concurrency: 2)
        let requests = (0..<4).map { ImageRequest(url: MemoryOrigin.url((job.number + $0) % Images.count)) }
        for await _ in prefetcher.prefetch(requests) where Task.isCancelled { break }
    }

    // MARK: Answers

    private func check(_ event: LoadEvent, _ job: Job) {
        switch event {
        case .progress: break
        case .preview(let image): self.watch(image)
        case .cached(let response), .finished(let response): self.check(response.image, job)
        }
    }

    private func check(_ image: Image, _ job: Job) {
        self.watch(image)
        let number = Images.number(of: image)
        guard job.answers.contains(number) else { return self.fault("gave image \(number)", job) }
        guard job.request.thumbnail == nil, number < Images.count else { return }
        if (image.width, image.height) != Images.size(of: number) {
            self.fault("gave \(image.width) x \(image.height) pixels of image \(number)", job)
        }
    }

    private func check(_ data: Data, _ job: Job) {
        let number = self.images.number(of: data)
        if !(number.map { job.answers.contains($0) } ?? false) {
            self.fault("gave \(data.count) bytes of image \(number.map { "\($0)" } ?? "unknown")", job)
        }
    }

    private func watch(_ image: Image) {
        // Images that the program holds stay.
        if image.pixels !== self.images.fallbackImage.pixels { self.ledger.watch(image.pixels, "pixel buffers") }
    }

    private func fault(_ text: String, _ job: Job) {
        self.ledger.add(
            fault: "\(job.call) of \(job.number) \(text); \(String(describing: job.request.cachePolicy)), "
                + "thumbnail \(String(describing: job.request.thumbnail)), options \(job.request.options.rawValue), "
                + "originals \(job.request.caching.originals), variants \(job.request.caching.variants)"
        )
    }
}

/// A target that remembers what it shows.
private actor Screen: ImageTarget {
    nonisolated let imageLoads = TargetLoads()
    private(set) var shown: Image?

    func setPlaceholder(_ placeholder: Image?, for key: TargetKey) { self.shown = placeholder }

    func setImage(_ image: TargetImage, for key: TargetKey) { self.shown = image.image }
}
