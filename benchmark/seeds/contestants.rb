# frozen_string_literal: true

require_relative "../http/contestants/heddle"
require_relative "../http/contestants/falcon"
require_relative "../http/contestants/puma"
require_relative "../http/contestants/itsi"
require_relative "../http/contestants/iodine"

module Bench
  module Seeds
    # The servers of bin/bench http with another application. Puma also with the numbers of threads of the figures that
    # were reported.
    module Contestants
      CONFIG = File.expand_path("config.ru", __dir__)

      # Where the application finds what it needs.
      module WithPlaces
        def environment = super.merge(@places.to_h)

        # @param places [Hash] environment variables
        # @return [HTTP::Contestant] the same, started with them
        def with_places(places) = clone.tap { |other| other.places = places }

        protected

        attr_writer :places
      end

      # @see WithPlaces
      class Puma < HTTP::Contestants::Puma
        prepend WithPlaces

        # Rows whose reported figure belongs to so many threads; other rows run Puma with its default.
        THREADS = { "puma-16" => "sleep-100ms-100", "puma-4" => "sleep-1s-8" }.freeze

        def key = @threads == 5 ? "puma" : "puma-#{@threads}"

        def label = "Puma, #{@threads} threads"

        def excludes(row_key)
          return super if THREADS.fetch(key, row_key) == row_key

          "runs one row with so many threads"
        end

        private

        def gem_name = "puma"
      end

      Heddle = Class.new(HTTP::Contestants::Heddle) { prepend WithPlaces }
      Falcon = Class.new(HTTP::Contestants::Falcon) { prepend WithPlaces }
      Itsi = Class.new(HTTP::Contestants::Itsi) { prepend WithPlaces }
      Iodine = Class.new(HTTP::Contestants::Iodine) { prepend WithPlaces }

      # @return [Array<HTTP::Contestant>]
      def self.all
        [Heddle.new(config: CONFIG), Falcon.new(config: CONFIG),
         *[5, 16, 4].map { |threads| Puma.new(config: CONFIG, threads:) },
         Itsi.new(:fibers, config: CONFIG), Iodine.new(config: CONFIG)]
      end
    end
  end
end
