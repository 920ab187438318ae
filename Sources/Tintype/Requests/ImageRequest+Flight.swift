// SPDX-License-Identifier: Apache-2.0

import TintypeCoding
import TintypeDownloading

extension ImageRequest {
    /// The rules in which loads must agree to share a flight, in addition to keys, policies and queried tiers.
    ///
    /// The rules are boxed, because most requests leave all of them to the loader.
    indirect enum FlightTerms: Sendable, Hashable {
        case rules(Caching, Transport, CookiePolicy?)

        /// Takes the rules for a flight of the image, or of its bytes, from a request; `nil` if the loader has them all.
        init?(_ request: ImageRequest, ofImage isImage: Bool) {
            guard !request.leavesRulesToLoader else { return nil }
            var (caching, transport) = (request.caching, request.transport)
            let defaults = Caching()
            // The flight's plan has the policy and the queried tiers. A flight takes the union of the tiers to fill, and
            // the highest priority.
            (caching.originals, caching.variants, caching.policy) = (defaults.originals, defaults.variants, nil)
            transport.priority = .normal
            if !isImage {
                caching.variantEncoder = nil
                // The limit of encoded bytes is a limit of the download, too.
                transport.decodingLimits = transport.decodingLimits.map {
                    DecodingLimits(maximumEncodedBytes: $0.maximumEncodedBytes)
                }
            }
            // Keys have the name of a cookie jar; two jars of one name are still different jars.
            let cookies = request.source.cookies
            guard caching != defaults || transport != Transport() || cookies != nil else { return nil }
            self = .rules(caching, transport, cookies)
        }
    }
}
