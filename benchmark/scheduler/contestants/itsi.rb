# frozen_string_literal: true

module Bench
  module Contestants
    # The scheduler of the Itsi server, which is a gem of its own.
    class Itsi < Contestant
      def key = "itsi"

      def label = "itsi-scheduler"

      def prepare = require("itsi/scheduler")

      def version = Gem.loaded_specs.fetch("itsi-scheduler").version.to_s

      def scheduler = ::Itsi::Scheduler.new
    end
  end
end
