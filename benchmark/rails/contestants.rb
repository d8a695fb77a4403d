# frozen_string_literal: true

module Bench
  module RailsPage
    # The servers of bin/bench http with the Rails application, each with as many processes that serve as a row says.
    module Contestants
      CONFIG = File.expand_path("config.ru", __dir__)

      # What the application wants to know.
      module WithDatabase
        def environment
          super.merge("RAILS_ENV" => "production", "DATABASE_URL" => Database.url, "RAILS_MAX_THREADS" => nil)
        end
      end

      # Heddle with options that applications with several workers may switch on.
      class HeddleWithOptions < HTTP::Contestants::Heddle
        attr_reader :key, :label

        # @param key [String]
        # @param label [String]
        # @param flags [Array<String>] of `heddle serve`
        def initialize(key, label, flags, **)
          super(**)
          @key = key
          @label = label
          @flags = flags
        end

        def settings = @flags.join(" ")

        def version
          "#{super}, #{settings}"
        end

        def command(*) = [*super, *@flags]

        def excludes(row_key) = ("is for several workers" unless row_key == "board")
      end

      # So many requests that all workers are forked again before the row counts.
      REFORK = ["heddle-refork", "Heddle, reforked", %w[--refork-after 200 --reserve-workers 0]].freeze
      private_constant :REFORK

      # @return [Array<HTTP::Contestant>]
      def self.all
        servers = [[HTTP::Contestants::Heddle], [HeddleWithOptions, *REFORK], [HTTP::Contestants::Puma],
                   [HTTP::Contestants::Falcon]]
        servers.map { |server, *settings| Class.new(server) { prepend WithDatabase }.new(*settings, config: CONFIG) }
      end
    end
  end
end
