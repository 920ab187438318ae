// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import RedisTier
import Tintype

// Loads the bytes of numbered images, with a Redis server between the disk and their origin:
//
//     RedisTierProgram PORT FOLDER URL COUNT

let arguments = CommandLine.arguments
guard arguments.count == 5, let port = Int32(arguments[1]), let count = Int(arguments[4]) else {
    print("usage: RedisTierProgram PORT FOLDER URL COUNT")
    exit(2)
}
var configuration = LoaderActor.Configuration()
configuration.disk?.directory = URL(filePath: arguments[2])
configuration.tiers = [RedisTier(port: port)]
let loader = LoaderActor(configuration: configuration)
var sources: [LoadSource: Int] = [:]
for number in 0..<count {
    guard let url = URL(string: "\(arguments[3])\(number)") else { continue }
    let response = try await loader.response(for: ImageRequest(url: url))
    sources[response.source, default: 0] += 1
}
// Stores run in the background; a program that ends first would lose the last ones.
await loader.shutdown()
print("network \(sources[.network, default: 0]), tiers \(sources[.disk, default: 0])")
