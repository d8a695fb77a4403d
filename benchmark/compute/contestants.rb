# frozen_string_literal: true

require_relative "../http/contestants/heddle"
require_relative "../http/contestants/falcon"
require_relative "../http/contestants/puma"

module Bench
  module Compute
    # The servers, with two processes each.
    module Contestants
      CONFIG = File.expand_path("config.ru", __dir__)
      PROCESSES = 2

      # With as many threads as people give it: Rails' default is 3, its own is 5.
      class Puma < HTTP::Contestants::Puma
        def key = "puma-#{@threads}"

        def label = "Puma, #{@threads} #{@threads == 1 ? "thread" : "threads"}"

        private

        def gem_name = "puma"
      end

      # To see what the protections cost.
      class Unprotected < HTTP::Contestants::Heddle
        def key = "heddle-off"

        def label = "Heddle, protect off"

        def role = :peer

        def command(...) = [*super, "--protect", "off"]

        # The goals are those of the default.
        def excludes(row_key) = row_key == "crowded" ? nil : "only in the row crowded"
      end

      # @return [Array<HTTP::Contestant>]
      def self.all
        settings = { config: CONFIG, processes: PROCESSES }
        [HTTP::Contestants::Heddle.new(**settings), Unprotected.new(**settings),
         *[1, 3, 5].map { |threads| Puma.new(threads:, **settings) },
         HTTP::Contestants::Falcon.new(**settings)]
      end
    end
  end
end
