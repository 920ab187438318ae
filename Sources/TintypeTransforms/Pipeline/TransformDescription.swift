// SPDX-License-Identifier: Apache-2.0

/// The names of transformers in descriptions, and their types.
enum TransformKinds {
    typealias Kind = any (ImageTransformer & Codable).Type

    /// The library's own transformers.
    static let all: [(name: String, kind: Kind)] = [
        ("adjust", ColorAdjustment.self),
        ("blur", Blur.self),
        ("circle", Circle.self),
        ("crop", Crop.self),
        ("flatten", Flatten.self),
        ("flip", Flip.self),
        ("overlay", Overlay.self),
        ("pad", Pad.self),
        ("pixelate", Pixelate.self),
        ("resize", Resize.self),
        ("rotate", Rotate.self),
        ("roundCorners", RoundCorners.self),
        ("sharpen", Sharpen.self),
        ("tint", Tint.self),
        ("trim", Trim.self),
    ]

    /// Returns whether a transformer is one of the library's own.
    static func has(_ transformer: any ImageTransformer) -> Bool {
        let kind = ObjectIdentifier(type(of: transformer))
        return self.all.contains { ObjectIdentifier($0.kind) == kind }
    }

    static func kind(named name: String, in decoder: any Decoder) -> Kind? {
        self.all.first { $0.name == name }?.kind ?? decoder.transformers[name]
    }

    static func name(of transformer: any ImageTransformer, in encoder: any Encoder) -> String? {
        let kind = ObjectIdentifier(type(of: transformer))
        let own = encoder.userInfo[.tintypeTransformers] as? [String: Kind] ?? [:]
        return self.all.first { ObjectIdentifier($0.kind) == kind }?.name
            // A library name would be read back as the library's transformer.
            ?? own.keys.sorted().first { name in
                own[name].map { ObjectIdentifier($0) } == kind && !self.all.contains { $0.name == name }
            }
    }
}

extension CodingUserInfoKey {
    /// The key for a program's own transformers in `userInfo`: a dictionary from names to types.
    ///
    /// The types conform to `ImageTransformer & Codable`. A name of the library's own transformers takes precedence.
    ///
    /// ```swift
    /// let decoder = JSONDecoder()
    /// decoder.userInfo[.tintypeTransformers] = ["vignette": Vignette.self] as TransformPipeline.OwnKinds
    /// ```
    public static let tintypeTransformers = CodingUserInfoKey("tintype.transformers")

    /// Creates a key from a name; every text is a valid key.
    private init(_ name: StaticString) {
        guard let key = CodingUserInfoKey(rawValue: "\(name)") else { preconditionFailure("Every text is a key.") }
        self = key
    }
}

/// A coding key of any name.
private struct DescribedName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

extension Decoder {
    /// Returns the members of an object, all of which must be named in `Key`.
    ///
    /// A misspelled parameter would otherwise get its default without an error.
    ///
    /// - Throws: `DecodingError`.
    func container<Key: CodingKey>(onlyOf: Key.Type) throws -> KeyedDecodingContainer<Key> {
        for name in try self.container(keyedBy: DescribedName.self).allKeys
        where Key(stringValue: name.stringValue) == nil {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: self.codingPath,
                    debugDescription: "There is no parameter \(name.stringValue.prefix(40)) here."
                )
            )
        }
        return try self.container(keyedBy: Key.self)
    }

    fileprivate var transformers: TransformPipeline.OwnKinds {
        self.userInfo[.tintypeTransformers] as? TransformPipeline.OwnKinds ?? [:]
    }
}

extension TransformPipeline {
    /// The types of a program's own transformers, by their names in descriptions.
    public typealias OwnKinds = [String: any (ImageTransformer & Codable).Type]
}

extension TransformPipeline: Codable {
    /// Reads a description: an array with one element for each transform.
    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        var transforms: [ImageTransform] = []
        while !container.isAtEnd { transforms.append(try container.decode(ImageTransform.self)) }
        self.init(transforms)
    }

    /// Writes a description.
    ///
    /// - Throws: `EncodingError` if the type of a program's own transformer is not in `tintypeTransformers`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for transform in self.transforms { try container.encode(transform) }
    }
}

extension ImageTransform: Codable {
    /// Reads an object whose only key is the transformer's name.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: DescribedName.self)
        guard let name = container.allKeys.first, container.allKeys.count == 1 else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription:
                        "A transform is an object with one key, its name; there are \(container.allKeys.count)."
                )
            )
        }
        guard let kind = TransformKinds.kind(named: name.stringValue, in: decoder) else {
            let known = (TransformKinds.all.map(\.name) + decoder.transformers.keys.sorted()).joined(separator: ", ")
            throw DecodingError.dataCorruptedError(
                forKey: name,
                in: container,
                debugDescription: "There is no transform \(name.stringValue.prefix(40)); there are \(known)."
            )
        }
        self.init(try kind.init(from: container.superDecoder(forKey: name)))
    }

    /// Writes an object whose only key is the transformer's name.
    ///
    /// - Throws: `EncodingError` if the type of a program's own transformer is not in `tintypeTransformers`.
    public func encode(to encoder: any Encoder) throws {
        guard let name = TransformKinds.name(of: self.transformer, in: encoder),
            let described = self.transformer as? any Encodable
        else {
            throw EncodingError.invalidValue(
                self.key,
                EncodingError.Context(
                    codingPath: encoder.codingPath,
                    debugDescription: "The transformer \(self.key.prefix(80)) has no name in descriptions; "
                        + "put its type into userInfo under tintypeTransformers."
                )
            )
        }
        var container = encoder.container(keyedBy: DescribedName.self)
        try described.encode(to: container.superEncoder(forKey: DescribedName(stringValue: name)))
    }
}
