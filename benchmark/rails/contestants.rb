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

      # @return [Array<HTTP::Contestant>]
      def self.all
        [HTTP::Contestants::Heddle, HTTP::Contestants::Puma, HTTP::Contestants::Falcon].map do |one|
          Class.new(one) { prepend WithDatabase }.new(config: CONFIG)
        end
      end
    end
  end
end
