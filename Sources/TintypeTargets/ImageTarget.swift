// SPDX-License-Identifier: Apache-2.0

public import Tintype

/// An actor that shows the images of loads: a terminal, a page, a widget.
///
/// `LoaderActor.load(_:into:key:options:)` loads into it. A target may have several places for images. Each has a
/// key, and at most one load at a time.
///
/// The loader calls the target without suspending. Each call and the check that the load is still the one of its place are
/// one step of the actor, so a target never shows a late result of an older load.
/// For views on the main actor, write a target with `MainActor.sharedUnownedExecutor` as its executor. For a target that
/// draws with blocking calls, use an executor with a thread of its own.
///
/// ```swift
/// actor Frame: ImageTarget {
///     nonisolated let imageLoads = TargetLoads()
///     private var shown: Image?
///
///     func setPlaceholder(_ placeholder: Image?, for key: TargetKey) { self.shown = placeholder }
///     func setImage(_ image: TargetImage, for key: TargetKey) { self.shown = image.image }
/// }
/// ```
public protocol ImageTarget: Actor {
    /// The loads into this target. They end with the target.
    ///
    /// Implement it as a stored property that is initialised with `TargetLoads()`.
    nonisolated var imageLoads: TargetLoads { get }

    /// Shows a placeholder instead of the current image; `nil` shows nothing.
    func setPlaceholder(_ placeholder: Image?, for key: TargetKey)

    /// Shows an image instead of the current one.
    func setImage(_ image: TargetImage, for key: TargetKey)

    /// Shows the final image with a transition of the target's choice.
    ///
    /// The default implementation calls ``setImage(_:for:)``.
    func transition(to image: TargetImage, for key: TargetKey)

    /// Receives the progress of the load.
    ///
    /// The default implementation does nothing.
    func setProgress(_ progress: TargetProgress, for key: TargetKey)

    /// Receives the `LoadError` of a load that failed, after the failure image or the placeholder was set.
    ///
    /// The loader does not report a load that was cancelled or replaced. The default implementation does nothing.
    func loadDidFail(_ error: any Error, for key: TargetKey)
}

extension ImageTarget {
    public func transition(to image: TargetImage, for key: TargetKey) {
        self.setImage(image, for: key)
    }

    public func setProgress(_ progress: TargetProgress, for key: TargetKey) {}

    public func loadDidFail(_ error: any Error, for key: TargetKey) {}
}

/// The key of one of a target's places for images.
public struct TargetKey: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The key for targets with one place.
    public static let image: TargetKey = "image"

    public let description: String

    /// Creates a key with a name.
    ///
    /// ```swift
    /// let cover = TargetKey("cover")
    /// loader.load(request, into: frame, key: cover)
    /// ```
    public init(_ name: String) {
        self.description = name
    }

    public init(stringLiteral name: String) {
        self.description = name
    }
}

/// An image for a target.
public struct TargetImage: Sendable {
    /// The role of an image in its load.
    public enum Kind: Sendable, Hashable {
        /// An unfinished image; a better one follows.
        case preview
        /// The cached image, while the loader asks the origin whether it is current; see `CachePolicy.revalidate`.
        case cached
        /// The requested image.
        case final
        /// The failure image, shown because the load failed.
        case failure
    }

    /// The image.
    public let image: Image
    /// The role of the image in its load.
    public let kind: Kind
    /// The tier or origin of the image; `nil` for previews and failure images.
    public let source: LoadSource?

    /// Creates an image for a target, as loads do; useful for tests of targets.
    ///
    /// ```swift
    /// let shown = TargetImage(image: image, kind: .final, source: .memory)
    /// await frame.setImage(shown, for: .image)
    /// ```
    public init(image: Image, kind: Kind, source: LoadSource? = nil) {
        self.image = image
        self.kind = kind
        self.source = source
    }
}

/// The progress of a load into a target.
public enum TargetProgress: Sendable, Hashable {
    /// The load begins, and replaces any earlier one of its place.
    case started
    /// More bytes have arrived.
    case received(TransferProgress)
    /// The image is there. Reported also if no bytes had to be received.
    case completed

    /// The fraction that is done, from 0 to 1; `nil` if the length is unknown.
    public var fractionCompleted: Double? {
        switch self {
        case .started: 0
        case .received(let progress): progress.fractionCompleted
        case .completed: 1
        }
    }
}

/// The placeholder, the failure image and the transitions of a load into a target.
public struct TargetOptions: Sendable {
    /// The time at which a target shows the placeholder.
    public enum PlaceholderUse: Sendable, Hashable {
        /// When the load begins, unless the image is in memory.
        case immediately
        /// When the load has failed. Until then the target shows its current image.
        case onFailure
    }

    /// The loads whose final image appears with a transition.
    public enum TransitionUse: Sendable, Hashable {
        /// No loads.
        case never
        /// All loads, except of images in memory, which appear at once.
        case unlessInMemory
        /// All loads.
        case always
    }

    /// The placeholder; `nil`, the default, shows nothing.
    public var placeholder: Image?
    /// The time at which the target shows the placeholder; by default when the load begins.
    public var placeholderUse: PlaceholderUse
    /// The image to show when the load fails; `nil`, the default, leaves the current image, or the placeholder for failures.
    public var failureImage: Image?
    /// Whether the loader sets previews and the image; default true.
    ///
    /// If false, the caller gets the image from ``TargetLoad/response`` and sets it. The loader still sets placeholders and
    /// failure images.
    public var setsImage: Bool
    /// The loads whose final image appears with a transition; by default all, except for images in memory.
    public var transitionUse: TransitionUse

    /// Creates options, by default without placeholder and failure image.
    ///
    /// ```swift
    /// let options = TargetOptions(placeholder: image, transitionUse: .never)
    /// loader.load(request, into: frame, options: options)
    /// ```
    public init(
        placeholder: Image? = nil,
        placeholderUse: PlaceholderUse = .immediately,
        failureImage: Image? = nil,
        setsImage: Bool = true,
        transitionUse: TransitionUse = .unlessInMemory
    ) {
        self.placeholder = placeholder
        self.placeholderUse = placeholderUse
        self.failureImage = failureImage
        self.setsImage = setsImage
        self.transitionUse = transitionUse
    }
}
