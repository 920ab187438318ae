// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeCluster
import TintypeRedis

/// A configuration to which settings are applied, with the settings that only make sense together.
struct SettingsDraft: Sendable {
    var configuration = ImageServer.Configuration()
    /// The warnings about settings without an effect.
    var warnings: [String] = []
    /// The keys and the salts in hexadecimal digits, which belong together by their positions.
    var keys: [String] = []
    var salts: [String] = []
    /// The definitions of presets, before they are split at the separator.
    var presets: [String] = []
    var presetsSeparator = ","
    var presetsFile: String?
    /// The changes of source URLs, before they are split.
    var replacements: [String] = []
    var usesS3 = false
    var s3 = ImageServer.Configuration.Sources.S3()
    /// The size of the disk cache in bytes, or 0 for no disk cache.
    var cacheSize: Int?
    /// The URL of the Redis that a cluster shares.
    var shared: String?
    /// The longest time for an answer of that Redis.
    var sharedTime: Duration?
    var sharedRevision = ""
    /// The URL of the bucket behind it.
    var cold: String?
    /// The number of requests that may wait, or 0 for any number.
    var queueSize: Int?

    /// Returns the configuration with the settings that only make sense together.
    func finished() throws(SettingError) -> ImageServer.Configuration {
        var configuration = self.configuration
        configuration.addresses.keys = try self.signatureKeys()
        configuration.addresses.presets = try self.presetsByName()
        configuration.addresses.replacements = try self.replacementPairs()
        configuration.sources.s3 = self.usesS3 ? self.s3 : nil
        if self.cacheSize == 0 {
            configuration.loader.disk = nil
        } else if let cacheSize = self.cacheSize {
            configuration.loader.disk?.sizeLimit = cacheSize
        }
        configuration.cluster = try self.cluster()
        configuration.coldTier = try self.coldTier()
        if let queueSize = self.queueSize {
            let waiting = queueSize == 0 ? Self.unlimitedCount : queueSize
            configuration.load.queueCount = waiting + max(1, configuration.loader.laneCount)
        }
        return configuration
    }

    /// More requests than `queue-time` ever permits.
    private static let unlimitedCount = 1_000_000

    private func cluster() throws(SettingError) -> Cluster.Configuration? {
        guard let shared = self.shared else {
            guard self.sharedTime == nil else {
                throw SettingError("The setting shared-time needs the setting shared; give both, or leave it out.")
            }
            return nil
        }
        do throws(RedisError) {
            var cluster = Cluster.Configuration(redis: try RedisConfiguration(url: shared))
            cluster.revision = self.sharedRevision
            if let time = self.sharedTime {
                cluster.redis.commandTimeBudget = time
                // The client closes a connection that is silent for this long.
                cluster.redis.connectTimeout = max(cluster.redis.connectTimeout, time)
            }
            return cluster
        } catch {
            throw SettingError("The setting shared cannot be used. \(error.message)")
        }
    }

    private func coldTier() throws(SettingError) -> ColdTier.Configuration? {
        guard let cold = self.cold else { return nil }
        do throws(CacheError) {
            return try ColdTier.Configuration(
                url: cold,
                accessKey: self.s3.accessKey,
                secretKey: self.s3.secretKey,
                sessionToken: self.s3.sessionToken,
                revision: self.sharedRevision
            )
        } catch {
            throw SettingError("The setting cold cannot be used. \(error.message)")
        }
    }

    private func signatureKeys() throws(SettingError) -> [SignatureKey] {
        guard self.keys.count == self.salts.count else {
            throw SettingError(
                "The number of keys (--key: \(self.keys.count)) is not the number of salts (--salt: "
                    + "\(self.salts.count)); give one salt for each key, in the same order."
            )
        }
        var keys: [SignatureKey] = []
        for (key, salt) in zip(self.keys, self.salts) {
            do throws(SettingError) {
                keys.append(try SignatureKey(key: key, salt: salt))
            } catch {
                throw SettingError("Key \(keys.count + 1) of \(self.keys.count) cannot be used. \(error.message)")
            }
        }
        return keys
    }

    /// Reads the presets: first the file's, then the others, which replace presets with the same name.
    private func presetsByName() throws(SettingError) -> [String: String] {
        var presets: [String: String] = [:]
        var definitions: [String] = []
        if let file = self.presetsFile {
            definitions = try Self.lines(of: file).filter { !$0.hasPrefix("#") }
        }
        definitions += self.presets.flatMap { $0.split(separator: self.presetsSeparator).map { $0.trimmed } }
        for definition in definitions where !definition.isEmpty {
            let parts = definition.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw SettingError("The preset \(definition) has no options; write it as name=options.")
            }
            presets[parts[0].trimmed] = parts[1].trimmed
        }
        return presets
    }

    private static func lines(of file: String) throws(SettingError) -> [String] {
        let data: Data
        do {
            data = try Data(contentsOf: URL(filePath: file))
        } catch {
            throw SettingError("The file of presets \(file) cannot be read; check its name and its permissions.")
        }
        return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).map { $0.trimmed }
    }

    private func replacementPairs() throws(SettingError) -> [(pattern: String, replacement: String)] {
        var pairs: [(pattern: String, replacement: String)] = []
        for text in self.replacements.flatMap({ $0.split(separator: ";") }) where !text.trimmed.isEmpty {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].trimmed.isEmpty else {
                throw SettingError("The replacement \(text.trimmed) has no pattern; write it as pattern=text.")
            }
            pairs.append((pattern: parts[0].trimmed, replacement: parts[1].trimmed))
        }
        return pairs
    }
}
