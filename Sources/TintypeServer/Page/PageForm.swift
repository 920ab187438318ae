// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// The form of the page, as a browser without JavaScript sends it.
enum PageForm {
    /// Returns the path of the image that the query of `target` describes, without a signature; `nil` without a source.
    static func path(of target: String) -> String? {
        var fields: [String: String] = [:]
        for pair in target.drop(while: { $0 != "?" }).dropFirst().split(separator: "&").prefix(64) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            let value = PercentEncoding.decode(parts[1].utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
            fields[String(parts[0])] = String(decoding: value, as: UTF8.self)
        }
        func field(_ name: String) -> String { fields[name] ?? "" }
        guard !field("url").isEmpty else { return nil }
        var options: [String] = []
        func add(_ name: String, _ values: String...) {
            options.append(([name] + values).joined(separator: ":"))
        }
        func isSet(_ name: String) -> Bool { !field(name).isEmpty && field(name) != "0" }
        let presets = field("pr").split { " ,:".contains($0) }.joined(separator: ":")
        if !presets.isEmpty { add("pr", presets) }
        for name in ["rt", "w", "h", "el", "dpr"] where isSet(name) { add(name, field(name)) }
        if isSet("cw") || isSet("ch") { add("c", isSet("cw") ? field("cw") : "0", isSet("ch") ? field("ch") : "0") }
        if field("g") == "fp" {
            add("g", "fp", field("fx"), field("fy"))
        } else if isSet("g"), field("g") != "ce" {
            add("g", field("g"))
        }
        if isSet("t") { add("t", field("t")) }
        if isSet("rot") { add("rot", field("rot")) }
        if isSet("fh") || isSet("fv") { add("fl", isSet("fh") ? "1" : "0", isSet("fv") ? "1" : "0") }
        for name in ["bl", "sh", "pix"] where isSet(name) { add(name, field(name)) }
        if isSet("pd") { add("pd", field("pd").split { " ,".contains($0) }.joined(separator: ":")) }
        if isSet("bg") { add("bg", String(field("bgc").drop { $0 == "#" })) }
        for name in ["q", "mb"] where isSet(name) { add(name, field(name)) }
        options += field("more").split(separator: "/").map(String.init)
        let encoded = options.map { PercentEncoding.encode($0.utf8, allowing: ":%") }
        // A slash is encoded as well: browsers would remove dot segments, and the server would repair `:/`.
        let source = PercentEncoding.encode(field("url").utf8)
        return "/" + (encoded + ["plain", source]).joined(separator: "/") + (isSet("f") ? "@\(field("f"))" : "")
    }
}
