# frozen_string_literal: true

require "digest"
require "json"
require_relative "changed_code"

# Which tests have to run under sanitizers again, because what they check has changed since .ci/nightly last ran them.
# The nightly writes a digest for each test into its result file; with `--changed`, bin/sanitize and test/c/run leave
# out tests whose digest is still the same. Comments, indentation and blank lines are in no digest.
class SanitizedContent
  RESULTS = ".ci/nightly.json"

  # The sanitized Ruby tests that a folder of ext/heddle concerns, by the beginning of their paths. The nightly runs
  # them all for every change.
  CONCERNED = {
    "cable" => %w[test/server/web_socket],
    "concurrency" => %w[test/concurrency/],
    "http" => %w[test/http/ test/server/ test/rack/],
    "native_code" => %w[test/offload/ test/preemption/],
    "net" => %w[test/net/ test/http/ test/server/ test/rack/],
    "offload" => %w[test/offload/],
    "preempt" => %w[test/preemption/],
    "processes" => %w[test/net/],
    "pubsub" => %w[test/server/web_socket],
    "rack" => %w[test/rack/],
    "scheduler" => %w[test/scheduler/ test/concurrency/ test/net/],
    "selector" => %w[test/selector/ test/scheduler/ test/net/],
    "watch" => %w[test/selector/]
  }.freeze

  # What tests of a variant are linked with beside their sources.
  ADDED = { "kqueue" => ["test/c/libkqueue_shim.c"] }.freeze
  private_constant :ADDED

  # @param root [String] the checkout
  def initialize(root)
    @root = root
    @digests = {}
  end

  # @param sanitizer [String] "address", "thread" or "kqueue"
  # @param tests [Array<String>] test files, relative to the root
  # @param known [Hash{String => Hash}] the digests of each sanitizer
  # @return [Array<String>] those that have changed, or that the nightly has not run
  def changed(sanitizer, tests, known = recorded)
    digests = known.fetch(sanitizer, {})
    tests.reject { |test| digests[test] == digest(sanitizer, test) }
  end

  # @return [Hash{String => String}] what the nightly writes after these tests have passed with this sanitizer
  def digests(sanitizer, tests) = tests.sort.to_h { |test| [test, digest(sanitizer, test)] }

  # @return [Array<String>] what a test's digest is made of, relative to the root
  def files(test)
    return files_of_c(test) if test.end_with?(".c")

    folders = CONCERNED.select { |_, beginnings| test.start_with?(*beginnings) }.keys
    [test, *folders.flat_map { |folder| Dir.glob("ext/heddle/#{folder}/**/*.{c,h,rb}", base: @root).sort }]
  end

  private

  def recorded
    @recorded ||= JSON.parse(File.read(File.join(@root, RESULTS))).fetch("sanitized", {})
  rescue Errno::ENOENT
    @recorded = {}
  end

  def digest(sanitizer, test)
    files = files(test) + ADDED.fetch(sanitizer, [])
    Digest::SHA256.hexdigest(files.map { |file| "#{file} #{digest_of_file(file)}" }.join("\n"))[0, 16]
  end

  def digest_of_file(file)
    @digests[file] ||= begin
      code = ChangedCode.code_of(file, File.binread(File.join(@root, file)))
      Digest::SHA256.hexdigest(ChangedCode.squeeze(code))
    end
  end

  # The test, the sources that it is linked with, and the headers that they include.
  def files_of_c(test)
    patterns = File.foreach(File.join(@root, test)).first(4).filter_map { |line| line[%r{\A/\* sources: (.*) \*/}, 1] }
    waiting = [test, *patterns.join(" ").split.flat_map { |name| Dir.glob("ext/heddle/#{name}", base: @root).sort }]
    found = []
    while (file = waiting.shift)
      next if found.include?(file)

      found << file
      waiting.concat(included(file))
    end
    found
  end

  def included(file)
    File.read(File.join(@root, file)).scan(/^#include "([^"]+)"/).flatten.filter_map do |name|
      [File.dirname(file), "ext/heddle", "test/c"].map { |folder| File.join(folder, name) }
                                                  .find { |path| File.file?(File.join(@root, path)) }
    end
  end
end
