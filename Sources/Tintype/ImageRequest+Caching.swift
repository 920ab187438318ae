import TintypeCaching
import TintypeTransforms

extension ImageRequest {
    /// Whether the picture is something else than the original at full size.
    var isVariant: Bool { self.key != self.sourceKey }

    /// How the load uses the cache for the picture itself, its options considered.
    ///
    /// Of a full-size picture the disk tier has the original bytes, which ``bytesUse`` is about.
    var pictureUse: CacheUse {
        var use = self.limited(self.isVariant ? self.variantCaching : self.originalCaching)
        if !self.isVariant { use = use.subtracting(.disk) }
        // Encoding a variant may drop its profile, and brings no original bytes back.
        if !self.options.isDisjoint(with: [.keepColorProfile, .keepData]) { use = use.subtracting(.disk) }
        if self.options.contains(.keepData) { use.query.remove(.memory) }
        return use
    }

    /// How the load uses the disk tier for the original bytes, its options considered.
    var bytesUse: CacheUse {
        var use = self.limited(self.originalCaching).subtracting(.memory)
        // Files and `data:` URLs are here already: a copy on disk would only grow stale.
        if self.isLocal { use = use.subtracting(.disk) }
        return use
    }

    /// The key of the decoded original that a thumbnail may be made from, or `nil` where none may.
    var decodedOriginalKey: CacheKey? {
        guard self.thumbnail != nil, !self.options.contains(.keepData),
            self.limited(self.originalCaching).query.contains(.memory)
        else { return nil }
        return RequestKeys.picture(
            source: self.sourceKey,
            thumbnail: nil,
            scaleDownLimit: nil,
            coder: self.coder,
            options: self.options
        )
    }

    private func limited(_ use: CacheUse) -> CacheUse {
        var use = use
        if self.options.contains(.skipMemory) { use = use.subtracting(.memory) }
        if self.options.contains(.skipDisk) { use = use.subtracting(.disk) }
        if self.options.contains(.refresh) { use.query = .none }
        return use
    }
}
