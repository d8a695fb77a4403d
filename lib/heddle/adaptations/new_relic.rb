# frozen_string_literal: true

module Heddle
  module Adaptations
    # New Relic's agent detects the server when the agent is loaded. If it detects no server, it connects to New Relic
    # in the process that forks the workers, too. So while the application is loaded, this module presents the server as
    # Falcon, which the agent supports.
    module NewRelic
      VARIABLE = "NEW_RELIC_DISPATCHER"
      private_constant :VARIABLE

      # Sets the agent's dispatcher while the block loads the application.
      # @param configuration [Server::Configuration]
      # @return what the block returns
      def self.during_load(configuration)
        return yield if ENV.key?(VARIABLE) || !wanted?(configuration)

        begin
          ENV[VARIABLE] = "falcon"
          yield
        ensure
          ENV.delete(VARIABLE) # so that programs that the application starts don't inherit it
        end
      end

      # Is the agent installed in a tested version, and not excluded by the option `adapt`? Without Bundler, the gem may
      # not be activated yet.
      def self.wanted?(configuration)
        row = BY_NAME.fetch(:newrelic_rpm)
        return false unless configuration.adapt.include?(row.name)

        spec = Gem.loaded_specs[row.gem]
        spec ||= Gem::Specification.stubs_for(row.gem).max_by(&:version) unless defined?(::Bundler)
        !spec.nil? && Gem::Requirement.new(*row.tried).satisfied_by?(spec.version)
      end
      private_class_method :wanted?
    end
  end
end
