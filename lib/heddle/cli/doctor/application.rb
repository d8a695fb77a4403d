# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Checks the settings of Rails and ActiveRecord in the loaded application.
      class Application
        # @param mode [Symbol] in which it will be served
        def initialize(mode:)
          @mode = mode
        end

        # @return [Array<Finding>]
        def findings = [*isolation, *pools, reloading].compact

        # @param level [Symbol] of ActiveSupport::IsolatedExecutionState
        # @param mode [Symbol]
        # @return [Finding]
        def self.isolation(level, mode: :fiber)
          if level == :fiber || mode != :fiber
            return Finding.new(level: :ok, subject: "Rails", text: "isolates by #{level}, as mode #{mode} needs it")
          end

          Finding.new(level: :problem, subject: "Rails", text: "isolates by #{level}: requests share connections, " \
                                                               "Current and the query cache",
                      advice: "config.active_support.isolation_level = :fiber in config/application.rb")
        end

        private

        def isolation
          return unless defined?(::ActiveSupport::IsolatedExecutionState)

          self.class.isolation(::ActiveSupport::IsolatedExecutionState.isolation_level, mode: @mode)
        end

        # No connection is made for it: the server may not be reached from here.
        def pools
          return [] unless defined?(::ActiveRecord::Base)

          ::ActiveRecord::Base.configurations.configs_for(env_name: environment).map do |config|
            size = config.respond_to?(:max_connections) ? config.max_connections : config.pool
            Finding.new(level: :note, subject: "database #{config.name}",
                        text: "#{config.adapter}, at most #{size || "any number of"} connections a process",
                        advice: "so many requests use the database at once, the others wait for one; " \
                                "times the number of workers it must fit into the database's limit")
          end
        rescue StandardError => e
          [Finding.new(level: :note, subject: "database", text: "its configuration can't be read: #{e.message}")]
        end

        def environment = defined?(::Rails.env) ? ::Rails.env.to_s : ENV.fetch("RACK_ENV", "development")

        def reloading
          return unless defined?(::Rails.application) && ::Rails.application&.config.respond_to?(:enable_reloading)
          return unless ::Rails.application.config.enable_reloading

          Finding.new(level: :note, subject: "Rails", text: "reloads code (environment #{environment})",
                      advice: "measure in production: RAILS_ENV=production heddle doctor")
        end
      end
    end
  end
end
