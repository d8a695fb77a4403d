# frozen_string_literal: true

module Heddle
  class Server
    # Adds to an application in development what `rackup` adds: a page for exceptions, and the checks of Rack::Lint.
    # Rails has its own error page, so a Rails application gets neither. The request's body is not wrapped: Rack::Lint
    # would hide `rewind` and other methods that the body has in production.
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
      # @return [Array] the response, with a body that Rack::Lint checks; an event stream keeps its own body, because
      #   the server recognizes it by its method `event_stream`
      def call(env)
        response = nil
        kept = env.slice(*KEPT)
        checked = ::Rack::Lint.new(->(given) { response = @app.call(given.update(kept)) }).call(env)
        response[2].respond_to?(:event_stream) ? response : checked
      end
    end
  end
end
