# frozen_string_literal: true

require "open3"
require_relative "../../lib/heddle/version"

module Bench
  # The rows of bin/bench checks.
  module Checks
    # Files of tests, all of them or those with a name.
    class Tests < Row
      # The one that Heddle chooses by itself first: io_uring, where it can run.
      SELECTORS = [nil, "epoll", "select"].freeze
      GEM_PATHS = File.join(ROOT, "bin", "support", "gem_paths.rb")
      private_constant :GEM_PATHS

      attr_reader :key, :title, :files

      # @param files [Array<String>]
      # @param named [String, nil] a pattern of names
      # @param selectors [Array<String, nil>] each of which runs them all
      def initialize(key, title, files, named: nil, selectors: [nil])
        super()
        @key = key
        @title = title
        @files = files
        @named = named
        @selectors = selectors
      end

      def unit = "failures"

      def compared? = false

      def details = %i[tests assertions]

      def shown = details

      def goals = [Goal.new(at_most: 0, unit: "failures")]

      def sizes(quick:) = { files: quick ? 1 : @files.size }

      # @param size [Hash]
      # @return [Hash] the sample
      # @raise [Child::Failed] where no test ran
      def measure(size)
        failed = []
        counts = @selectors.product(@files.first(size[:files])).map { |selector, file| run(file, selector, failed) }
        tests, assertions, *failures = counts.transpose.map(&:sum)
        raise Child::Failed, "no test ran" if tests.zero?

        { value: failures.sum, tests:, assertions:, note: failed.empty? ? nil : failed.join(", ") }
      end

      private

      # @param failed [Array<String>] gets the names of the tests that fail or are skipped
      # @return [Array<Integer>] tests, assertions, failures, errors, skipped tests
      def run(file, selector, failed)
        command = [RbConfig.ruby, "-r", GEM_PATHS, "-Ilib", "-Itest", file, *(["-n", @named] if @named)]
        words, = Open3.capture2e({ "HEDDLE_SELECTOR" => selector }, *command, chdir: ROOT)
        found = words.match(/(\d+) runs, (\d+) assertions, (\d+) failures, (\d+) errors, (\d+) skips/) or
          raise Child::Failed, "#{file}: #{LastWords.of(words)}"
        failed.concat(words.scan(/^ +\d+\) (?:Failure|Error|Skipped):\n(\S+)/).flatten)
        found.captures.map(&:to_i)
      end
    end

    ROWS = [
      Tests.new("fibonacci", "a thread and a fiber share a Mutex", %w[test/concurrency/threads_test.rb],
                named: "/one_sequence_under_one_mutex/"),
      Tests.new("selectors", "the same tests with each selector",
                %w[test/selector/selector_test.rb test/scheduler/interface_test.rb test/scheduler/io_hooks_test.rb
                   test/scheduler/sleep_test.rb test/scheduler/standard_library_test.rb],
                selectors: Tests::SELECTORS),
      Tests.new("failing-requests", "requests that raise, and more requests than a server takes",
                %w[test/scheduler/application_failure_test.rb test/server/modes/threads_test.rb
                   test/server/admission_test.rb]),
      Tests.new("bytes", "io_read and io_write with any bytes and at positions", %w[test/scheduler/io_hooks_test.rb],
                selectors: Tests::SELECTORS),
      Tests.new("reused-descriptors", "a read that is cancelled, and its descriptor used again",
                %w[test/scheduler/closed_io_test.rb], selectors: Tests::SELECTORS),
      Tests.new("ractors", "Ractors with a scheduler each", %w[test/scheduler/ractors_test.rb]),
      Tests.new("transactions", "connections by task, transactions, an unchanged Rails action",
                %w[test/concurrency/pool_postgresql_test.rb test/databases/active_record_test.rb
                   test/rails/connection_queue_test.rb test/rails/active_record_test.rb]),
      Tests.new("isolation", "thread variables of each request", %w[test/adaptations/isolation_test.rb])
    ].freeze
  end
end
