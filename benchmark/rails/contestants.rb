# frozen_string_literal: true

module Bench
  module RailsPage
    # The servers of bin/bench http with the Rails application, each with one process that serves.
    module Contestants
      CONFIG = File.expand_path("config.ru", __dir__)

      # What the application wants to know.
      module WithDatabase
        def environment
          super.merge("RAILS_ENV" => "production", "DATABASE_URL" => Database.url, "RAILS_MAX_THREADS" => nil)
        end
      end

      # Heddle with the options that are for applications of Rails with several workers.
      class HeddleWithOptions < HTTP::Contestants::Heddle
        OPTIONS = %w[--refork-after 500 --reserve-workers 0].freeze
        # Since Ruby 3.4.
        OUT_OF_BAND_GC = GC.respond_to?(:config) ? %w[--out-of-band-gc].freeze : [].freeze

        def key = "heddle-options"

        def label = "Heddle, options"

        def settings = [*OPTIONS, *OUT_OF_BAND_GC].join(" ")

        def version = "#{super}, #{settings}"

        def command(*) = [*super, *OPTIONS, *OUT_OF_BAND_GC]

        def excludes(row_key) = ("is for several workers" unless row_key == "board")
      end

      ALL = [HTTP::Contestants::Heddle, HeddleWithOptions, HTTP::Contestants::Puma, HTTP::Contestants::Falcon].freeze
      private_constant :ALL

      # @return [Array<HTTP::Contestant>]
      def self.all = ALL.map { |one| Class.new(one) { prepend WithDatabase }.new(config: CONFIG) }
    end
  end
end
