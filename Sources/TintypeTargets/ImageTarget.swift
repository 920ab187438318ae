public import Tintype

/// Something that shows the images of loads: a terminal, a page, a widget.
///
/// ``LoaderActor/load(_:into:key:options:)`` loads into it. A target may have several places for images; each has a
/// key, and at most one load at a time.
///
/// A target is an actor, and is told what to show by calls that do not suspend: whether a load is still the one of its
/// place is looked at in the same step. So no late result of an older load is ever shown, wherever loads are begun.
/// What lives on the main actor is made a target by an actor with `MainActor.sharedUnownedExecutor` as its executor,
/// and what draws with blocking calls by one on a thread of its own.
///
/// ```swift
/// actor Frame: ImageTarget {
///     nonisolated let imageLoads = TargetLoads()
///     private var shown: Image?
///
///     func setPlaceholder(_ placeholder: Image?, for key: TargetKey) { self.shown = placeholder }
///     func setPicture(_ image: TargetPicture, for key: TargetKey) { self.shown = image.image }
/// }
/// ```
public protocol ImageTarget: Actor {
    /// The loads into this target, which end when it goes away.
    ///
    /// A stored property, made with `TargetLoads()`: loads end as soon as the object that it returns is gone.
    nonisolated var imageLoads: TargetLoads { get }

    /// Shows a placeholder in place of what is shown; `nil` shows nothing.
    func setPlaceholder(_ placeholder: Image?, for key: TargetKey)

    /// Shows an image in place of what is shown.
    func setPicture(_ picture: TargetPicture, for key: TargetKey)

    /// Changes over from what is shown to the final image, with whatever transition the target has.
    ///
    /// Left out, the image is set.
    func transition(to picture: TargetPicture, for key: TargetKey)

    /// Takes note of how far the load is.
    ///
    /// Left out, nothing happens.
    func setProgress(_ progress: TargetProgress, for key: TargetKey)

    /// Takes note that the load failed: a `LoadError`. What is shown instead was set before.
    ///
    /// A load that was cancelled, or that another one took the place of, is not heard of again. Left out, nothing
    /// happens.
    func loadDidFail(_ error: any Error, for key: TargetKey)
}

extension ImageTarget {
    public func transition(to picture: TargetPicture, for key: TargetKey) {
        self.setPicture(picture, for: key)
    }

    public func setProgress(_ progress: TargetProgress, for key: TargetKey) {}

    public func loadDidFail(_ error: any Error, for key: TargetKey) {}
}

/// One of a target's places for images.
public struct TargetKey: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The place of targets that have only one.
    public static let picture: TargetKey = "picture"

    public let description: String

    /// Names a place.
    public init(_ name: String) {
        self.description = name
    }

    public init(stringLiteral name: String) {
        self.description = name
    }
}

/// An image for a target.
public struct TargetPicture: Sendable {
    /// What an image is to its load.
    public enum Kind: Sendable, Hashable {
        /// It is unfinished; a better one follows.
        case preview
        /// It is cached, and the origin is asked whether it is current: ``CachePolicy/revalidate``.
        case cached
        /// It is what was asked for.
        case final
        /// It stands for the one that could not be loaded.
        case failure
    }

    /// The image.
    public let image: Image
    /// What it is to its load.
    public let kind: Kind
    /// Where it came from; `nil` for previews and failure images.
    public let source: LoadSource?

    /// Describes an image, as loads do and tests of targets may.
    public init(image: Image, kind: Kind, source: LoadSource? = nil) {
        self.image = image
        self.kind = kind
        self.source = source
    }
}

/// How far a load into a target is.
public enum TargetProgress: Sendable, Hashable {
    /// It begins; what was said of an earlier one holds no more.
    case started
    /// Bytes have arrived.
    case received(TransferProgress)
    /// The image is there; comes also where nothing had to be received.
    case completed

    /// The part that is done, from 0 to 1, or `nil` where the length is unknown.
    public var fractionCompleted: Double? {
        switch self {
        case .started: 0
        case .received(let progress): progress.fractionCompleted
        case .completed: 1
        }
    }
}

/// What a target shows beside the image, and when.
public struct TargetOptions: Sendable {
    /// When the placeholder is shown.
    public enum PlaceholderUse: Sendable, Hashable {
        /// As the load begins, in place of what is shown; not where the image is in memory already.
        case immediately
        /// Only when the load has failed; until then the target shows what it has.
        case onFailure
    }

    /// When the final image comes with a transition.
    public enum TransitionUse: Sendable, Hashable {
        /// It is set.
        case never
        /// Unless it was in memory, and so is there at once.
        case unlessInMemory
        /// Always.
        case always
    }

    /// The placeholder; default `nil`, which shows nothing.
    public var placeholder: Image?
    /// When the placeholder is shown; default as the load begins.
    public var placeholderUse: PlaceholderUse
    /// What is shown when the load fails; default `nil`, which leaves what is shown, or the placeholder that is shown
    /// on failure.
    public var failurePicture: Image?
    /// Whether previews and the image are set; default true.
    ///
    /// If not, the caller gets the image from ``TargetLoad/response`` and sets it itself. Placeholders and failure
    /// images are set all the same.
    public var setsPicture: Bool
    /// When the final image comes with a transition; default unless it was in memory.
    public var transitionUse: TransitionUse

    /// Describes what is shown.
    public init(
        placeholder: Image? = nil,
        placeholderUse: PlaceholderUse = .immediately,
        failurePicture: Image? = nil,
        setsPicture: Bool = true,
        transitionUse: TransitionUse = .unlessInMemory
    ) {
        self.placeholder = placeholder
        self.placeholderUse = placeholderUse
        self.failurePicture = failurePicture
        self.setsPicture = setsPicture
        self.transitionUse = transitionUse
    }
}
