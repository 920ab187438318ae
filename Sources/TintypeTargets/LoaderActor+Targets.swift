// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import Tintype

extension LoaderActor {
    /// Loads an image and shows it in a target, instead of the image that was loaded there before.
    ///
    /// Returns at once. From then on the target shows nothing of an older load with the same key, whichever loader began it,
    /// and that load's wait has ended. The loader holds the target weakly: the load ends with the target.
    ///
    /// The target receives `TargetProgress.started` and the placeholder, then progress, and previews if the request has
    /// ``LoadOptions/previews``, and at last the image or the failure image. An image in memory appears in one step, without
    /// the placeholder before it.
    ///
    /// ```swift
    /// let load = loader.load(request, into: frame, options: TargetOptions(placeholder: image))
    /// print(try await load.response.source)
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request. If it is `nil` or has an empty URL, the target shows the placeholder, and the load fails
    ///     with `LoadError.Code.invalidURL`.
    ///   - target: The target.
    ///   - key: The place in the target; by default the only one.
    ///   - options: The placeholder, the failure image and the transitions.
    /// - Returns: The load, to wait for or to cancel. It goes on if the caller ignores it.
    @discardableResult
    public nonisolated func load<Target: ImageTarget>(
        _ request: ImageRequest?,
        into target: Target,
        key: TargetKey = .image,
        options: TargetOptions = TargetOptions()
    ) -> TargetLoad {
        target.imageLoads.begin(key) { [weak target] id in
            let show = TargetShow(target: target, id: id, key: key, options: options)
            return try await self.load(request, showing: show)
        }
    }

    /// Cancels the load into a target, if there is one.
    ///
    /// The target keeps its current image.
    ///
    /// ```swift
    /// loader.cancelLoad(of: frame)
    /// ```
    public nonisolated func cancelLoad(of target: some ImageTarget, key: TargetKey = .image) {
        target.imageLoads.cancel(key)
    }

    private nonisolated func load(
        _ request: ImageRequest?,
        showing show: TargetShow<some ImageTarget>
    ) async throws -> ImageResponse {
        guard let request, !request.url.absoluteString.isEmpty else {
            let error = LoadError(code: .invalidURL, message: "There is no URL to load; set one first.")
            try await show.start(isFailing: true)
            try await show.fail(error, showsImages: false)
            throw error
        }
        do {
            let request = try await self.admitted(request)
            if let response = try await self.memoryResponse(for: request) {
                try await show.finish(response, isFirst: true)
                return response
            }
            try await show.start()
            for try await event in self.events(forMissed: request) {
                switch event {
                case .progress(let progress): try await show.update(.received(progress))
                case .preview(let image): try await show.set(TargetImage(image: image, kind: .preview))
                case .cached(let cached):
                    try await show.set(TargetImage(image: cached.image, kind: .cached, source: cached.source))
                case .finished(let response):
                    try await show.finish(response)
                    return response
                }
            }
            throw CancellationError()
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            try await show.fail(error)
            throw error
        }
    }
}

/// The calls of one load into its target.
///
/// Each step enters the target once. It throws `CancellationError` without a call if another load has replaced this one, or
/// if the target is gone.
private struct TargetShow<Target: ImageTarget>: Sendable {
    weak let target: Target?
    let id: TargetLoads.ID
    let key: TargetKey
    let options: TargetOptions

    /// Begins; `isFailing` if the load is certain to fail.
    func start(isFailing: Bool = false) async throws {
        var calls: [Call] = [{ [key] in $0.setProgress(.started, for: key) }]
        if isFailing || self.options.placeholderUse == .immediately {
            calls.append { [key, options] in $0.setPlaceholder(options.placeholder, for: key) }
        }
        try await self.step(calls)
    }

    func update(_ progress: TargetProgress) async throws {
        try await self.step([{ [key] in $0.setProgress(progress, for: key) }])
    }

    func set(_ image: TargetImage) async throws {
        guard self.options.setsImage else { return }
        try await self.step([{ [key] in $0.setImage(image, for: key) }])
    }

    func finish(_ response: ImageResponse, isFirst: Bool = false) async throws {
        let shown = TargetImage(image: response.image, kind: .final, source: response.source)
        let changesOver =
            switch self.options.transitionUse {
            case .always: true
            case .unlessInMemory: response.source != .memory
            case .never: false
            }
        var calls: [Call] = []
        if isFirst { calls.append { [key] in $0.setProgress(.started, for: key) } }
        calls.append { [key] in $0.setProgress(.completed, for: key) }
        if self.options.setsImage {
            calls.append { [key] target in
                if changesOver {
                    target.transition(to: shown, for: key)
                } else {
                    target.setImage(shown, for: key)
                }
            }
        }
        try await self.step(calls)
    }

    func fail(_ error: any Error, showsImages: Bool = true) async throws {
        var calls: [Call] = []
        if showsImages, let image = self.options.failureImage {
            calls.append { [key] in $0.setImage(TargetImage(image: image, kind: .failure), for: key) }
        } else if showsImages, self.options.placeholderUse == .onFailure {
            calls.append { [key, options] in $0.setPlaceholder(options.placeholder, for: key) }
        }
        calls.append { [key] in $0.loadDidFail(error, for: key) }
        try await self.step(calls)
    }

    private typealias Call = @Sendable (isolated Target) -> Void

    private func step(_ calls: [Call]) async throws {
        guard let target = self.target, await Self.areDone(calls, on: target, self.id, self.key) else {
            throw CancellationError()
        }
    }

    /// Checks and calls in one step of the target, so that no other load of the key begins there in between, unless the target
    /// begins one during a call.
    private static func areDone(
        _ calls: [Call],
        on target: isolated Target,
        _ id: TargetLoads.ID,
        _ key: TargetKey
    ) -> Bool {
        for call in calls {
            guard target.imageLoads.isCurrent(id, key) else { return false }
            call(target)
        }
        return true
    }
}
