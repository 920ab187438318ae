// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import Foundation
import TintypeTestSupport

/// As many transfers of libcurl alone, with its default settings, on one thread.
enum CurlCrowd {
    /// The memory per transfer.
    struct Answer {
        let residentBytes: Int
        let heapBytes: Int
    }

    static func run(count: Int, address: String) throws -> Answer {
        curl_global_init(Int(CURL_GLOBAL_ALL))
        guard let multi = curl_multi_init() else { throw TestSupportError("curl_multi_init failed") }
        defer { curl_multi_cleanup(multi) }
        let before = try Resources.now()
        var handles: [UnsafeMutableRawPointer] = []
        let heads = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        heads.pointee = 0
        defer { heads.deallocate() }
        for number in 0..<count {
            guard let easy = curl_easy_init() else { throw TestSupportError("curl_easy_init failed") }
            ccurl_setopt_string(easy, CURLOPT_URL, "\(address)?\(number)")
            ccurl_set_write_callback(easy, { _, size, count, _ in size * count }, nil)
            ccurl_set_header_callback(
                easy,
                { bytes, size, count, heads in
                    // The empty line after the last field.
                    if size * count == 2 { heads?.assumingMemoryBound(to: Int.self).pointee += 1 }
                    return size * count
                },
                heads
            )
            curl_multi_add_handle(multi, easy)
            handles.append(easy)
        }
        defer {
            for easy in handles {
                curl_multi_remove_handle(multi, easy)
                curl_easy_cleanup(easy)
            }
        }
        var running: CInt = 0
        while heads.pointee < count {
            curl_multi_perform(multi, &running)
            curl_multi_poll(multi, nil, 0, 100, nil)
        }
        let during = try Resources.now()
        return Answer(
            residentBytes: (during.residentBytes - before.residentBytes) / count,
            heapBytes: (during.heapBytes - before.heapBytes) / count
        )
    }
}
