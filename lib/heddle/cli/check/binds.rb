# frozen_string_literal: true

module Heddle
  module CLI
    class CheckCommand
      # Looks whether addresses can be listened on, without doing so: on a machine that serves they are taken.
      module Binds
        # @param configuration [Server::Configuration]
        # @return [Array<String>]
        def self.problems(configuration)
          configuration.binds.filter_map(&:problem)
        rescue Server::ConfigurationError, Server::BootError => e
          [e.message]
        end
      end
    end
  end
end
