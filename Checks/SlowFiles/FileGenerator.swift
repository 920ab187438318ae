// SPDX-License-Identifier: Apache-2.0

import TintypeTestSupport

/// The bytes that a file may have: the budget of time is for these.
let fileLimit = 1_000_000

/// Writes the files of one coder.
protocol FileGenerator: SendableMetatype {
    /// The name of the format.
    static var coder: String { get }
    /// The genes of its recipes.
    static var genes: [Gene] { get }
    /// Recipes to start with: bombs of known kinds.
    static var seeds: [[String: Int]] { get }
    /// The kinds of load that its files test.
    static var kinds: [Kind] { get }
    /// Returns the file of a recipe, truncated to the limit.
    static func file(_ recipe: Recipe) -> [UInt8]
}

/// The common part of every format's writer: a recipe, and an empty file.
class FileWriter {
    let recipe: Recipe
    var random: SeededGenerator
    var out = ByteWriter()
    let width: Int
    let height: Int

    init(_ recipe: Recipe, sideLimit: Int = 32_768) {
        self.recipe = recipe
        self.random = recipe.random
        (self.width, self.height) = recipe.size(pixels: "pixels", aspect: "aspect", limit: sideLimit)
    }
}

extension FileGenerator {
    static var kinds: [Kind] { Kind.loads }

    /// The genes of this format, and the genes of all files and loads.
    static var allGenes: [Gene] {
        self.genes + [
            .linear("seed", 0...1_000_000), .linear("allowsTruncated", 0...1),
            .logarithmic("pieceBytes", 1_000...1_000_000),
            .linear("damage", 0...20),
        ]
    }

    /// Returns the file, damaged if the recipe says so.
    static func bytes(_ recipe: Recipe) -> [UInt8] {
        var bytes = Array(self.file(recipe).prefix(fileLimit))
        var random = recipe.random
        guard bytes.count > 20, self.kinds == Kind.loads else { return bytes }
        // Damage at the start changes the meaning of the rest.
        for _ in 0..<max(0, recipe["damage"] - 10) {
            let end = Bool.random(using: &random) ? min(bytes.count, 700) : bytes.count
            bytes[Int.random(in: 12..<end, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        return bytes
    }
}

/// All generators.
let generators: [any FileGenerator.Type] = [
    JPEGFiles.self, PNGFiles.self, GIFFiles.self, WebPFiles.self, EncodeJPEGFiles.self, EncodePNGFiles.self,
    EncodeGIFFiles.self, EncodeWebPFiles.self,
]
