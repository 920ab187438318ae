// One import gives a user everything: pictures, coders, transforms, caches, downloads.
@_exported public import TintypeCaching
@_exported public import TintypeCoding
@_exported public import TintypeDownloading
@_exported public import TintypeImage
@_exported public import TintypeTransforms
