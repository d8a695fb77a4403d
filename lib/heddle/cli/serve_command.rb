# frozen_string_literal: true

module Heddle
  module CLI
    # `heddle serve [config.ru]`: serves an application.
    class ServeCommand < ServingCommand
      DEFAULT = "config.ru"
      private_constant :DEFAULT

      private

      def command = "serve"

      def most_arguments = 1

      def what = loader.path

      # In mode ractor an application must be shareable.
      def load
        app = loader.load
        return app if @configuration.environment != "development" || @configuration.mode == :ractor

        Server::DevelopmentChecks.around(app)
      end

      def loader = @loader ||= Server::AppLoader.new(@flags.rest.first || DEFAULT)
    end
  end
end
