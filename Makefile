# Tintype: the targets that people and continuous integration use.
# `make demo` and `make test` work on a fresh Debian 12 with the Swift toolchain.

SWIFT ?= swift
SWIFT_SOURCES = Package.swift Sources Tests Benchmarks

CORPUS ?= ../shared/corpus
FUZZ_SECONDS ?= 600
HUNT_SECONDS ?= 1200
HUNT_CODERS ?= jpeg png gif webp
ATTACK_SECONDS ?= 600
FUZZERS = FuzzJPEG FuzzPNG FuzzWebP FuzzGIF

# Tests of codecs and caches compute for long, and crowds of downloads keep all threads busy. In one
# process with those that wait for sockets they would take the cooperative pool's threads from them,
# until time limits pass.
COMPUTING_TESTS = 'TintypeCodingTests|ConformanceTests|TintypeTransformsTests|TintypeCachingTests'
CROWDED_TESTS = 'TintypeDownloadingTests.CrowdTests'
# Hundreds of tests at once, some of which wait in system calls, would run into each other's time limits.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 6
# run_tests OPTIONS,ENVIRONMENT
define run_tests
$(2) $(SWIFT) test --skip-build --disable-xctest $(1) --skip $(COMPUTING_TESTS) --skip $(CROWDED_TESTS)
$(2) $(SWIFT) test --skip-build --disable-xctest $(1) --filter $(CROWDED_TESTS)
$(2) $(SWIFT) test --skip-build --disable-xctest $(1) --filter $(COMPUTING_TESTS)
endef

.PHONY: help demo test lint format build bench conformance fuzz hunt torture attack sanitize sanitize-thread sanitize-address clean

help:
	@echo 'make demo      build for release, load real photographs over HTTP, show the times'
	@echo 'make test      run all tests'
	@echo 'make build     build all for release; the command is .build/release/tintype'
	@echo 'make lint      check format and house rules'
	@echo 'make format    format all Swift files'
	@echo 'make bench     measure against the peers (minutes; results in Benchmarks/results)'
	@echo 'make conformance  decode the corpus and count right, refused and wrong files'
	@echo 'make fuzz      fuzz every coder, FUZZ_SECONDS=600 each'
	@echo 'make hunt      search for small files that take long or much memory, HUNT_SECONDS=1200 a coder'
	@echo 'make torture   kill processes that use a disk cache, flip its bits, fill its disk;'
	@echo '               ten thousand downloads at once, a storm of cancellations;'
	@echo '               the command under all limits of descriptors, memory and threads'
	@echo 'make attack    load from hostile origins beside healthy ones, ATTACK_SECONDS=600'
	@echo 'make sanitize  run all tests under the thread and the address sanitizer'
	@echo '               (sanitize-thread and sanitize-address: under one)'
	@echo 'make clean     remove what was built'

demo:
	@.ci/setup build
	@echo 'Building for release; the first time takes some minutes.'
	@$(SWIFT) build -c release --product tintype
	@$(SWIFT) build -c release --product TintypeDemo
	@"$$($(SWIFT) build -c release --show-bin-path)/TintypeDemo"

test:
	@.ci/setup test
	$(SWIFT) build --build-tests --explicit-target-dependency-import-check error
	$(call run_tests,)

build:
	@.ci/setup build
	$(SWIFT) build -c release

lint:
	@.ci/lint

format:
	$(SWIFT) format --in-place --parallel --recursive $(SWIFT_SOURCES)

bench:
	@.ci/setup bench
	$(SWIFT) build -c release --product TintypeBenchmarks
	"$$($(SWIFT) build -c release --show-bin-path)/TintypeBenchmarks" $(BENCH)

conformance:
	@.ci/setup build
	@$(SWIFT) build -c release --product TintypeConformance
	@"$$($(SWIFT) build -c release --show-bin-path)/TintypeConformance"

# SwiftPM's own address sanitizer flag drops the coverage; the compiler's keeps both.
fuzz:
	@.ci/setup build
	@for fuzzer in $(FUZZERS); do Fuzz/run $$fuzzer $(FUZZ_SECONDS) $(CORPUS) || exit 1; done

# Every coder is searched, also behind one that has a file over its budget.
hunt:
	@.ci/setup build
	@$(SWIFT) build -c release --product SlowFiles
	@failed=0; for coder in $(HUNT_CODERS); do \
	    "$$($(SWIFT) build -c release --show-bin-path)/SlowFiles" hunt $$coder $(HUNT_SECONDS) || failed=1; \
	done; exit $$failed

# The downloads need 12,000 descriptors.
torture:
	@.ci/setup test
	@$(SWIFT) build -c release --product tintype
	@for part in CacheTorture DownloadTorture CommandTorture; do \
	    $(SWIFT) build -c release --product $$part && \
	    "$$($(SWIFT) build -c release --show-bin-path)/$$part" || exit 1; \
	done

attack:
	@.ci/setup attack
	$(SWIFT) build -c release --product HostileOrigins
	"$$($(SWIFT) build -c release --show-bin-path)/HostileOrigins" $(ATTACK_SECONDS)

sanitize: sanitize-thread sanitize-address

# `SANITIZE_THREAD` swaps the lock for one that the sanitizer sees.
sanitize-thread:
	@.ci/setup test
	SANITIZE_THREAD=1 $(SWIFT) build --build-tests --sanitize=thread --scratch-path .build-thread
	$(call run_tests,--sanitize=thread --scratch-path .build-thread,SANITIZE_THREAD=1)

sanitize-address:
	@.ci/setup test
	$(SWIFT) build --build-tests --sanitize=address --scratch-path .build-address
	$(call run_tests,--sanitize=address --scratch-path .build-address)

clean:
	rm -rf .build .build-thread .build-address Benchmarks/.venv Benchmarks/results
