# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle serve [config.ru]`: serves an application.
    class ServeCommand < ServingCommand
      private

      def command = "serve"

      def max_arguments = 1

      def app_name = loader.path

      # In development, adds checks to the application, except in mode ractor: Ractors can't share the checks.
      def load
        app = loader.load
        return app if @configuration.environment != "development" || @configuration.mode == :ractor

        Server::DevelopmentChecks.around(app)
      end

      def loader = @loader ||= Server::AppLoader.new(@flags.rest.first || CONFIG)
    end
  end
end
