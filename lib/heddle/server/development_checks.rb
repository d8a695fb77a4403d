# frozen_string_literal: true

module Heddle
  class Server
    # What `rackup` puts around an application in development: a page for exceptions, and a check that the application
    # follows the Rack specification. Rails has its own. The request's body stays as it is: Rack::Lint would leave it
    # without `rewind` and all other methods that it has in production.
    class DevelopmentChecks
      KEPT = %w[rack.input rack.hijack].freeze
      private_constant :KEPT

      # @param app [#call]
      # @return [#call]
      def self.around(app)
        return app if defined?(::Rails) && ::Rails.respond_to?(:application) && ::Rails.application

        require "rack/lint"
        require "rack/show_exceptions"
        ::Rack::ShowExceptions.new(new(app))
      end

      # @param app [#call]
      def initialize(app)
        @app = app
      end

      # @param env [Hash]
      # @return [Array] the response, whose body is checked, too; event streams keep theirs, which the server knows
      def call(env)
        response = nil
        kept = env.slice(*KEPT)
        checked = ::Rack::Lint.new(->(given) { response = @app.call(given.update(kept)) }).call(env)
        response[2].respond_to?(:event_stream) ? response : checked
      end
    end
  end
end
