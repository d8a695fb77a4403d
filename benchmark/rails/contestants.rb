# frozen_string_literal: true

module Bench
  module RailsPage
    # The servers of bin/bench http with the Rails application, each with one process that serves.
    module Contestants
      CONFIG = File.expand_path("config.ru", __dir__)

      # Serves the Rails application in the place of the one that it serves there.
      module WithRails
        def command(port, folder, ruby_flags)
          super.map { |word| word == HTTP::Contestant::CONFIG ? CONFIG : word }
        end

        def environment
          super.merge("RAILS_ENV" => "production", "DATABASE_URL" => Database.url, "RAILS_MAX_THREADS" => nil)
        end
      end

      ALL = [HTTP::Contestants::Heddle, HTTP::Contestants::Puma, HTTP::Contestants::Falcon].map do |one|
        Class.new(one) { prepend WithRails }
      end.freeze
    end
  end
end
