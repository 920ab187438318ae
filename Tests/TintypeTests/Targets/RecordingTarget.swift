// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeTargets
import TintypeTestSupport

/// A target that records its calls.
///
/// The gray value of an image identifies it.
actor RecordingTarget: ImageTarget {
    enum Call: Hashable {
        /// The test began a load here, in a step of the target's own.
        case begin(UInt8)
        /// The test cancelled the load here.
        case cancel
        case placeholder(UInt8?)
        case image(UInt8, TargetImage.Kind, LoadSource?)
        case transition(UInt8)
        case progress(TargetProgress)
        case failure(LoadError.Code?)
    }

    nonisolated let imageLoads = TargetLoads()
    private(set) var calls: [TargetKey: [Call]] = [:]
    /// The action to run when a load fails.
    private let onFailure: (@Sendable (isolated RecordingTarget) -> Void)?
    /// The action to run at the first call equal to `call`.
    private var onCall: (call: Call, action: @Sendable (isolated RecordingTarget) -> Void)?

    init(onFailure: (@Sendable (isolated RecordingTarget) -> Void)? = nil) {
        self.onFailure = onFailure
    }

    init(on call: Call, _ action: @escaping @Sendable (isolated RecordingTarget) -> Void) {
        self.onFailure = nil
        self.onCall = (call, action)
    }

    /// Returns the calls for a key, except progress.
    func shown(_ key: TargetKey = .image) -> [Call] {
        self.calls[key, default: []].filter { call in
            if case .progress = call { false } else { true }
        }
    }

    func progress(_ key: TargetKey = .image) -> [TargetProgress] {
        self.calls[key, default: []].compactMap { call in
            if case .progress(let progress) = call { progress } else { nil }
        }
    }

    /// Begins a load, as an actor does with its own image.
    @discardableResult
    func begin(
        _ number: UInt8,
        _ request: ImageRequest?,
        by loader: LoaderActor,
        key: TargetKey = .image,
        options: TargetOptions = TargetOptions()
    ) -> TargetLoad {
        self.note(.begin(number), key)
        return loader.load(request, into: self, key: key, options: options)
    }

    func cancel(by loader: LoaderActor, key: TargetKey = .image) {
        self.note(.cancel, key)
        loader.cancelLoad(of: self, key: key)
    }

    // MARK: ImageTarget

    func setPlaceholder(_ placeholder: Image?, for key: TargetKey) {
        self.note(.placeholder(placeholder.map(Self.gray)), key)
    }

    func setImage(_ image: TargetImage, for key: TargetKey) {
        self.note(.image(Self.gray(image.image), image.kind, image.source), key)
    }

    func transition(to image: TargetImage, for key: TargetKey) {
        self.note(.transition(Self.gray(image.image)), key)
    }

    func setProgress(_ progress: TargetProgress, for key: TargetKey) {
        self.note(.progress(progress), key)
    }

    func loadDidFail(_ error: any Error, for key: TargetKey) {
        self.note(.failure((error as? LoadError)?.code), key)
        self.onFailure?(self)
    }

    private func note(_ call: Call, _ key: TargetKey) {
        self.calls[key, default: []].append(call)
        guard let onCall, onCall.call == call else { return }
        self.onCall = nil
        onCall.action(self)
    }

    private static func gray(_ image: Image) -> UInt8 { UInt8(clamping: image.pixels.sample(0, 0)) }
}

/// Returns an image of one gray.
func makeGray(_ gray: UInt8) throws -> Image {
    Image(pixels: try PixelBuffer.make(.gray8, width: 2, height: 2) { _, _, _ in gray })
}
