# frozen_string_literal: true

require "sus"
require "heddle/async/reactor" unless Trials::Inside::WAY == "plain"

module Trials
  module Inside
    # An example of sus, the test framework of the async gems, with what is around it.
    module Sus
      # @param files [Array<String>]
      def self.start(files)
        registry = ::Sus::Registry.new(root: Dir.pwd)
        files.each { |file| registry.load(file) }
        registry.call(::Sus::Assertions.default(output: ::Sus::Output::Null.new))
      end

      def call(assertions)
        example = identity.to_s.delete_prefix("#{Dir.pwd}/")
        return if Inside.skip?(example)

        before = Sus.counts(assertions)
        Inside.run(example, file: example[/\A[^:]+/]) { super }
        Inside.ended(example, Sus.outcome(before, Sus.counts(assertions)), Sus.message(assertions))
      rescue ScriptError, StandardError => e # of the loop around it
        Inside.ended(example, "error", e.full_message(highlight: false))
      end

      def self.counts(assertions) = [assertions.errored.size, assertions.failed.size, assertions.skipped.size]

      def self.outcome(before, after)
        grown = after.zip(before).map { |now, then_| now > then_ }
        %w[error fail skip].zip(grown).find(&:last)&.first || "pass"
      end

      def self.message(assertions)
        [*assertions.errored, *assertions.failed].last(1).map { |one| one.message[:text] }.join
      end

      ::Sus::It.prepend(self)
    end
  end
end
