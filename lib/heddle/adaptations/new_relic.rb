# frozen_string_literal: true

module Heddle
  module Adaptations
    # New Relic's agent looks for a known server when it is loaded. If it finds none, it also connects in the process
    # that forks the workers.
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
          ENV.delete(VARIABLE) # programs that the application starts are not servers
        end
      end

      # The gem need not be activated yet: without Bundler, `require` activates it.
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
