// SPDX-License-Identifier: Apache-2.0

// One import gives a user everything: images, coders, transforms, caches, downloads.
@_exported public import TintypeCaching
@_exported public import TintypeCoding
@_exported public import TintypeDownloading
@_exported public import TintypeImage
@_exported public import TintypeRendering
@_exported public import TintypeRequests
@_exported public import TintypeTransforms

// Only the types of HTTP's rules that the interface shows: server frameworks have types with the same names.
// ThreadExecutor serves tiers and fetchers whose library blocks.
@_exported public import class TintypeConcurrency.ThreadExecutor
@_exported public import struct TintypeHTTP.Freshness
@_exported public import struct TintypeHTTP.FreshnessBounds
@_exported public import struct TintypeHTTP.HeaderField
@_exported public import struct TintypeHTTP.HeaderFields
@_exported public import struct TintypeHTTP.ProtocolVersion
@_exported public import class TintypeHTTP.ResponseRecord
@_exported public import struct TintypeHTTP.StatusCodes
