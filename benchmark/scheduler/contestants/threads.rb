# frozen_string_literal: true

module Bench
  module Contestants
    # A thread for each piece of work: Ruby without a scheduler.
    class Threads < Contestant
      def key = "threads"

      def label = "threads"

      def prepare = nil

      def version = "Ruby #{RUBY_VERSION}"

      def run
        @threads = Thread::Queue.new
        yield
      ensure
        @threads.pop.join until @threads.empty?
      end

      def spawn(&block) = @threads << Thread.new(&block)
    end
  end
end
