# frozen_string_literal: true

module Bench
  module Contestants
    # libev_scheduler, on the backend that its own libev chooses.
    class Libev < Contestant
      def key = "libev"

      def label = "libev_scheduler"

      def prepare = require("libev_scheduler")

      def version = Gem.loaded_specs.fetch("libev_scheduler").version.to_s

      def scheduler = ::Libev::Scheduler.new

      # In a thread of its own: on the main thread it uses libev's default loop, whose count of watchers is one too low
      # after a scheduler was closed, so that the second scheduler of a process never returns.
      def run(&block)
        @fibers = []
        Thread.new { super(&block) }.tap { |thread| thread.report_on_exception = false }.join
      end

      # It does not mark the fibers that wait in it, and crashes when one was collected: they are kept alive here.
      def spawn(&) = @fibers << Fiber.schedule(&)

      def spawn_brief(&) = Fiber.schedule(&)
    end
  end
end
