# frozen_string_literal: true

module Heddle
  class Server
    # The values of all {Options}, built once and frozen.
    class Configuration
      attr_reader(*Options::OWN.map(&:name))

      # @return [HTTP::Configuration] what clients may send and how long they may take
      attr_reader :http

      # Takes each option from the flags, else the environment, else its default.
      #
      # @param flags [Hash{Symbol => String, Array<String>, Boolean}] as a person wrote them
      # @param environment [Hash{String => String}]
      # @param defaults [Hash{Symbol => Object}] in place of those of {Options}
      # @raise [ConfigurationError]
      def self.load(flags: {}, environment: ENV, defaults: {})
        values = Options::ALL.each_with_object({}) do |option, found|
          variable = option.variables.find { |name| environment.key?(name) && !environment[name].empty? }
          if flags.key?(option.name)
            found[option.name] = parse(option, flags[option.name], option.flag)
          elsif variable
            found[option.name] = option.parse(environment[variable], variable)
          end
        end
        new(**defaults, **values)
      end

      def self.parse(option, value, source)
        case value
        when Array then value.flat_map { |one| option.parse(one, source) }
        when String then option.parse(value, source)
        else value
        end
      end
      private_class_method :parse

      # @param values [Hash{Symbol => Object}] what differs from the defaults, by the names of {Options}
      # @raise [ConfigurationError]
      def initialize(**values)
        unknown = values.keys - Options::BY_NAME.keys
        raise ConfigurationError, "there is no option called #{unknown.join(", ")}" if unknown.any?

        Options::OWN.each do |option|
          instance_variable_set(:"@#{option.name}", values.fetch(option.name, option.default).freeze)
        end
        raise ConfigurationError, "--workers can only be 1 for now, but is #{workers}" unless workers == 1

        @http = http_configuration(values)
        @selector = @selector&.to_sym
        freeze
      end

      # @return [Array<Bind>] where to listen
      # @raise [ConfigurationError]
      def binds
        addresses = bind.nil? || bind.empty? ? ["localhost"] : bind
        addresses.map { |address| Bind.parse(address, port) }
      end

      private

      def http_configuration(values)
        HTTP::Configuration.new(**values.slice(*HTTP::Configuration::NAMES.keys))
      rescue ArgumentError => e
        raise ConfigurationError, e.message
      end
    end
  end
end
